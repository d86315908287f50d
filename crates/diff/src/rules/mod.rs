//! The rules of the diff: what changed, attributed to places, judged by proof and witness.
//!
//! A rule names a change and where it is; whether it breaks is never a rule's word. Every question is asked of the
//! prover: a proof over declared arguments makes `compatible`, a witness makes `breaking`, neither makes
//! `needs_review`. Rules alone classify only what no validator sees: text, defaults, units, annotations, lost values.

mod definition;
mod demands;
mod flow;
mod formats;
mod hints;
mod judge;
mod keywords;
mod object;
mod raw;
mod rounded;
mod strip;
mod subset;
mod text;
mod units;
mod view;
mod walk;
mod words;

use lastcall_contract::{Contract, Draft};
use serde_json::Value;

use crate::change::{Change, ChangeKind};
use crate::class::{Bump, Class, Handling};
use crate::prove::{Operand, OperandError};
use crate::report::{ContractDiff, DiffOptions, Direction, Fact, FactAnswer, Facts};
use flow::{Flow, Part, flow};
use rounded::{Literals, Rounded, literals};

pub(crate) use definition::{any_call, by_rule};
pub(crate) use rounded::{doubles, holds};
pub(crate) use units::words as words_of_name;

/// Why two contracts cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffError {
    /// `old` or `new`.
    pub side: &'static str,
    /// `input` or `output`: which schema.
    pub part: &'static str,
    /// Where and why.
    pub cause: OperandError,
}

impl std::fmt::Display for DiffError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = if self.part == "output" { "result" } else { "arguments" };
        write!(f, "the {} schema of the {part}: {}", self.side, self.cause)
    }
}

impl std::error::Error for DiffError {}

/// The schema of arguments as far as it speaks of objects: a call's arguments are one, whatever else the schema takes.
fn of_objects(schema: &Value) -> Value {
    let mut out = schema.clone();
    if let Some(map) = out.as_object_mut() {
        let several =
            map.get("type").and_then(Value::as_array).is_some_and(|list| list.iter().any(|t| t == "object"));
        if several || !map.contains_key("type") {
            map.insert("type".to_owned(), Value::from("object"));
        }
    }
    out
}

fn operand(
    part: Part<'_>,
    side: &'static str,
    name: &'static str,
    fills: bool,
) -> Result<Operand, DiffError> {
    let make = if fills { Operand::filling } else { Operand::new };
    make(part.schema, part.draft).map_err(|cause| DiffError { side, part: name, cause })
}

/// Both schemas of one direction. Arguments flow from old callers to the new tool, results from the new tool to old
/// readers.
fn between(
    old: Part<'_>,
    new: Part<'_>,
    output: bool,
    arguments: bool,
    literals: (&Literals, &Literals),
    options: &DiffOptions<'_>,
) -> Result<(Flow, Operand), DiffError> {
    let name = if output { "output" } else { "input" };
    let fills = options.fills_defaults && !output;
    let objects = |part: Part<'_>| if arguments { of_objects(part.schema) } else { part.schema.clone() };
    let (x, y) = (objects(old), objects(new));
    let before = operand(Part { schema: &x, ..old }, "old", name, fills)?;
    let after = operand(Part { schema: &y, ..new }, "new", name, fills)?;
    let (x, y) = ((old.schema, literals.0), (new.schema, literals.1));
    let flow = if output {
        flow((&after, new), (&before, old), Rounded::of(y, x), true, options)
    } else {
        flow((&before, old), (&after, new), Rounded::of(x, y), false, options)
    };
    Ok((flow, before))
}

/// What changed from one contract to the other.
///
/// # Errors
/// A schema that cannot be asked about: see [`OperandError`].
pub fn diff_contracts(
    old: &Contract,
    new: &Contract,
    options: &DiffOptions<'_>,
) -> Result<ContractDiff, DiffError> {
    let (a, b) = (&old.definition, &new.definition);
    let (x, y) = (literals(a), literals(b));
    let (input, old_input) = between(
        Part { schema: &a.input_schema, draft: a.draft },
        Part { schema: &b.input_schema, draft: b.draft },
        false,
        true,
        (&x.0, &y.0),
        options,
    )?;
    let output = match (&a.output_schema, &b.output_schema) {
        (Some(old), Some(new)) => {
            let old = Part { schema: old, draft: a.output_draft };
            let new = Part { schema: new, draft: b.output_draft };
            Some(between(old, new, true, false, (&x.1, &y.1), options)?.0)
        }
        _ => None,
    };
    let mut changes = definition::changes(old, new, &old_input, options.seed);
    changes.extend(definition::errors(&options.old, &options.new));
    let mut input = input;
    input.notes.extend(definition::left_subsets(old, new));
    let mut diff = whole(old.id.clone(), new.id.clone(), input, output, changes, options);
    for change in &mut diff.changes {
        if let Some(witness) = change.witness.as_mut().filter(|_| change.side == crate::Side::Input) {
            witness.name = Some(a.name.clone());
        }
    }
    Ok(diff)
}

/// What changed from one bare schema to the other.
///
/// # Errors
/// As [`diff_contracts`].
pub fn diff_schemas(
    old: &Value,
    new: &Value,
    draft: Draft,
    direction: Direction,
    options: &DiffOptions<'_>,
) -> Result<ContractDiff, DiffError> {
    let output = direction == Direction::Output;
    let (old, new) = (Part { schema: old, draft }, Part { schema: new, draft });
    let none = Literals::new();
    let (flow, _) = between(old, new, output, false, (&none, &none), options)?;
    let nothing = || {
        let proven = || Fact { answer: FactAnswer::Proven, witness: None, why: None };
        let facts = Facts { declared: proven(), open: proven(), reverse: proven() };
        Flow { facts, changes: Vec::new(), notes: Vec::new(), recorded: (0, 0) }
    };
    let (input, output) = if output { (nothing(), Some(flow)) } else { (flow, None) };
    Ok(whole("old".to_owned(), "new".to_owned(), input, output, Vec::new(), options))
}

fn whole(
    old: String,
    new: String,
    input: Flow,
    output: Option<Flow>,
    mut changes: Vec<Change>,
    options: &DiffOptions<'_>,
) -> ContractDiff {
    changes.extend(input.changes);
    let mut notes = input.notes;
    let output = output.map(|flow| {
        changes.extend(flow.changes);
        notes.extend(flow.notes);
        flow.facts
    });
    let place = |c: &Change| {
        (
            c.side,
            c.pointer.clone(),
            c.kind,
            c.old.as_ref().map(Value::to_string),
            c.new.as_ref().map(Value::to_string),
        )
    };
    changes.sort_by(|x, y| y.class.cmp(&x.class).then_with(|| place(x).cmp(&place(y))));
    let class = changes.iter().map(|c| c.class).max().unwrap_or_default();
    let major_because = demands::major(class, &options.old, &options.new);
    let mut bump = changes.iter().map(|c| c.bump).max().unwrap_or_default();
    let mut handling = changes.iter().map(|c| c.handling).max().unwrap_or_default();
    if !major_because.is_empty() {
        (bump, handling) = (Bump::Major, Handling::DualTrack);
    }
    ContractDiff {
        sentence: sentence(class, &changes),
        old,
        new,
        class,
        bump,
        handling,
        model_visible: changes.iter().any(|c| c.model_visible),
        major_because,
        questions: demands::questions(&changes),
        input: input.facts,
        output,
        notes,
        changes,
        recorded: input.recorded.0,
        recorded_refused: input.recorded.1,
    }
}

/// The whole in one sentence: its class, and the worst change.
fn sentence(class: Class, changes: &[Change]) -> String {
    let Some(worst) = changes.first() else { return "Nothing changed.".to_owned() };
    let word = match class {
        Class::Compatible => "Compatible",
        Class::UsuallyCompatible => "Usually compatible",
        Class::HighRisk => "High risk",
        Class::NeedsReview => "Needs review",
        Class::Breaking => "Breaking",
    };
    let more = match changes.len() - 1 {
        0 => String::new(),
        1 => " One more change.".to_owned(),
        n => format!(" {n} more changes."),
    };
    let only_rewritten = changes.len() == 1 && worst.kind == ChangeKind::Rewritten;
    if only_rewritten {
        return "Compatible: the same values; rewritten.".to_owned();
    }
    format!("{word}: {}{more}", worst.sentence)
}
