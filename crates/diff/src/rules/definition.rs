//! Changes of a definition outside its schemas: name, text, strict, annotations, provider, result, error codes.

use lastcall_contract::{Contract, Source};
use serde_json::{Value, json};

use super::words::shown;
use crate::change::{Change, ChangeKind as Kind, Side, WitnessCall};
use crate::class::{Backing, Bump, Class, Handling};
use crate::profile::Profile;
use crate::prove::Operand;
use crate::report::ToolFacts;
use crate::{Rng, WitnessFrom, valid};

/// A change that a rule alone classifies.
pub(crate) fn by_rule(
    kind: Kind,
    side: Side,
    pointer: &str,
    values: (Option<Value>, Option<Value>),
    class: Class,
    sentence: String,
) -> Change {
    Change {
        kind,
        side,
        pointer: pointer.to_owned(),
        old_location: values.0.is_some().then(|| pointer.to_owned()),
        new_location: values.1.is_some().then(|| pointer.to_owned()),
        old: values.0,
        new: values.1,
        class,
        backed_by: Backing::Rule,
        bump: bump_of(class, kind),
        handling: handling_of(class),
        model_visible: model_visible(kind, side),
        sentence,
        witness: None,
        recorded_refused: None,
        rename: None,
        fix: None,
    }
}

/// The version step of a change by its class.
pub(super) fn bump_of(class: Class, kind: Kind) -> Bump {
    let text = matches!(
        kind,
        Kind::TitleChanged
            | Kind::DescriptionChanged
            | Kind::ExamplesChanged
            | Kind::EnumReordered
            | Kind::Rewritten
            | Kind::DeprecationChanged
            | Kind::ProviderChanged
            | Kind::DraftChanged
    );
    match class {
        Class::Breaking | Class::NeedsReview => Bump::Major,
        Class::Compatible | Class::UsuallyCompatible if text => Bump::Patch,
        Class::Compatible | Class::UsuallyCompatible | Class::HighRisk => Bump::Minor,
    }
}

/// What a class asks for before it goes live.
pub(super) fn handling_of(class: Class) -> Handling {
    match class {
        Class::Compatible | Class::UsuallyCompatible => Handling::GoLive,
        Class::HighRisk | Class::NeedsReview => Handling::Replay,
        Class::Breaking => Handling::DualTrack,
    }
}

/// Whether the model reads this part of a definition.
pub(super) fn model_visible(kind: Kind, side: Side) -> bool {
    match side {
        Side::Input => true,
        Side::Output | Side::Errors => false,
        Side::Definition => matches!(
            kind,
            Kind::ToolRenamed
                | Kind::ToolAdded
                | Kind::ToolRemoved
                | Kind::ToolsMerged
                | Kind::DescriptionChanged
        ),
    }
}

/// A call that the contract takes: the smallest there is, else a made one.
pub(crate) fn any_call(contract: &Contract, input: &Operand, seed: u64) -> Option<WitnessCall> {
    let empty = json!({});
    let value = if input.accepts(&empty) {
        empty
    } else {
        let schema = &contract.definition.input_schema;
        valid(schema, &mut Rng::new(seed).fork("call"), &mut |v| input.accepts(v))?
    };
    Some(WitnessCall {
        name: Some(contract.definition.name.clone()),
        value: Some(value),
        from: WitnessFrom::Generated,
        place: None,
        pointer: String::new(),
        keyword: "name".to_owned(),
        location: String::new(),
    })
}

/// The subsets to which the provider holds this definition.
fn asked_of(contract: &Contract) -> impl Iterator<Item = Profile> {
    let definition = &contract.definition;
    let (source, strict) = (definition.source, definition.strict == Some(true));
    let translated = definition.document.get("parameters").is_some();
    Profile::ALL.into_iter().filter(move |subset| match subset {
        Profile::OpenaiStrict => strict && matches!(source, Source::OpenaiChat | Source::OpenaiResponses),
        Profile::AnthropicStrict => strict && source == Source::Anthropic,
        Profile::Gemini => translated && source == Source::Gemini,
    })
}

/// Profiles that the old schema fits and the new one leaves, although nobody asks for them: worth a note.
pub(super) fn left_subsets(old: &Contract, new: &Contract) -> Vec<String> {
    let asked: Vec<Profile> = asked_of(new).collect();
    let (a, b) = (&old.definition.input_schema, &new.definition.input_schema);
    let left =
        Profile::ALL.into_iter().filter(|subset| !asked.contains(subset) && subset.refuses(a).is_none());
    left.filter_map(|subset| {
        let (_, why) = subset.refuses(b)?;
        Some(format!("The schema fitted {} and does not any more: {why}.", subset.in_words()))
    })
    .collect()
}

/// Every change of the definition itself. `old_input` is the old schema of the arguments.
pub(super) fn changes(old: &Contract, new: &Contract, old_input: &Operand, seed: u64) -> Vec<Change> {
    let (a, b) = (&old.definition, &new.definition);
    let mut out = Vec::new();
    if a.name != b.name {
        let sentence = format!(
            "The tool `{}` is called `{}` now: a call by the old name finds no tool.",
            a.name, b.name
        );
        let values = (Some(Value::from(a.name.as_str())), Some(Value::from(b.name.as_str())));
        let witness = any_call(old, old_input, seed);
        let class = if witness.is_some() { Class::Breaking } else { Class::NeedsReview };
        let mut change = by_rule(Kind::ToolRenamed, Side::Definition, "/name", values, class, sentence);
        change.backed_by = if witness.is_some() { Backing::Witness } else { Backing::Nothing };
        change.witness = witness;
        change.fix =
            Some(format!("Keep `{}` as an alias, or let an adapter route it to `{}`", a.name, b.name));
        out.push(change);
    }
    for (kind, pointer, what, x, y) in [
        (Kind::TitleChanged, "/title", "title", &a.title, &b.title),
        (Kind::DescriptionChanged, "/description", "description", &a.description, &b.description),
    ] {
        if x != y {
            let verb = match (x, y) {
                (None, _) => "was added",
                (_, None) => "was removed",
                _ => "changed",
            };
            let values = (x.clone().map(Value::from), y.clone().map(Value::from));
            let sentence = format!("The {what} of the tool {verb}.");
            out.push(by_rule(kind, Side::Definition, pointer, values, Class::UsuallyCompatible, sentence));
        }
    }
    if a.strict != b.strict {
        let (class, sentence) = match (a.strict.unwrap_or(false), b.strict.unwrap_or(false)) {
            (true, false) => (
                Class::HighRisk,
                "`strict` is off now: the provider no longer holds the model to the schema.",
            ),
            (false, true) => {
                (Class::UsuallyCompatible, "`strict` is on now: the provider holds the model to the schema.")
            }
            _ => (Class::UsuallyCompatible, "`strict` is stated otherwise and means the same."),
        };
        let values = (a.strict.map(Value::from), b.strict.map(Value::from));
        out.push(by_rule(
            Kind::StrictChanged,
            Side::Definition,
            "/strict",
            values,
            class,
            sentence.to_owned(),
        ));
    }
    annotations(a.annotations.as_ref(), b.annotations.as_ref(), &mut out);
    if a.source != b.source {
        let sentence =
            format!("The definition has the shape of {} where it had that of {}.", b.source, a.source);
        let values = (Some(Value::from(a.source.as_str())), Some(Value::from(b.source.as_str())));
        let change =
            by_rule(Kind::ProviderChanged, Side::Definition, "", values, Class::UsuallyCompatible, sentence);
        out.push(change);
    }
    others(&a.document, &b.document, &mut out);
    for subset in asked_of(new) {
        if let (None, Some((at, why))) = (subset.refuses(&a.input_schema), subset.refuses(&b.input_schema)) {
            let sentence = format!("The schema no longer fits {}: {why}.", subset.in_words());
            let values = (None, Some(Value::from(why)));
            let mut change =
                by_rule(Kind::ProviderSubsetLeft, Side::Definition, &at, values, Class::HighRisk, sentence);
            change.fix = Some(format!("Write it without that, or leave {}", subset.in_words()));
            out.push(change);
        }
    }
    match (&a.output_schema, &b.output_schema) {
        (None, Some(new)) => out.push(by_rule(
            Kind::OutputSchemaAdded,
            Side::Output,
            "",
            (None, Some(new.clone())),
            Class::UsuallyCompatible,
            "The result is declared now.".to_owned(),
        )),
        (Some(old), None) => {
            let mut change = by_rule(
                Kind::OutputSchemaRemoved,
                Side::Output,
                "",
                (Some(old.clone()), None),
                Class::HighRisk,
                "The result is no longer declared: nothing holds the tool to what readers rely on."
                    .to_owned(),
            );
            change.fix = Some("Keep declaring the result".to_owned());
            out.push(change);
        }
        _ => {}
    }
    out
}

/// Parts of a definition that a rule reads.
const READ: [&str; 18] = [
    "name",
    "title",
    "description",
    "type",
    "function",
    "strict",
    "annotations",
    "parameters",
    "inputSchema",
    "input_schema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "outputSchema",
    "output_schema",
    "response",
    "responseJsonSchema",
    "response_json_schema",
    "$schema",
];

/// Parts of a definition that no rule reads.
fn others(old: &Value, new: &Value, out: &mut Vec<Change>) {
    let body = |document: &Value| {
        let inner = document.get("function").filter(|f| f.is_object()).unwrap_or(document);
        let bare = ["properties", "allOf", "anyOf", "oneOf", "$ref"].iter().any(|k| inner.get(*k).is_some());
        inner.as_object().filter(|_| !bare).cloned().unwrap_or_default()
    };
    let (old, new) = (body(old), body(new));
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys.into_iter().filter(|key| !READ.contains(&key.as_str()) && old.get(*key) != new.get(*key))
    {
        let verb = match (old.get(key), new.get(key)) {
            (None, _) => "was added",
            (_, None) => "was removed",
            _ => "changed",
        };
        let values = (old.get(key).cloned(), new.get(key).cloned());
        let sentence = format!("`{key}` of the definition {verb}.");
        let pointer = crate::join("", key);
        let class = Class::UsuallyCompatible;
        out.push(by_rule(Kind::KeywordChanged, Side::Definition, &pointer, values, class, sentence));
    }
}

/// MCP hints, with what their absence means (MCP 2025-06-18, ToolAnnotations); the riskier value.
const HINTS: [(&str, bool, bool, &str); 4] = [
    ("readOnlyHint", false, false, "it may change things now"),
    ("destructiveHint", true, true, "it may destroy things now"),
    ("idempotentHint", false, false, "calling it twice may do it twice now"),
    ("openWorldHint", true, true, "it may reach the outside world now"),
];

fn annotations(old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Change>) {
    let get = |side: Option<&Value>, key: &str| side.and_then(|v| v.get(key)).cloned();
    let mut keys: Vec<&String> =
        [old, new].into_iter().flatten().filter_map(Value::as_object).flat_map(|m| m.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let (x, y) = (get(old, key), get(new, key));
        if x == y {
            continue;
        }
        let pointer = format!("/annotations/{}", crate::escape(key));
        if key == "title" {
            let sentence = "The title in the annotations changed.".to_owned();
            let class = Class::UsuallyCompatible;
            out.push(by_rule(Kind::TitleChanged, Side::Definition, &pointer, (x, y), class, sentence));
            continue;
        }
        let said = |v: &Option<Value>| v.as_ref().map_or_else(|| "not stated".to_owned(), shown);
        let change = format!("`{key}` went from {} to {}", said(&x), said(&y));
        let (class, sentence) = match HINTS.iter().find(|(name, ..)| name == key) {
            Some((_, absent, risky, meaning)) => {
                let value = |v: &Option<Value>| v.as_ref().and_then(Value::as_bool).unwrap_or(*absent);
                match (value(&x), value(&y)) {
                    (a, b) if a == b => {
                        (Class::UsuallyCompatible, format!("{change}, which means what its absence means"))
                    }
                    (_, now) if now == *risky => (Class::HighRisk, format!("{change}: {meaning}")),
                    _ => (Class::UsuallyCompatible, change),
                }
            }
            None => (Class::UsuallyCompatible, change),
        };
        let sentence = format!("{sentence}.");
        out.push(by_rule(Kind::AnnotationChanged, Side::Definition, &pointer, (x, y), class, sentence));
    }
}

/// Error codes and their categories.
pub(super) fn errors(old: &ToolFacts, new: &ToolFacts) -> Vec<Change> {
    let mut out = Vec::new();
    let mut add = |kind, code: &str, values, class, sentence: String| {
        let pointer = crate::join("", code);
        out.push(by_rule(kind, Side::Errors, &pointer, values, class, sentence));
    };
    for a in &old.errors {
        let code = a.code.as_str();
        let Some(b) = new.errors.iter().find(|b| b.code == a.code) else {
            let sentence =
                format!("The error code `{code}` is no longer listed: who handles it waits for nothing.");
            add(Kind::ErrorRemoved, code, (Some(json!(a)), None), Class::HighRisk, sentence);
            continue;
        };
        if a.category != b.category {
            let word = |c: &Option<String>| c.clone().unwrap_or_else(|| "none".to_owned());
            let sentence = format!(
                "The error code `{code}` moved from category `{}` to `{}`: retries and fallbacks go by it.",
                word(&a.category),
                word(&b.category)
            );
            let values = (a.category.clone().map(Value::from), b.category.clone().map(Value::from));
            add(Kind::ErrorCategoryChanged, code, values, Class::HighRisk, sentence);
        }
        if a.retryable != b.retryable {
            let word = match b.retryable {
                Some(true) => "may be retried now",
                Some(false) => "may no longer be retried",
                None => "no longer says whether it may be retried",
            };
            let values = (a.retryable.map(Value::from), b.retryable.map(Value::from));
            let sentence = format!("The error code `{code}` {word}.");
            add(Kind::ErrorRetryChanged, code, values, Class::HighRisk, sentence);
        }
    }
    for b in new.errors.iter().filter(|b| !old.errors.iter().any(|a| a.code == b.code)) {
        let sentence = format!("The error code `{}` is new.", b.code);
        add(Kind::ErrorAdded, &b.code, (None, Some(json!(b))), Class::UsuallyCompatible, sentence);
    }
    out
}
