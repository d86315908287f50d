//! `lastcall plan register TOOL`: fixes plan, pair and first scored day in the control chain.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use lastcall_compare::{PairConfig, PreparedPair};
use lastcall_contract::{Contract, Digest};
use lastcall_decision::{Plan, Tier};
use lastcall_diff::{DiffOptions, diff_contracts};
use lastcall_event::{Day, Timestamp};
use lastcall_ledger::control::{Control, Pair, Role};
use lastcall_ledger::state::{ControlState, Registration, matches};
use lastcall_ledger::{Ledger, LedgerError};
use lastcall_report::TryReport;

use super::super::contract::load_registry;
use super::super::ledger::{of_ledger, open};
use super::super::try_calls::{Reading, Showing, Trial};
use super::{RegistryArg, observed_pair, read_text};
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall plan register search --registry agent-tools --ledger ledger\n  \
    lastcall plan register search --policy release-policy.yaml --from 2026-06-01 --by ana --ledger ledger\n  \
    lastcall plan register search --registry agent-tools --ledger ledger --try traces/\n\n\
    The shortest policy is `burn_in: {tier: T2, profile: article}`. From then on nothing can be changed without\n\
    ending the window: plan, pair, configuration and comparator are fixed by their digests.")]
pub struct Args {
    /// The tool; its pair has to be observed (see `lastcall plan observe`).
    tool: String,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    /// The plan, a release-policy.yaml.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArg,
    /// First scored UTC day [the next one]. A simulated ledger without a clock record needs it.
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    from: Option<Day>,
    /// Which candidate, where several are observed.
    #[arg(long, value_name = "CONTRACT")]
    candidate: Option<String>,
    /// Only this cohort's calls count.
    #[arg(long, value_name = "NAME")]
    cohort: Option<String>,
    /// Only these sources count; `*` at the end matches any rest [every source].
    #[arg(long = "source", value_name = "NAME")]
    sources: Vec<String>,
    /// Who registers.
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// End the tool's open window, whatever it has shown, and begin a new one.
    #[arg(long)]
    replace: bool,
    /// Try these calls beforehand and store what they show: a file or a folder, as `lastcall try` reads them [the
    /// ledger's archived calls of the tool, if there are any].
    #[arg(long = "try", value_name = "CALLS")]
    calls: Option<PathBuf>,
    /// Try nothing beforehand.
    #[arg(long, conflicts_with = "calls")]
    no_try: bool,
    /// Check everything and write nothing.
    #[arg(long)]
    dry_run: bool,
}

fn parse_day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| "a UTC day such as 2026-06-01".to_owned())
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut plan = plan(args)?;
    match (&plan.cohort, &args.cohort) {
        (Some(plan), Some(given)) if plan != given => {
            bail!("the plan is for cohort `{plan}`, and --cohort says `{given}`; drop one of them");
        }
        (None, Some(given)) => plan.cohort = Some(given.clone()),
        _ => {}
    }
    let ledger = open(&args.ledger)?;
    let bytes = plan.canonical().context("the plan has no canonical form")?;
    let digest = Digest::of(&bytes);
    let now = ledger.now().map_err(of_ledger)?;
    let scored_from = scored_from(args.from, now)?;
    let control = ledger.control_now().map_err(of_ledger)?;
    let pair = observed_pair(&control, &args.tool, args.candidate.as_deref())?;
    let sources = if args.sources.is_empty() { vec!["*".to_owned()] } else { args.sources.clone() };
    check_sources(&control, &sources, &plan)?;
    let open_window = open_window(&control, &pair, plan.cohort.as_deref()).cloned();
    if let Some(r) = &open_window
        && !args.replace
    {
        bail!(
            "registration {} of {} scores `{}` since {}; one window at a time. --replace ends it, and the verdict will \
             show that it was there",
            r.seq,
            r.pair.candidate,
            args.tool,
            r.scored_from
        );
    }
    let contracts = lastcall_record::plant::contracts(&ledger, &pair)?;
    let diff = diff_contracts(&contracts.0, &contracts.1, &DiffOptions::default())?;
    let trial = trial(args, &ledger, &pair, &plan, &contracts)?.map(without_ids);
    if !args.dry_run {
        ledger.put_object(&bytes).map_err(of_ledger)?;
        let diff = Some(store(&ledger, &diff)?);
        let trial = trial.as_ref().map(|report| store(&ledger, report)).transpose()?;
        if let Some(r) = &open_window {
            let reason = "replaced by a new registration".to_owned();
            ledger.append_control(Control::EndWindow { registration: r.seq, reason }).map_err(of_ledger)?;
        }
        let fixed =
            Fixed { pair: &pair, plan: &plan, digest: &digest, scored_from, sources: &sources, trial, diff };
        let seq = append(&ledger, args, &fixed)?;
        println!("registration {seq}: {} → {}", pair.current, pair.candidate);
    } else {
        println!("would register {} → {}", pair.current, pair.candidate);
    }
    println!(
        "scores from {scored_from}: {} article, ceiling {}, {} counted days of at most {}, at least {} calls, plan {}",
        plan.tier.as_str(),
        plan.ceiling.percent(),
        plan.counted_days,
        plan.max_scored_days,
        plan.min_calls,
        digest.short()
    );
    const USED: [&str; 9] = [
        "tier",
        "profile",
        "ceiling",
        "ceiling_basis",
        "counted_days",
        "max_scored_days",
        "min_calls",
        "decay",
        "lateness",
    ];
    for key in plan.overrides().keys().filter(|key| !USED.contains(&key.as_str())) {
        tell!("note: `{key}` is fixed with the plan, but profile article does not look at it");
    }
    println!("diff: {}", diff.sentence);
    if let Some(report) = &trial {
        tell(report, &args.tool);
    }
    let (read, ledger) = (super::reading(&args.ledger), args.ledger.display());
    println!("next: {read}, then lastcall decide {} --ledger {ledger}", args.tool);
    Ok(Exit::Yes)
}

/// What calls from before show: of the named file or folder, else of the ledger's archive; `None` where there is none.
fn trial(
    args: &Args,
    ledger: &Ledger,
    pair: &Pair,
    plan: &Plan,
    (old, new, config): &(Contract, Contract, PairConfig),
) -> anyhow::Result<Option<TryReport>> {
    if args.no_try {
        return Ok(None);
    }
    let prepared = PreparedPair::new(old, new, config)?;
    let trial = Trial {
        pair: &prepared,
        old,
        new,
        labels: (&pair.current, &pair.candidate),
        tool: None,
        current: Some(&pair.current),
        candidate_registered: true,
        showing: Showing { examples: 5, values: false },
        plan: Some(plan),
    };
    if let Some(calls) = &args.calls {
        return trial.of_files(calls, &Reading::of(None, None)?).map(Some);
    }
    match trial.of_ledger(ledger) {
        Ok(report) => Ok((report.calls > 0).then_some(report)),
        Err(error) => {
            tell!("note: the archived calls could not be tried, so nothing of them is stored: {error:#}");
            Ok(None)
        }
    }
}

/// Puts a document into the ledger's objects.
/// What is stored of a trial: its worst calls by their places, not by their ids, which an erasure could not reach here.
fn without_ids(mut report: TryReport) -> TryReport {
    report.worst.iter_mut().for_each(|example| example.call_id = String::new());
    report
}

fn store<T: serde::Serialize>(ledger: &Ledger, document: &T) -> anyhow::Result<Digest> {
    let bytes = lastcall_decision::canonical_json(document)?;
    ledger.put_object(&bytes).map_err(of_ledger)
}

fn tell(report: &TryReport, tool: &str) {
    println!("tried before: {} ({})", report.headline(), report.source);
    if let Some(burn_in) = &report.burn_in {
        println!("{}", burn_in.says);
    }
    if report.no_call_could_pass() {
        tell!(
            "warning: none of the {} calls that were tried would agree ({} disagree, {} are refused by both, {} are left \
             out, {} cannot be judged), so a window of such calls cannot pass. Look before scored days are spent: \
             lastcall plan show {tool} --trial",
            report.calls,
            report.disagreed,
            report.both_rejected,
            report.excluded,
            report.unresolved
        );
    }
}

/// What the entry fixes.
struct Fixed<'a> {
    pair: &'a Pair,
    plan: &'a Plan,
    digest: &'a Digest,
    scored_from: Day,
    sources: &'a [String],
    trial: Option<Digest>,
    diff: Option<Digest>,
}

/// Appends the entry; what it rests on is checked again if somebody was faster.
fn append(ledger: &Ledger, args: &Args, fixed: &Fixed<'_>) -> anyhow::Result<u64> {
    let Fixed { pair, plan, digest, scored_from, sources, trial, diff } = fixed;
    let (seq, _) = ledger
        .append_control_with(|state| {
            if !state.observed.iter().any(|o| o.pair == **pair) {
                return Err(LedgerError::Refused(format!(
                    "{} is no longer observed; nothing was fixed",
                    pair.candidate
                )));
            }
            if let Some(r) = open_window(state, pair, plan.cohort.as_deref()) {
                return Err(LedgerError::Refused(format!(
                    "registration {} was faster; nothing was fixed",
                    r.seq
                )));
            }
            Ok(Control::Register {
                plan: (*digest).clone(),
                pair: (*pair).clone(),
                scored_from: *scored_from,
                sources: sources.to_vec(),
                cohort: plan.cohort.clone(),
                by: args.by.clone(),
                trial: trial.clone(),
                diff: diff.clone(),
            })
        })
        .map_err(of_ledger)?;
    Ok(seq)
}

/// The open window of the same tool, current contract and cohort.
fn open_window<'c>(control: &'c ControlState, pair: &Pair, cohort: Option<&str>) -> Option<&'c Registration> {
    control.registrations.iter().find(|r| {
        r.end.is_none()
            && r.pair.tool_id == pair.tool_id
            && r.pair.current == pair.current
            && r.cohort.as_deref() == cohort
    })
}

fn plan(args: &Args) -> anyhow::Result<Plan> {
    let registry = match &args.registry.registry {
        Some(dir) => Some(load_registry(dir)?),
        None => None,
    };
    let tool = registry.as_ref().and_then(|r| r.tool(&args.tool));
    let plan = if let Some(path) = &args.policy {
        Plan::parse(&read_text(path)?, &path.display().to_string())?
    } else if let (Some(tool), Some(dir)) = (tool, &args.registry.registry) {
        let place = dir.join(&tool.tool_id).join("release-policy.yaml").display().to_string();
        let Some(text) = &tool.release_policy else {
            let tier = Tier::suggest(tool.side_effect.as_str(), tool.risk_level.as_str());
            bail!(
                "{place} is absent; for a {} tool of {} risk begin with \
                 `burn_in: {{tier: {}, profile: article}}`",
                tool.side_effect.as_str(),
                tool.risk_level.as_str(),
                tier.as_str()
            );
        };
        Plan::parse(text, &place)?
    } else if let Some(dir) = &args.registry.registry {
        bail!(
            "the registry {0} has no tool `{1}`; `lastcall contract list --registry {0}` shows what there is",
            dir.display(),
            args.tool
        );
    } else {
        bail!(
            "there is no plan: give --policy release-policy.yaml, or --registry DIR with one beside the tool"
        );
    };
    if let Some(tool) = tool {
        let tier = Tier::suggest(tool.side_effect.as_str(), tool.risk_level.as_str());
        if plan.tier < tier {
            tell!(
                "note: {} is the tier of the plan; for a {} tool of {} risk {} is suggested",
                plan.tier.as_str(),
                tool.side_effect.as_str(),
                tool.risk_level.as_str(),
                tier.as_str()
            );
        }
    }
    Ok(plan)
}

/// The next UTC day of the ledger's time, or a later stated one.
fn scored_from(stated: Option<Day>, now: Option<Timestamp>) -> anyhow::Result<Day> {
    let next = now.map(|t| t.day().plus(1));
    match (stated, next) {
        (Some(day), Some(next)) if day < next => bail!(
            "--from {day} is not after today ({} in the ledger's time): what has begun cannot be scored. \
             The earliest is {next}; calls from before can be tried with `lastcall try`",
            next.plus(-1)
        ),
        (Some(day), _) => Ok(day),
        (None, Some(next)) => Ok(next),
        (None, None) => bail!(
            "this ledger is simulated and has no clock record in every partition yet, so there is no today; say \
             --from DAY"
        ),
    }
}

/// Roles are exclusive within a window, and days close by the sources' own lateness.
fn check_sources(control: &ControlState, patterns: &[String], plan: &Plan) -> anyhow::Result<()> {
    let named: Vec<_> =
        control.sources.values().filter(|s| patterns.iter().any(|p| matches(p, &s.name))).collect();
    if let Some(pattern) = patterns.iter().find(|p| !p.ends_with('*') && !control.sources.contains_key(*p)) {
        tell!("note: no source `{pattern}` is registered yet; days stay open until it is");
    }
    let of = |role: Role| named.iter().find(|s| s.role == role).map(|s| s.name.as_str());
    if let (Some(calls), Some(mirrored)) = (of(Role::ToolCalls), of(Role::MirroredCalls)) {
        bail!(
            "`{calls}` has production calls and `{mirrored}` mirrored calls; in one window each call would count \
             twice. Name the sources with --source"
        );
    }
    for source in named.iter().filter(|s| s.lateness_ms < plan.lateness.ms) {
        tell!(
            "note: days of `{}` close {} s after their end, the plan says {}; the source's own holds",
            source.name,
            source.lateness_ms / 1000,
            plan.lateness
        );
    }
    Ok(())
}
