//! What stands in a registry beside the definitions.

use std::collections::BTreeSet;

use lastcall_contract::registry::{Problem, RegistryFiles};
use lastcall_contract::{Registry, RiskLevel, SideEffect, Tool};
use serde_json::Value;

use super::rules::{Rule, RuleId as R};
use super::words::{DOMAINS, words};
use super::{Found, Known, Profile, Report, compat, lint_definition, sorted};

/// Lints a registry that was read. Definitions are judged in every version that is not deprecated; the newest version is
/// held against the one before it. Answers the findings and how many `lint: allow` in tool.yaml took away.
pub fn lint_registry(
    files: &RegistryFiles,
    registry: &Registry,
    profiles: &[Profile],
) -> (Vec<Found>, usize) {
    let (mut all, mut allowed) = (Vec::new(), 0);
    for tool in registry.tools() {
        let mut found = Vec::new();
        let known = Known {
            side_effect: tool.stated.1.then_some(tool.side_effect),
            registered: true,
            profiles: profiles.to_vec(),
        };
        for version in tool.versions.iter().filter(|v| !v.deprecated) {
            let definition = &version.contract.definition;
            for mut one in lint_definition(definition, &known) {
                one.subject = version.contract.id.clone();
                one.file = version.file.clone();
                found.push(one);
            }
        }
        let file = tool_file(files, tool);
        let text = files.get(&file).map(String::as_str).unwrap_or_default();
        facts(tool, registry, &file, text, &mut found);
        for (rule, _) in tool.lint_allow.iter().filter(|(rule, _)| Rule::find(rule).is_none()) {
            let mut report = Report::new(&tool.tool_id, &file, "");
            let place =
                report.add(R::RegistryBroken, "", format!("`lint: allow` names `{rule}`, which is no rule"));
            place.fix = "`lastcall lint --rules` lists them".to_owned();
            place.line = line_of(text, rule);
            found.extend(report.found);
        }
        compat::check(tool, &mut found);
        let before = found.len();
        found.retain(|f| {
            !tool.lint_allow.iter().any(|(rule, _)| Rule::find(rule).is_some_and(|r| r.id == f.rule.id))
        });
        allowed += before - found.len();
        all.extend(found);
    }
    (sorted(all), allowed)
}

/// A problem of a registry that does not hold together, as a finding.
pub fn problem_place(problem: &Problem) -> Found {
    let (file, line, pointer) = match problem.place.split_once(" at ") {
        Some((file, pointer)) => (file.to_owned(), None, pointer.to_owned()),
        None => {
            let mut parts = problem.place.split(':');
            let file = parts.next().unwrap_or_default().to_owned();
            (file, parts.next().and_then(|n| n.parse().ok()), String::new())
        }
    };
    let mut report = Report::new("registry", &file, "");
    let found = report.add(R::RegistryBroken, &pointer, problem.message.clone());
    found.fix = problem.next.clone();
    found.line = line;
    report.found.swap_remove(0)
}

/// The YAML that describes a tool: its folder's, else a flat entry that names it.
fn tool_file(files: &RegistryFiles, tool: &Tool) -> String {
    let own = format!("{}/tool.yaml", tool.tool_id);
    if files.contains_key(&own) {
        return own;
    }
    let names = |text: &str| {
        text.lines().any(|l| l.trim_start().starts_with("tool_id:") && l.contains(&tool.tool_id))
    };
    files
        .iter()
        .find(|(path, text)| path.ends_with(".yaml") && names(text))
        .map_or(own, |(path, _)| path.clone())
}

/// The first line that has this text.
fn line_of(text: &str, what: &str) -> Option<u32> {
    text.lines().position(|l| l.contains(what)).and_then(|n| u32::try_from(n + 1).ok())
}

fn facts(tool: &Tool, registry: &Registry, file: &str, text: &str, out: &mut Vec<Found>) {
    let id = &tool.tool_id;
    let mut report = Report::new(id, file, "");
    let mut add = |rule, message: String, near: &str| {
        report.add(rule, "", message).line = line_of(text, near).or(Some(1));
    };
    let numbered = |w: &String| {
        w.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    if words(id).iter().any(numbered) {
        add(R::ToolIdCarriesVersion, format!("the id `{id}` carries a version"), "tool_id:");
    }
    if tool.owner.is_none() {
        add(R::OwnerMissing, format!("`{id}` has no owner"), "owner:");
    }
    if !tool.stated.0 {
        add(R::RiskLevelMissing, format!("`{id}` has no risk level"), "risk_level:");
    }
    if !tool.stated.1 {
        add(R::SideEffectMissing, format!("`{id}` does not say what it does to the world"), "side_effect:");
    }
    let risky = tool.stated.0 && tool.risk_level >= RiskLevel::High;
    if risky && tool.approvers.is_empty() {
        let message =
            format!("`{id}` is of {} risk and names nobody who may approve", tool.risk_level.as_str());
        add(R::ApproverMissing, message, "risk_level:");
    }
    if tool.consumers.is_empty() {
        add(R::ConsumersMissing, format!("`{id}` does not say which agents use it"), "consumers:");
    }
    let name = tool.latest().map_or("", |v| v.contract.definition.name.as_str());
    let spoken: BTreeSet<String> = words(id).into_iter().chain(words(name)).collect();
    let sounds = DOMAINS.iter().find(|(_, betray)| betray.iter().any(|w| spoken.contains(*w)));
    if let Some((domain, _)) = sounds
        && tool.domains.is_empty()
        && (!tool.stated.1 || tool.side_effect != SideEffect::Read)
    {
        add(R::DomainUndeclared, format!("`{id}` sounds like {domain} and declares no domain"), "domains:");
    }
    if tool.errors.is_empty() {
        add(R::ErrorCodesMissing, format!("`{id}` lists no error codes"), "errors:");
    }
    let mut seen = BTreeSet::new();
    for error in &tool.errors {
        if error.category.as_deref().is_none_or(|c| c.trim().is_empty()) {
            add(
                R::ErrorCategoryMissing,
                format!("the error code `{}` has no category", error.code),
                &error.code,
            );
        }
        if error.retryable.is_none() {
            let message = format!("the error code `{}` does not say whether to try again", error.code);
            add(R::ErrorRetryUnstated, message, &error.code);
        }
        if !seen.insert(error.code.as_str()) {
            add(
                R::ErrorCodeRepeated,
                format!("the error code `{}` is listed twice", error.code),
                &error.code,
            );
        }
    }
    let several = tool.versions.len() > 1;
    let claims = &tool.compatibility;
    let marked = tool.versions.iter().any(|v| v.deprecated)
        || !claims.compatible_with.is_empty()
        || !claims.deprecated_versions.is_empty();
    if several && !marked {
        let message = format!("none of the older versions of `{id}` is deprecated or stated as compatible");
        add(R::DeprecatedUnmarked, message, "versions:");
    }
    match (&tool.changelog, tool.latest()) {
        (None, _) if several => {
            add(
                R::ChangelogMissing,
                format!("`{id}` has {} versions and no changelog", tool.versions.len()),
                "versions:",
            );
        }
        (Some(changelog), Some(latest)) if !changelog.contains(&latest.version) => {
            let message = format!("the changelog of `{id}` does not mention {}", latest.version);
            add(R::ChangelogVersionMissing, message, &latest.version);
        }
        _ => {}
    }
    out.append(&mut report.found);
    for version in &tool.versions {
        let contract = &version.contract;
        let mut report = Report::new(&contract.id, &version.file, "");
        let parts: Vec<&str> =
            version.version.split(['-', '+']).next().unwrap_or_default().split('.').collect();
        if parts.len() != 3 || !parts.iter().all(|p| p.parse::<u64>().is_ok()) {
            report.add(R::VersionNotSemver, "", format!("`{}` is not MAJOR.MINOR.PATCH", version.version));
        }
        match registry.lock().get(&contract.id) {
            None if !version.deprecated => {
                let found = report.add(R::NotFrozen, "", format!("{} is not frozen", contract.id));
                found.fix =
                    format!("Freeze it when it is published: `lastcall contract freeze {}`", contract.id);
            }
            Some(frozen) if *frozen != contract.digest => {
                report.add(R::FrozenChanged, "", format!("{} is frozen and was changed", contract.id));
            }
            _ => {}
        }
        out.append(&mut report.found);
    }
    if let Some(latest) = tool.latest()
        && tool.stated.1
    {
        let definition = &latest.contract.definition;
        let hint =
            |key: &str| definition.annotations.as_ref().and_then(|a| a.get(key)).and_then(Value::as_bool);
        let contradicts = match tool.side_effect {
            SideEffect::Read => hint("readOnlyHint") == Some(false) && hint("destructiveHint") == Some(true),
            SideEffect::Write | SideEffect::Send => hint("readOnlyHint") == Some(true),
        };
        if contradicts {
            let mut report = Report::new(&latest.contract.id, &latest.file, &definition.pointer);
            let message = format!("the annotations contradict `side_effect: {}`", tool.side_effect.as_str());
            report.add(R::SideEffectContradicted, "/annotations", message);
            out.append(&mut report.found);
        }
    }
}
