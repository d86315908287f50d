//! Findings for people and for machines.

use std::collections::BTreeMap;

use lastcall_diff::lint::{Found, Group, RULES, Rule, Severity};
use lastcall_report::findings::{self, Finding, Findings, Level, Outcome, Region, Subject};
use lastcall_report::plain;
use serde_json::{Value, json};

use super::Args;
use super::gather::Batch;
use crate::ui::Format;
use crate::ui::count;

/// Prints the findings in the format that was asked for.
pub(super) fn print(batch: &Batch, args: &Args) -> anyhow::Result<()> {
    let all = neutral_form(batch, args);
    match args.format {
        Format::Text => print!("{}", text(&all, batch)),
        Format::Json => print!("{}", lastcall_report::to_json(&json(&all, batch))?),
        Format::Markdown => print!("{}", findings::markdown(&all)),
        Format::Sarif => println!("{}", findings::sarif(&all)?),
        Format::Junit => println!("{}", findings::junit(&all).map_err(anyhow::Error::msg)?),
        Format::Github => print!("{}", findings::github(&all)),
    }
    Ok(())
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Note => Level::Note,
        Severity::Warning => Level::Warning,
        Severity::Error => Level::Error,
    }
}

/// The neutral form, with places in the text.
fn neutral_form(batch: &Batch, args: &Args) -> Findings {
    let shown: Vec<&Found> = batch.found.iter().filter(|f| f.severity >= args.level.severity()).collect();
    let mut rules: Vec<&Rule> = shown.iter().map(|f| f.rule).collect();
    rules.sort_by_key(|r| r.id);
    rules.dedup_by_key(|r| r.id);
    let subjects = batch.subjects.iter().map(|(name, file)| {
        let fails: Vec<&&Found> = shown
            .iter()
            .filter(|f| f.subject == *name && (file.is_empty() || f.file == *file))
            .filter(|f| f.severity >= args.fail_on.severity())
            .collect();
        let outcome = match fails.first() {
            None => Outcome::Passed,
            Some(first) => Outcome::Failed {
                kind: first.rule.name.to_owned(),
                message: format!("{}: {}", count(fails.len(), first.severity.as_str()), first.message),
            },
        };
        Subject { name: name.clone(), file: file.clone(), outcome }
    });
    let unread = batch.unread.iter().map(|(file, error)| Subject {
        name: file.clone(),
        file: file.clone(),
        outcome: Outcome::CouldNotRun { message: format!("{error:#}") },
    });
    let mut all = Findings {
        command: "lint".to_owned(),
        headline: headline(batch),
        subjects: subjects.chain(unread).collect(),
        rules: rules.into_iter().map(neutral).collect(),
        findings: shown
            .iter()
            .map(|f| Finding {
                rule: f.rule.name.to_owned(),
                level: level(f.severity),
                subject: f.subject.clone(),
                file: f.file.clone(),
                pointer: f.pointer.clone(),
                region: None,
                message: f.message.clone(),
                fix: Some(f.fix.clone()),
            })
            .collect(),
    };
    let json: BTreeMap<String, String> = batch
        .texts
        .iter()
        .filter(|(file, _)| !file.ends_with("ml"))
        .map(|(f, t)| (f.clone(), t.clone()))
        .collect();
    all.locate(&json);
    for (finding, found) in all.findings.iter_mut().zip(&shown) {
        if let Some(line) = found.line.map(|n| n as usize) {
            finding.region = Some(Region { line, column: 1, end_line: line, end_column: 1 });
        }
    }
    all
}

fn neutral(rule: &Rule) -> findings::Rule {
    findings::Rule {
        id: rule.name.to_owned(),
        summary: rule.summary.to_owned(),
        help: format!("{} {}. {}", rule.id, rule.why, rule.fix),
        level: level(rule.severity),
    }
}

fn headline(batch: &Batch) -> String {
    let of = |severity| batch.found.iter().filter(|f| f.severity == severity).count();
    let definitions = batch.subjects.iter().filter(|(_, file)| !file.is_empty()).count();
    let mut out = format!(
        "{}, {}, {} in {}",
        count(of(Severity::Error), "error"),
        count(of(Severity::Warning), "warning"),
        count(of(Severity::Note), "note"),
        count(definitions, "definition")
    );
    let fixable =
        batch.found.iter().filter(|f| !f.edits.is_empty() && !batch.frozen.contains_key(&f.file)).count();
    if fixable > 0 {
        out.push_str(&format!("; --fix can mend {fixable}"));
    }
    if batch.allowed > 0 {
        out.push_str(&format!("; {} allowed by tool.yaml", batch.allowed));
    }
    if !batch.unread.is_empty() {
        out.push_str(&format!("; {} could not be read", count(batch.unread.len(), "file")));
    }
    out
}

fn text(all: &Findings, batch: &Batch) -> String {
    let mut out = String::new();
    let mut before = ("", "");
    // by subject as they come, the worst first in each, then by place
    let first = |f: &Finding| all.findings.iter().position(|o| o.subject == f.subject && o.file == f.file);
    let mut ordered: Vec<(Option<usize>, &Finding)> = all.findings.iter().map(|f| (first(f), f)).collect();
    ordered.sort_by_key(|(n, f)| (*n, std::cmp::Reverse(f.level), f.region.map(|r| (r.line, r.column))));
    for (_, finding) in ordered {
        if before != (finding.subject.as_str(), finding.file.as_str()) {
            let space = if out.is_empty() { "" } else { "\n" };
            let name = plain(&finding.subject);
            // at the start of a line `::` would be a command to GitHub Actions
            let name = if name.trim_start().starts_with("::") { format!("`{name}`") } else { name };
            out.push_str(&format!("{space}{name}  {}\n", plain(&finding.file)));
            before = (&finding.subject, &finding.file);
        }
        let place = match finding.region {
            Some(r) => format!("{}:{}", r.line, r.column),
            None => "-".to_owned(),
        };
        let id = Rule::find(&finding.rule).map_or("", |r| r.id);
        out.push_str(&format!(
            "  {:<7} {place:<8} {id} {}: {}.\n          {}.\n",
            finding.level.as_str(),
            finding.rule,
            plain(&finding.message),
            plain(finding.fix.as_deref().unwrap_or_default())
        ));
    }
    let space = if out.is_empty() { "" } else { "\n" };
    out.push_str(&format!("{space}{}\n", headline(batch)));
    out
}

fn json(all: &Findings, batch: &Batch) -> Value {
    let of = |level| all.findings.iter().filter(|f| f.level == level).count();
    let findings: Vec<Value> = all
        .findings
        .iter()
        .map(|f| {
            let rule = Rule::find(&f.rule);
            json!({"rule": f.rule, "id": rule.map(|r| r.id), "severity": f.level.as_str(), "subject": f.subject,
                "file": f.file, "pointer": f.pointer, "line": f.region.map(|r| r.line),
                "column": f.region.map(|r| r.column), "message": f.message, "fix": f.fix,
                "fixable": rule.is_some_and(|r| r.fixable)})
        })
        .collect();
    let unread: Vec<Value> = batch
        .unread
        .iter()
        .map(|(file, error)| json!({"file": file, "message": format!("{error:#}")}))
        .collect();
    json!({"headline": all.headline, "unread": unread, "errors": of(Level::Error), "warnings": of(Level::Warning),
        "notes": of(Level::Note), "allowed": batch.allowed, "findings": findings})
}

/// Every rule on one line.
pub(super) fn rules() -> String {
    let mut out = String::new();
    for group in Group::ALL {
        out.push_str(&format!("{}\n", group.as_str()));
        for rule in RULES.iter().filter(|r| r.group == group) {
            let fix = if rule.fixable { " [--fix]" } else { "" };
            out.push_str(&format!(
                "  {} {:<7} {:<28} {}{fix}\n",
                rule.id,
                rule.severity.as_str(),
                rule.name,
                rule.summary
            ));
        }
    }
    out
}

/// One rule in full.
pub(super) fn explanation(rule: &Rule) -> String {
    let fix = if rule.fixable { "; `--fix` can mend it where that is safe" } else { "" };
    format!(
        "{} {} ({}, {}{fix})\n\n{}.\n\nWhy: {}\nWhat to do: {}.\n",
        rule.id,
        rule.name,
        rule.severity.as_str(),
        rule.group.as_str(),
        rule.summary,
        rule.why,
        rule.fix
    )
}
