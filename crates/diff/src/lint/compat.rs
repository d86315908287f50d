//! The newest version of a tool against the one before it. Rules only: whether a change breaks a call is the diff's.

use std::collections::BTreeSet;

use lastcall_contract::{Definition, Tool, ToolVersion};
use serde_json::Value;

use super::nodes::places;
use super::rules::{RuleId as R, Severity};
use super::{Found, Report};
use crate::doc::SchemaDoc;
use crate::places::{PlaceKind, changed_places, properties};
use crate::pointer::{escape, join_name, tokens};
use crate::rename::{Rename, inferred_renames};

pub(super) fn check(tool: &Tool, out: &mut Vec<Found>) {
    let [.., old, new] = tool.versions.as_slice() else { return };
    let (before, now) = (&old.contract.definition, &new.contract.definition);
    let mut report = Report::new(&new.contract.id, &new.file, &now.pointer);
    let major = |v: &ToolVersion| v.version.split('.').next().and_then(|n| n.parse::<u64>().ok());
    let announced = matches!((major(old), major(new)), (Some(a), Some(b)) if b > a);
    arguments(&old.version, before, now, &mut report);
    results(&old.version, before, now, &mut report);
    if announced {
        for found in &mut report.found {
            found.severity = Severity::Note;
            found.message.push_str("; announced by a major version");
        }
    }
    if !report.found.is_empty() {
        let message = format!(
            "whether callers of {} and stored sessions are affected is only to be seen from their calls",
            old.contract.id
        );
        report.add(R::SessionsAffected, "", message);
    }
    if !tool.errors.is_empty() {
        let message = format!(
            "whether the error codes of {} mean in {} what they meant before is the owner's to say",
            tool.tool_id, new.version
        );
        report.add(R::ErrorSemantics, "", message);
    }
    out.append(&mut report.found);
}

/// A pointer into the arguments as a pointer into the definition, as far as the schema spells it out.
fn schema_pointer(definition: &Definition, instance: &str) -> String {
    let mut out = places(definition).1;
    for token in tokens(instance) {
        let index = token == "*" || token.bytes().all(|b| b.is_ascii_digit());
        out.push_str(&if index { "/items".to_owned() } else { format!("/properties/{}", escape(&token)) });
    }
    out
}

fn arguments(version: &str, before: &Definition, now: &Definition, report: &mut Report<'_>) {
    let old = SchemaDoc::of_draft(before.input_schema.clone(), before.draft);
    let new = SchemaDoc::of_draft(now.input_schema.clone(), now.draft);
    let renames: Vec<Rename> = inferred_renames(&old, &new).into_iter().map(|r| r.rename).collect();
    for rename in &renames {
        let message = format!("`{}` of {version} is `{}` now", rename.from, rename.to);
        report.add(R::ArgumentRenamed, &schema_pointer(now, &rename.to), message);
    }
    let changed = changed_places(&old, &new);
    if changed.cut {
        let message = format!(
            "the arguments change at more than the {} places that are compared with {version}: what lies beyond is not told",
            changed.places.len()
        );
        report.add(R::SessionsAffected, &schema_pointer(now, ""), message);
    }
    for place in changed.places {
        let at = schema_pointer(now, &place.pointer);
        let name = if place.pointer.is_empty() { "the arguments" } else { &place.pointer };
        let (rule, message) = match place.kind {
            PlaceKind::RequiredAdded => (R::RequiredAdded, format!("`{name}` was not required in {version}")),
            PlaceKind::PropertyRemoved if !renames.iter().any(|r| r.from == place.pointer) => {
                (R::ArgumentRemoved, format!("`{name}` of {version} is no longer declared"))
            }
            PlaceKind::TypeNarrowed => (R::ArgumentRetyped, format!("`{name}` had more types in {version}")),
            PlaceKind::EnumValueRemoved => {
                let what = match &place.detail {
                    Some(value) => format!("`{name}` no longer takes {value} of {version}"),
                    None => format!("`{name}` took any value in {version}, now listed ones only"),
                };
                (R::EnumNarrowed, what)
            }
            PlaceKind::DefaultChanged => {
                (R::DefaultChanged, format!("`{name}` had another default in {version}"))
            }
            _ => continue,
        };
        report.add(rule, &at, message);
    }
}

fn results(version: &str, before: &Definition, now: &Definition, report: &mut Report<'_>) {
    let Some(old) = &before.output_schema else { return };
    let Some(new) = &now.output_schema else {
        report.add(R::ResultMoved, "", format!("{version} described its result, and this version does not"));
        return;
    };
    let paths = |schema: &Value, draft| {
        let doc = SchemaDoc::of_draft(schema.clone(), draft);
        let mut out = BTreeSet::new();
        collect(&doc, &[doc.root()], String::new(), &mut out);
        out
    };
    let (old, new) = (paths(old, before.output_draft), paths(new, now.output_draft));
    for path in old.difference(&new) {
        // a path below one that is gone says nothing more
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if parent.is_empty() || new.contains(parent) || !old.contains(parent) {
            report.add(
                R::ResultMoved,
                "/outputSchema",
                format!("the result has no `{path}` any more, as in {version}"),
            );
        }
    }
}

/// The paths that a result declares.
fn collect(doc: &SchemaDoc, nodes: &[&Value], at: String, out: &mut BTreeSet<String>) {
    if at.matches('/').count() > 12 || out.len() > 10_000 {
        return;
    }
    let mut all = Vec::new();
    nodes.iter().for_each(|n| doc.conjuncts(n, &mut all));
    for (name, nodes) in properties(&all) {
        let below = join_name(&at, name);
        out.insert(below.clone());
        collect(doc, &nodes, below, out);
    }
    let items: Vec<&Value> = all.iter().filter_map(|n| n.get("items")).filter(|v| v.is_object()).collect();
    if !items.is_empty() {
        let below = format!("{at}/*");
        out.insert(below.clone());
        collect(doc, &items, below, out);
    }
}
