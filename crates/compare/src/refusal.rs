//! Why a schema refuses a value: complaints, one per place and cause. The best-matching branch of a union explains it.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use lastcall_diff::{SchemaDoc, join, tokens};
use serde_json::{Map, Value};

use crate::checked::Checked;
use crate::parse::Parsed;
use crate::side::Side;

/// What kind of keyword complains, in the order of precedence at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// An argument is missing.
    Missing,
    /// An argument is not let in by a closed object.
    Closed,
    /// type.
    Type,
    /// enum, const.
    Enum,
    /// Bounds, lengths, pattern, format, counts, uniqueness.
    Range,
    /// anyOf, oneOf, not, dependentRequired.
    Combination,
    /// Anything else.
    Other,
}

/// One complaint of one schema about one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// Instance pointer.
    pub field: String,
    pub cause: Cause,
    pub keyword: String,
    /// What the keyword asks, as JSON text: (field, keyword, limit) is the identity of a complaint.
    pub limit: String,
    /// Pointer into the schema.
    pub location: String,
    /// enum and const: the allowed values, for letter case.
    pub allowed: Vec<Value>,
}

impl Complaint {
    pub fn same_as(&self, other: &Self) -> bool {
        self.field == other.field && self.keyword == other.keyword && self.limit == other.limit
    }
}

/// The complaints of a schema about a value, or that it could not decide.
pub(crate) enum Judgement {
    Accepted,
    Refused(Vec<Complaint>),
    /// A regular expression out of budget.
    Undecided,
}

/// Complaints of one call that are kept: a hostile call has no more.
const MAX_COMPLAINTS: usize = 1000;
/// Levels of a value up to which a recursive union is explained: its errors grow exponentially with them.
const EXPLAINED_LEVELS: usize = 8;

/// Asks the input schema of a side.
pub(crate) fn judge_input(side: &Side, parsed: &Parsed<'_>) -> Judgement {
    if side.hidden.is_empty() && side.input.accepts(&parsed.tree) {
        return Judgement::Accepted;
    }
    judge_value(side, parsed.value())
}

/// As [`judge_input`], for arguments that are no call's own.
pub(crate) fn judge_value(side: &Side, value: &Value) -> Judgement {
    if side.recursive_unions && levels(value) > EXPLAINED_LEVELS {
        if any_string_gives_up(&side.hidden, value) {
            return Judgement::Undecided;
        }
        return match side.input.explains(&side.doc) {
            Some(validator) if validator.is_valid(value) => Judgement::Accepted,
            _ => Judgement::Refused(vec![unexplained(Cause::Combination)]),
        };
    }
    let mut judgement = judge(&side.input, &side.doc, &side.hidden, value);
    if let Judgement::Refused(complaints) = &mut judgement
        && complaints.len() > 1
    {
        drop_unevaluated(side, value, complaints);
    }
    judgement
}

/// A composed part that fails has evaluated nothing, so its arguments come back as unevaluated too. What refuses the
/// part is the cause; an argument that the schema names is not one that it does not let in.
fn drop_unevaluated(side: &Side, value: &Value, complaints: &mut Vec<Complaint>) {
    let closed = |c: &Complaint| c.cause == Cause::Closed && c.keyword == "unevaluatedProperties";
    let causes: Vec<String> = complaints.iter().filter(|c| !closed(c)).map(|c| c.field.clone()).collect();
    complaints.retain(|c| {
        let Some((object, _)) = c.field.rsplit_once('/').filter(|_| closed(c)) else { return true };
        let inside = |f: &String| f.strip_prefix(object).is_some_and(|r| r.is_empty() || r.starts_with('/'));
        let path: Vec<String> = tokens(&c.field).collect();
        let Some((name, up)) = path.split_last() else { return true };
        !(causes.iter().any(inside) && side.declares(&side.anything_at(value, up), name))
    });
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

/// No refusal is without a discrepancy, even one that nobody explains.
fn unexplained(cause: Cause) -> Complaint {
    Complaint {
        field: String::new(),
        cause,
        keyword: String::new(),
        limit: String::new(),
        location: String::new(),
        allowed: Vec::new(),
    }
}

/// Asks a schema. `hidden`: expressions whose giving up the validator would not show.
pub(crate) fn judge(schema: &Checked, doc: &SchemaDoc, hidden: &[Validator], value: &Value) -> Judgement {
    if !hidden.is_empty() && any_string_gives_up(hidden, value) {
        return Judgement::Undecided;
    }
    let Some(validator) = schema.explains(doc) else {
        return Judgement::Refused(vec![unexplained(Cause::Other)]);
    };
    if validator.is_valid(value) {
        return Judgement::Accepted;
    }
    let errors: Vec<ValidationError<'_>> = validator.iter_errors(value).take(MAX_COMPLAINTS).collect();
    if errors.iter().any(gave_up) {
        return Judgement::Undecided;
    }
    let mut out = Vec::new();
    let all: Vec<&ValidationError<'_>> = errors.iter().collect();
    flatten(&all, doc, value, &mut out);
    if out.is_empty() {
        // A validator that refuses without saying why.
        out.push(unexplained(Cause::Other));
    }
    Judgement::Refused(out)
}

fn any_string_gives_up(hidden: &[Validator], value: &Value) -> bool {
    let asks =
        |text: &Value| hidden.iter().any(|v| !v.is_valid(text) && v.iter_errors(text).any(|e| gave_up(&e)));
    match value {
        Value::String(_) => asks(value),
        Value::Array(items) => items.iter().any(|v| any_string_gives_up(hidden, v)),
        Value::Object(members) => {
            members.iter().any(|(k, v)| asks(&Value::String(k.clone())) || any_string_gives_up(hidden, v))
        }
        _ => false,
    }
}

fn gave_up(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => true,
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } | Kind::OneOfMultipleValid { context } => {
            context.iter().flatten().any(gave_up)
        }
        Kind::PropertyNames { error } => gave_up(error),
        _ => false,
    }
}

fn flatten(errors: &[&ValidationError<'_>], doc: &SchemaDoc, root: &Value, out: &mut Vec<Complaint>) {
    for error in errors {
        one(error, doc, root, out);
    }
}

fn one(error: &ValidationError<'_>, doc: &SchemaDoc, root: &Value, out: &mut Vec<Complaint>) {
    let place = error.instance_path().to_string();
    let location = error.schema_path().to_string();
    let keyword = error.kind().keyword().to_owned();
    let mut push = |field: String, cause: Cause, limit: Option<String>, allowed: Vec<Value>| {
        let limit = limit.unwrap_or_else(|| match doc.root().pointer(&location) {
            Some(node) => meaning(&keyword, node).to_string(),
            None => error.masked().to_string(),
        });
        let complaint =
            Complaint { field, cause, keyword: keyword.clone(), limit, location: location.clone(), allowed };
        if out.len() < MAX_COMPLAINTS && !out.iter().any(|c| c.same_as(&complaint)) {
            out.push(complaint);
        }
    };
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let of_dependency =
                location.ends_with("/dependentRequired") || location.ends_with("/dependencies");
            if of_dependency {
                push(place, Cause::Combination, None, Vec::new());
            } else {
                push(join(&place, name), Cause::Missing, Some(String::new()), Vec::new());
            }
        }
        // a schema for what else there is: the value does not fit it, the name would have been let in
        Kind::UnevaluatedProperties { unexpected }
            if doc.root().pointer(&location).is_some_and(Value::is_object) =>
        {
            for key in unexpected {
                push(join(&place, key), Cause::Other, None, Vec::new());
            }
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            for key in unexpected {
                push(join(&place, key), Cause::Closed, Some(String::new()), Vec::new());
            }
        }
        // a closed object that declares nothing at all
        Kind::FalseSchema
            if ["/additionalProperties", "/unevaluatedProperties", "/propertyNames"]
                .iter()
                .any(|end| location.ends_with(end)) =>
        {
            match root.pointer(&place).and_then(Value::as_object) {
                Some(members) => {
                    for key in members.keys() {
                        push(join(&place, key), Cause::Closed, Some(String::new()), Vec::new());
                    }
                }
                None => push(place, Cause::Closed, Some(String::new()), Vec::new()),
            }
        }
        // the name of one argument, whatever its value
        Kind::PropertyNames { error } => match error.instance().as_str() {
            Some(name) => push(join(&place, name), Cause::Closed, None, Vec::new()),
            None => push(place, Cause::Other, None, Vec::new()),
        },
        Kind::Type { .. } => push(place, Cause::Type, None, Vec::new()),
        Kind::Enum { options } => {
            let allowed = options.as_array().cloned().unwrap_or_default();
            push(place, Cause::Enum, None, allowed);
        }
        Kind::Constant { expected_value } => {
            push(place, Cause::Enum, None, vec![expected_value.as_ref().clone()])
        }
        Kind::Minimum { .. }
        | Kind::Maximum { .. }
        | Kind::ExclusiveMinimum { .. }
        | Kind::ExclusiveMaximum { .. }
        | Kind::MinLength { .. }
        | Kind::MaxLength { .. }
        | Kind::MinItems { .. }
        | Kind::MaxItems { .. }
        | Kind::MinProperties { .. }
        | Kind::MaxProperties { .. }
        | Kind::MultipleOf { .. }
        | Kind::Pattern { .. }
        | Kind::Format { .. }
        | Kind::UniqueItems => push(place, Cause::Range, None, Vec::new()),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match explain(context, &place) {
            Explained::Branch(errors) => flatten(&errors.iter().collect::<Vec<_>>(), doc, root, out),
            Explained::Own(cause, allowed) => push(place, cause, None, allowed),
            Explained::Nothing => push(place, Cause::Combination, None, Vec::new()),
        },
        Kind::OneOfMultipleValid { .. } | Kind::Not { .. } => {
            push(place, Cause::Combination, None, Vec::new())
        }
        _ => push(place, Cause::Other, None, Vec::new()),
    }
}

/// What a keyword asks, without what does not matter: the order of values, types and names, the form of a number, text.
fn meaning(keyword: &str, node: &Value) -> Value {
    match node {
        Value::Number(n) => match n.as_f64() {
            Some(f) if f.fract() == 0.0 && f.abs() < 9e15 => Value::from(f as i64),
            _ => node.clone(),
        },
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|v| meaning("", v)).collect();
            if matches!(keyword, "enum" | "type" | "required") {
                items.sort_by_key(Value::to_string);
                items.dedup();
            }
            match (keyword, items.as_slice()) {
                ("type", [only]) => only.clone(),
                _ => Value::Array(items),
            }
        }
        Value::Object(members) => {
            let text =
                |k: &str| matches!(k, "title" | "description" | "examples" | "$comment" | "deprecated");
            let in_table = matches!(keyword, "properties" | "$defs" | "definitions" | "patternProperties");
            let kept = members.iter().filter(|(k, v)| in_table || !text(k) || v.is_object());
            Value::Object(
                kept.map(|(k, v)| (k.clone(), meaning(if in_table { "" } else { k }, v)))
                    .collect::<Map<_, _>>(),
            )
        }
        _ => node.clone(),
    }
}

enum Explained<'e> {
    Branch(&'e [ValidationError<'static>]),
    Own(Cause, Vec<Value>),
    Nothing,
}

/// comparison.md section 8, Combinations.
fn explain<'e>(branches: &'e [Vec<ValidationError<'static>>], place: &str) -> Explained<'e> {
    let own = |error: &ValidationError<'_>| error.instance_path().as_str() == place;
    let by_type = |branch: &[ValidationError<'_>]| {
        branch.iter().any(|e| own(e) && matches!(e.kind(), Kind::Type { .. }))
    };
    let is_enum = |e: &ValidationError<'_>| matches!(e.kind(), Kind::Enum { .. } | Kind::Constant { .. });
    if branches.is_empty() {
        return Explained::Nothing;
    }
    if branches.iter().all(|b| by_type(b)) {
        return Explained::Own(Cause::Type, Vec::new());
    }
    // Branches of another type say nothing about which values of this one are allowed.
    let mut rest = branches.iter().filter(|b| !by_type(b));
    if rest.all(|b| b.iter().any(|e| own(e) && is_enum(e))) {
        let mut allowed = Vec::new();
        for error in branches.iter().flatten().filter(|e| own(e)) {
            match error.kind() {
                Kind::Enum { options } => allowed.extend(options.as_array().cloned().unwrap_or_default()),
                Kind::Constant { expected_value } => allowed.push(expected_value.as_ref().clone()),
                _ => {}
            }
        }
        return Explained::Own(Cause::Enum, allowed);
    }
    let depth = |e: &ValidationError<'_>| e.instance_path().as_str().matches('/').count();
    let rank = |b: &Vec<ValidationError<'_>>| {
        let deepest = b.iter().map(depth).max().unwrap_or(0);
        (by_type(b), b.iter().any(is_enum), b.len(), usize::MAX - deepest)
    };
    let mut ranked: Vec<_> = branches.iter().map(|b| (rank(b), b)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    match ranked.as_slice() {
        [(best, _), (second, _), ..] if best == second => Explained::Nothing,
        [(_, branch), ..] => Explained::Branch(branch),
        [] => Explained::Nothing,
    }
}
