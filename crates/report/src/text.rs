//! Plain text for terminals: the answer first, then why, then what to do.

use lastcall_decision::{CeilingBasis, DayState, Profile, Verdict, grouped, percent_of};

use crate::style::{Style, pad, plain, table};
use crate::trial::{TryCaller, TryReport};

/// A verdict: headline, checks, next step; with `explain` everything that the document holds.
pub fn verdict_text(v: &Verdict, explain: bool, style: Style) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let flags: Vec<String> = v.flags.iter().map(|f| plain(&f.text)).collect();
    let flags =
        if flags.is_empty() { String::new() } else { style.dim(&format!("  [{}]", flags.join(" · "))) };
    line(format!(
        "{}  {}  {}{flags}",
        style.answer(v.verdict, v.verdict.as_str()),
        style.bold(&plain(&v.tool_id)),
        v.question.as_str()
    ));
    line(plain(&v.headline));
    if let Some(pair) = &v.pair {
        line(style.dim(&format!("{} → {}", plain(&pair.current), plain(&pair.candidate))));
    }
    line(String::new());
    for problem in &v.problems {
        let result = pad(problem.result.as_str(), 12);
        line(format!(
            "  {}  {}: {}",
            style.result(problem.result, &result),
            problem.reason,
            plain(&problem.text)
        ));
    }
    let id_width = v.checks.iter().map(|c| c.id.chars().count()).max().unwrap_or(0);
    let value_width = v.checks.iter().map(|c| c.value.chars().count()).max().unwrap_or(0);
    for check in &v.checks {
        let result = style.result(check.result, &pad(check.result.as_str(), 12));
        let value = pad(&plain(&check.value), value_width);
        line(format!("  {result}  {}  {value}  {}", pad(&check.id, id_width), plain(&check.threshold)));
    }
    let several = v.checks.iter().filter(|c| c.next.is_some()).count() > 1;
    if let (Some(next), false) = (&v.next, several && explain) {
        line(String::new());
        line(format!("{} {}", style.bold("next:"), plain(next)));
    }
    if let Some(day) = v.window.as_ref().and_then(|w| w.earliest_ready)
        && v.verdict.rank() > 0
        && v.problems.is_empty()
    {
        if several && explain {
            line(String::new());
        }
        line(format!("{} {day}, if every call agrees until then", style.bold("earliest READY:")));
    }
    if explain {
        out.push_str(&explained(v, style));
    }
    out
}

fn section(out: &mut String, title: &str, body: &str, style: Style) {
    if body.is_empty() {
        return;
    }
    out.push('\n');
    out.push_str(&style.bold(title));
    out.push('\n');
    out.push_str(body);
}

fn explained(v: &Verdict, style: Style) -> String {
    let mut out = String::new();
    let mut checks = String::new();
    for c in &v.checks {
        checks.push_str(&format!("  {} ({}): {}\n", c.id, c.reason, plain(&c.text)));
        checks.push_str(&format!("    {}\n", plain(&c.formula)));
        if let Some(next) = &c.next {
            checks.push_str(&format!("    next: {}\n", plain(next)));
        }
    }
    section(&mut out, "Checks", &checks, style);
    section(&mut out, "Days (UTC)", &day_table(v), style);
    section(&mut out, "Over the whole burn-in", &totals(v), style);
    section(&mut out, "Categories", &categories(v), style);
    section(&mut out, "Other readings", &sensitivity(v), style);
    section(&mut out, "Normalization (calls that agree only after a rule)", &normalization(v), style);
    section(&mut out, "Planted faults", &planted(v), style);
    section(&mut out, "Fixed beforehand", &fixed(v), style);
    section(&mut out, "Earlier windows", &earlier(v), style);
    let claims: String = v.not_claimed.iter().map(|c| format!("  - {c}\n")).collect();
    section(&mut out, "Not claimed", &claims, style);
    let tails: String =
        v.tails.iter().map(|t| format!("  {} up to {} {}\n", plain(&t.chain), t.seq, t.digest)).collect();
    section(&mut out, "Read", &tails, style);
    section(&mut out, "Compute it again", &format!("  {}\n", plain(&v.recompute)), style);
    out
}

/// The columns of the daily table: name, and whether it is shown although all zero.
fn day_table(v: &Verdict) -> String {
    if v.days.is_empty() {
        return "  no day yet\n".to_owned();
    }
    let head = [
        "day",
        "",
        "compared",
        "disagreed",
        "D",
        "D_worst",
        "blocks",
        "refused",
        "both rejected",
        "excluded",
        "unresolved",
        "duplicate",
        "calls",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for d in &v.days {
        let c = &d.counts;
        let mut row =
            vec![d.day.to_string(), d.state.as_str().to_owned(), grouped(d.compared), grouped(c.disagreed)];
        row.push(percent_of(c.disagreed, d.compared));
        row.push(percent_of(c.disagreed + c.unresolved, d.compared + c.unresolved));
        for n in [c.blocks, c.refused, c.both_rejected, c.excluded, c.unresolved, c.duplicate, c.calls] {
            row.push(grouped(n));
        }
        rows.push(row);
    }
    let mut right = vec![true; head.len()];
    right[..2].fill(false);
    table(&rows, &right, "  ")
}

fn totals(v: &Verdict) -> String {
    let t = &v.totals;
    let c = &t.counts;
    let mut out = format!(
        "  D {} ({} of {}), D_worst {}, over {} closed days\n",
        percent_of(c.disagreed, t.compared),
        grouped(c.disagreed),
        grouped(t.compared),
        percent_of(c.disagreed + c.unresolved, t.compared + c.unresolved),
        t.days
    );
    out.push_str(&format!(
        "  {} calls = {} agreed + {} disagreed + {} both rejected + {} excluded + {} unresolved + {} duplicate\n",
        grouped(c.calls),
        grouped(c.agreed),
        grouped(c.disagreed),
        grouped(c.both_rejected),
        grouped(c.excluded),
        grouped(c.unresolved),
        grouped(c.duplicate)
    ));
    if !c.reasons.is_empty() {
        let reasons: Vec<String> =
            c.reasons.iter().map(|(r, n)| format!("{} {}", plain(r), grouped(*n))).collect();
        out.push_str(&format!("  of these: {}\n", reasons.join(", ")));
    }
    if c.conflicts > 0 {
        out.push_str(&format!(
            "  {} duplicates said something else; the worst row counts\n",
            grouped(c.conflicts)
        ));
    }
    if v.calls_outside > 0 {
        out.push_str(&format!(
            "  {} calls lie outside the window and take no part\n",
            grouped(v.calls_outside)
        ));
    }
    if let Some(n) = v.production_calls {
        out.push_str(&format!("  production made {} calls on these days\n", grouped(n)));
    }
    out.push_str(&format!(
        "  outcome observed on {} of {} compared calls\n",
        grouped(v.evidence.outcome),
        grouped(v.evidence.compared)
    ));
    out
}

fn categories(v: &Verdict) -> String {
    let mut out = String::new();
    for c in &v.categories {
        let counts: Vec<String> = [("block", c.block), ("warn", c.warn), ("info", c.info)]
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(s, n)| format!("{} {s}", grouped(*n)))
            .collect();
        out.push_str(&format!(
            "  {}: {}, {} refused, {} to {}\n",
            plain(&c.category),
            counts.join(", "),
            grouped(c.refused),
            c.first_seen,
            c.last_seen
        ));
        let e = &c.example;
        let keyword = e.keyword.as_ref().map_or(String::new(), |k| format!(" keyword {}", plain(k)));
        let location = e.location.as_ref().map_or(String::new(), |l| format!(" schema {}", plain(l)));
        out.push_str(&format!(
            "    e.g. {}{keyword}{location}, {} at {}/{} offset {}\n",
            pointer(&e.pointer),
            e.day,
            plain(&e.place.source),
            e.place.partition,
            e.place.offset
        ));
        if let Some(note) = &e.note {
            out.push_str(&format!("    {}\n", plain(note)));
        }
        if let Some(value) = &e.value {
            out.push_str(&format!("    value {}\n", plain(value)));
        }
    }
    out
}

/// The empty pointer means the whole document.
pub(crate) fn pointer(text: &str) -> String {
    if text.is_empty() { "(the whole)".to_owned() } else { plain(text) }
}

fn sensitivity(v: &Verdict) -> String {
    v.sensitivity.iter().map(|s| format!("  {} with {}\n", s.verdict, s.text)).collect()
}

fn normalization(v: &Verdict) -> String {
    v.normalization.iter().map(|(rule, n)| format!("  {}: {}\n", plain(rule), grouped(*n))).collect()
}

fn planted(v: &Verdict) -> String {
    let p = &v.planted;
    if p.committed == 0 && p.synthetic == 0 && p.seen == 0 {
        return "  none\n".to_owned();
    }
    let mut out = format!(
        "  {} committed, {} came back, {} of these without what was expected\n",
        p.committed, p.seen, p.missed
    );
    for (what, n) in &p.missed_as {
        out.push_str(&format!("    missed: {} ({n})\n", plain(what)));
    }
    if p.synthetic > 0 {
        out.push_str(&format!("  {} synthetic calls came back\n", p.synthetic));
    }
    out
}

fn fixed(v: &Verdict) -> String {
    let mut out = String::new();
    if let Some(r) = &v.registration {
        let by = r.by.as_ref().map_or(String::new(), |b| format!(" by {}", plain(b)));
        let cohort = r.cohort.as_ref().map_or(String::new(), |c| format!(", cohort {}", plain(c)));
        let sources: Vec<String> = r.sources.iter().map(|s| plain(s)).collect();
        out.push_str(&format!(
            "  registration {}{}{by}: scores from {}, sources {}{cohort}\n",
            r.seq,
            registered_at(r.at),
            r.scored_from,
            sources.join(", ")
        ));
    }
    if let Some(p) = &v.plan {
        out.push_str(&format!("  plan {} {}\n", plan_line(v), p.digest));
    }
    if let Some(p) = &v.pair {
        out.push_str(&format!("  current   {} {}\n", plain(&p.current), p.current_digest));
        out.push_str(&format!("  candidate {} {}\n", plain(&p.candidate), p.candidate_digest));
        out.push_str(&format!("  epoch     comparator {} {}\n", p.comparator, p.epoch));
    }
    out
}

/// When a registration was written; a simulated ledger has no time before its first clock record.
pub(crate) fn registered_at(at: lastcall_event::Timestamp) -> String {
    if at.0 == 0 { ", before the first clock".to_owned() } else { format!(" at {at}") }
}

/// The plan in a few words.
pub(crate) fn plan_line(v: &Verdict) -> String {
    let Some(p) = &v.plan else { return String::new() };
    let p = &p.values;
    let profile = match p.profile {
        Profile::Article => "article",
        Profile::Strict => "strict",
    };
    let basis = match p.ceiling_basis {
        CeilingBasis::Day => "",
        CeilingBasis::Window => " of the whole window",
    };
    format!(
        "{} {profile}: B {}{basis}, {} of at most {} days, ≥ {} calls, last {} days < {} of B",
        p.tier.as_str(),
        p.ceiling.percent(),
        p.counted_days,
        p.max_scored_days,
        grouped(p.min_calls),
        p.decay.days,
        p.decay.fraction.percent()
    )
}

fn earlier(v: &Verdict) -> String {
    let line = |w: &lastcall_decision::EarlierWindow| {
        let verdict = w.verdict.as_deref().unwrap_or("no verdict");
        format!(
            "  registration {} of {} from {}: {}, {}\n",
            w.registration,
            plain(&w.candidate),
            w.scored_from,
            plain(verdict),
            plain(&w.ended)
        )
    };
    v.earlier_windows.iter().map(line).collect()
}

/// Several verdicts, one line each.
pub fn fleet_text(verdicts: &[Verdict], style: Style) -> String {
    let mut rows =
        vec![["verdict", "tool", "candidate", "closed", "calls", "D", "why"].map(str::to_owned).to_vec()];
    for v in verdicts {
        let why = v.problems.first().map(|p| p.reason).or_else(|| v.leading_check().map(|c| c.reason));
        rows.push(vec![
            v.verdict.as_str().to_owned(),
            plain(&v.tool_id),
            v.pair.as_ref().map_or_else(|| "–".to_owned(), |p| plain(&p.candidate)),
            format!(
                "{} days",
                v.days.iter().filter(|d| matches!(d.state, DayState::Counted | DayState::Scored)).count()
            ),
            grouped(v.totals.compared),
            percent_of(v.totals.counts.disagreed, v.totals.compared),
            why.map_or("every check passes", |r| r.as_str()).to_owned(),
        ]);
    }
    let text = table(&rows, &[false, false, false, true, true, true], "");
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        match i.checked_sub(1).and_then(|i| verdicts.get(i)) {
            Some(v) => {
                let word = v.verdict.as_str();
                out.push_str(&style.answer(v.verdict, word));
                out.push_str(line.get(word.len()..).unwrap_or_default());
            }
            None => out.push_str(&style.dim(line)),
        }
        out.push('\n');
    }
    out
}

/// A trial.
pub fn try_text(t: &TryReport, style: Style) -> String {
    let mut out = String::new();
    out.push_str(&format!("{}\n", style.bold(&plain(&t.headline()))));
    out.push_str(&style.dim(&format!(
        "{} → {}, calls from {}",
        plain(&t.old),
        plain(&t.new),
        plain(&t.source)
    )));
    out.push('\n');
    if let Some(rest) = t.beside() {
        out.push_str(&format!("Beside these: {rest}.\n"));
    }
    if !t.reasons.is_empty() {
        let reasons: Vec<String> =
            t.reasons.iter().map(|(r, n)| format!("{} {}", plain(r), grouped(*n))).collect();
        out.push_str(&format!("Reasons: {}.\n", reasons.join(", ")));
    }
    section(&mut out, "What differs", &try_categories(t), style);
    section(&mut out, "By caller", &try_callers(t), style);
    section(&mut out, "By day", &try_days(t), style);
    section(&mut out, "The worst calls", &try_worst(t), style);
    section(&mut out, "Had this been a burn-in", &try_burn_in(t), style);
    let notes: String = t.notes.iter().map(|l| format!("  {}\n", plain(l))).collect();
    section(&mut out, "Notes", &notes, style);
    out
}

fn try_days(t: &TryReport) -> String {
    if t.days.is_empty() {
        return String::new();
    }
    let mut rows = vec![["day (UTC)", "compared", "disagreed", "D", "refused"].map(str::to_owned).to_vec()];
    if let (Some(b), Some(head)) = (&t.burn_in, rows.first_mut()) {
        head.push(format!("B {}", plain(&b.ceiling)));
    }
    for d in &t.days {
        let mut row = vec![
            d.day.to_string(),
            grouped(d.compared),
            grouped(d.disagreed),
            percent_of(d.disagreed, d.compared),
            grouped(d.refused),
        ];
        if let Some(b) = &t.burn_in {
            let scored = b.days.iter().find(|s| s.day == d.day);
            row.push(
                match scored.map(|s| s.below) {
                    Some(Some(true)) => "below",
                    Some(Some(false)) => "not below",
                    Some(None) => "unknown",
                    None => "not scored",
                }
                .to_owned(),
            );
        }
        rows.push(row);
    }
    table(&rows, &[false, true, true, true, true, false], "  ")
}

/// Callers that are shown; the document has them all.
const CALLERS: usize = 12;

fn try_callers(t: &TryReport) -> String {
    if t.callers.is_empty() {
        return String::new();
    }
    type Part = fn(&TryCaller) -> &Option<String>;
    let all: [(&str, Part); 3] =
        [("agent", |c| &c.agent), ("prompt", |c| &c.prompt_version), ("model", |c| &c.model)];
    let parts: Vec<(&str, Part)> =
        all.into_iter().filter(|(_, part)| t.callers.iter().any(|c| part(c).is_some())).collect();
    let head = parts.iter().map(|(name, _)| *name).chain(["calls", "refused", "changed"]);
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    for c in t.callers.iter().take(CALLERS) {
        let names = parts.iter().map(|(_, part)| part(c).as_deref().map_or("-".to_owned(), plain));
        rows.push(names.chain([grouped(c.calls), grouped(c.refused), grouped(c.changed)]).collect());
    }
    let right: Vec<bool> = parts.iter().map(|_| false).chain([true; 3]).collect();
    let mut out = table(&rows, &right, "  ");
    if t.callers.len() > CALLERS {
        out.push_str(&format!("  and {} more\n", grouped((t.callers.len() - CALLERS) as u64)));
    }
    out
}

fn try_burn_in(t: &TryReport) -> String {
    let Some(b) = &t.burn_in else { return String::new() };
    let mut out = format!("  {}\n", plain(&b.says));
    if b.days.is_empty() {
        return out;
    }
    let over = b.days.iter().filter(|d| d.below == Some(false)).count();
    let silent = b.days.iter().filter(|d| d.below.is_none()).count();
    out.push_str(&format!(
        "  {}: D below {} on {} of {} days{}; {} of {} compared calls\n",
        plain(&b.tier),
        plain(&b.ceiling),
        b.days.len() - over - silent,
        b.days.len(),
        if silent == 0 { String::new() } else { format!(", unknown on {silent}") },
        grouped(b.compared),
        grouped(b.min_calls)
    ));
    let mut rows = vec![["check", "would have", "saw", "asks"].map(str::to_owned).to_vec()];
    rows.extend(
        b.checks.iter().map(|c| [&c.id, &c.would_have, &c.value, &c.threshold].map(|s| plain(s)).to_vec()),
    );
    out.push_str(&table(&rows, &[false, false, false, false], "  "));
    out
}

fn try_categories(t: &TryReport) -> String {
    if t.categories.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["severity", "category", "where", "calls", "refused", "schema"].map(str::to_owned).to_vec()];
    for c in &t.categories {
        let schema = match (&c.keyword, &c.location, &c.note) {
            (_, Some(l), Some(n)) => format!("{} ({})", plain(l), plain(n)),
            (_, Some(l), None) => plain(l),
            (Some(k), None, _) => plain(k),
            (None, None, Some(n)) => plain(n),
            (None, None, None) => String::new(),
        };
        rows.push(vec![
            plain(&c.severity),
            plain(&c.category),
            pointer(&c.pointer),
            grouped(c.calls),
            grouped(c.refused),
            schema,
        ]);
    }
    table(&rows, &[false, false, false, true, true, false], "  ")
}

fn try_worst(t: &TryReport) -> String {
    let mut out = String::new();
    for e in &t.worst {
        let named = [("agent", &e.agent), ("prompt", &e.prompt_version), ("model", &e.model)];
        let named: String = named
            .iter()
            .filter_map(|(what, name)| name.as_ref().map(|name| format!(", {what} {}", plain(name))))
            .collect();
        let id = if e.call_id.is_empty() { String::new() } else { format!(" {}", plain(&e.call_id)) };
        out.push_str(&format!("  {}{id}{named}\n", plain(&e.place)));
        for f in &e.findings {
            let refused = if f.refused { ", refused" } else { "" };
            let value = f.value.as_ref().map_or(String::new(), |v| format!(" = {}", plain(v)));
            let note = f.note.as_ref().map_or(String::new(), |n| format!(" ({})", plain(n)));
            out.push_str(&format!(
                "    {} {} at {}{value}{refused}{note}\n",
                plain(&f.severity),
                plain(&f.category),
                pointer(&f.pointer)
            ));
        }
    }
    out
}
