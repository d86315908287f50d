//! From a change that a rule found to its class: proof, witness, rule, or nothing. The order is always the same: a proof
//! of the whole, a witness or proof of the change alone, then the rule. Only a witness makes `breaking`.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::formats;
use super::raw::{Edit, Effect, Raw};
use super::rounded::Rounded;
use super::strip::{edited, replaced, without_text};
use crate::change::{ChangeKind as Kind, WitnessCall, WitnessFrom};
use crate::class::{Backing, Class};
use crate::pointer::Pattern;
use crate::prove::{Answer, Model, Operand, Options, Witness, contains, declared_by, is_witness};
use crate::report::{Fact, FactAnswer, Facts};

/// Why nothing is known of schemas whose numbers were rounded when they were read.
const ROUNDED: &str = "the schemas have numbers that neither 64 bits nor a double hold: what was read is not what is written; \
                       keep bounds within 64 bits";

/// Changes of one side that are looked at alone; the rest is judged by the whole.
const MAX_ALONE: usize = 48;
/// JSON nodes that are copied and compiled for that, in all: of large schemas fewer changes are looked at alone.
const WORK: usize = 500_000;

/// Two schemas and the answers about them: every value of `old` has to be taken by `new`.
pub(super) struct Case<'a> {
    pub old: &'a Operand,
    pub new: &'a Operand,
    /// Numbers that reading changed.
    pub rounded: &'a Rounded,
    pub seed: u64,
    pub recorded: &'a [Value],
    /// Of results: old and new are swapped.
    pub output: bool,
    /// The runtime fills defaults first.
    pub fills: bool,
}

/// What the recorded calls say.
pub(super) struct Recorded {
    /// Per change, how many are refused there, and the first of them.
    pub changes: Vec<(u64, Option<WitnessCall>)>,
    /// Those that no change explains.
    pub unexplained: (u64, Option<WitnessCall>),
    /// How many are refused.
    pub all: u64,
}

/// What a change comes to.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub class: Class,
    pub backed_by: Backing,
    pub witness: Option<WitnessCall>,
}

impl Case<'_> {
    fn ask(&self, sub: &Operand, sup: &Operand, model: Model, recorded: &[Value]) -> Answer {
        let same = !self.fills
            && sub.draft() == sup.draft()
            && without_text(sub.schema()) == without_text(sup.schema());
        if same {
            return Answer::Proven;
        }
        contains(sub, sup, model, &Options { seed: self.seed, recorded, ..Options::default() })
    }

    /// The answer about the whole, where numbers were read as they are written.
    fn whole(&self, sub: &Operand, sup: &Operand, model: Model, recorded: &[Value]) -> Answer {
        match self.ask(sub, sup, model, recorded) {
            Answer::Proven if self.rounded.decides => Answer::Unknown { why: ROUNDED.to_owned() },
            Answer::Refuted(witness) if self.rounded.touches(&witness.value) => {
                Answer::Unknown { why: ROUNDED.to_owned() }
            }
            answer => answer,
        }
    }

    /// Both facts, and the reverse.
    pub fn facts(&self) -> Facts {
        let open = self.whole(self.old, self.new, Model::Open, self.recorded);
        let declared = match &open {
            Answer::Proven => Answer::Proven,
            Answer::Refuted(w) if declared_by(self.old, &w.value) => open.clone(),
            _ => self.whole(self.old, self.new, Model::Declared, self.recorded),
        };
        let not_asked = || Answer::Unknown { why: "not asked: one way does not hold".to_owned() };
        let reverse = match open {
            Answer::Proven => self.whole(self.new, self.old, Model::Open, &[]),
            _ => not_asked(),
        };
        Facts { declared: self.fact(&declared), open: self.fact(&open), reverse: self.fact(&reverse) }
    }

    fn fact(&self, answer: &Answer) -> Fact {
        match answer {
            Answer::Proven => Fact { answer: FactAnswer::Proven, witness: None, why: None },
            Answer::Refuted(w) => {
                Fact { answer: FactAnswer::Refuted, witness: Some(self.call(w, None)), why: None }
            }
            Answer::Unknown { why } => {
                Fact { answer: FactAnswer::Unknown, witness: None, why: Some(why.clone()) }
            }
        }
    }

    /// The witness with the place in the new schema that refuses it: the one that `raw` explains, where one does.
    fn call(&self, witness: &Witness, raw: Option<&Raw>) -> WitnessCall {
        let mut call = WitnessCall {
            name: None,
            value: Some(witness.value.clone()),
            from: witness.from,
            place: None,
            pointer: witness.pointer.clone(),
            keyword: witness.keyword.clone(),
            location: witness.location.clone(),
        };
        if let Some(raw) = raw {
            let refusals = refusals(self.new, &witness.value);
            if let Some(refusal) = refusals.iter().find(|r| explains(raw, r)).or(refusals.first()) {
                call.pointer.clone_from(&refusal.pointer);
                call.keyword.clone_from(&refusal.keyword);
                call.location.clone_from(&refusal.location);
            }
        }
        call
    }

    /// Every change with its class, in the order given.
    pub fn judge(&self, raws: &[Raw], facts: &Facts) -> Vec<Judged> {
        let mut alone_left = MAX_ALONE.min(WORK / (self.old.size() + self.new.size()).max(1)).max(2);
        let mut judged: Vec<Judged> = raws.iter().map(|raw| self.one(raw, facts, &mut alone_left)).collect();
        if let Some(witness) = &facts.declared.witness {
            let refusals = witness.value.as_ref().map_or_else(Vec::new, |value| refusals(self.new, value));
            let blamed = raws.iter().zip(&mut judged).find(|(raw, _)| {
                !matches!(raw.effect, Effect::Text) && refusals.iter().any(|r| explains(raw, r))
            });
            if let Some((_, judged)) = blamed.filter(|(_, j)| j.class != Class::Breaking) {
                *judged = broken(witness.clone());
            }
        }
        judged
    }

    fn one(&self, raw: &Raw, facts: &Facts, alone_left: &mut usize) -> Judged {
        if raw.kind == Kind::CutOff {
            return Judged { class: Class::NeedsReview, backed_by: Backing::Nothing, witness: None };
        }
        let proven = facts.declared.answer == FactAnswer::Proven;
        let filled = self.fills && changes_default(raw);
        if let Some(class) = ruled(raw.kind) {
            // A default that is filled may be refused.
            let judged = (filled && !proven && *alone_left > 0).then(|| {
                *alone_left -= 1;
                self.alone(raw)
            });
            return judged.filter(|judged| judged.class == Class::Breaking).unwrap_or(Judged {
                class,
                backed_by: Backing::Rule,
                witness: None,
            });
        }
        let judged = if proven {
            Judged { class: Class::Compatible, backed_by: Backing::Proof, witness: None }
        } else if *alone_left == 0 {
            Judged { class: Class::NeedsReview, backed_by: Backing::Nothing, witness: None }
        } else {
            *alone_left -= 1;
            self.alone(raw)
        };
        if judged.class == Class::Breaking {
            return judged;
        }
        if filled && raw.kind == Kind::RequiredAdded && judged.class == Class::Compatible {
            return Judged { class: Class::HighRisk, backed_by: Backing::Rule, witness: None };
        }
        match floor(raw, self.output) {
            // What is lost is lost whether or not anything else could be shown.
            Some(class) if judged.class == Class::Compatible || raw.kind == Kind::PropertyDropped => {
                let backed_by =
                    if class == Class::UsuallyCompatible { judged.backed_by } else { Backing::Rule };
                Judged { class, backed_by, witness: None }
            }
            _ => judged,
        }
    }

    /// The change alone: the old document with nothing but this edit.
    fn alone(&self, raw: &Raw) -> Judged {
        let (old, new) = (self.old.schema(), self.new.schema());
        let with_default = (self.fills && raw.kind == Kind::RequiredAdded).then(|| with_default(raw, old));
        let edits = with_default.as_ref().unwrap_or(&raw.edits);
        let by_edit = (!edits.is_empty()).then(|| edited(old, edits, new)).flatten();
        let by_place = raw.place.as_ref().and_then(|(at, value)| replaced(old, at, value, new));
        for document in [by_edit, by_place].into_iter().flatten() {
            let draft = if raw.kind == Kind::DraftChanged { self.new.draft() } else { self.old.draft() };
            let make = if self.fills { Operand::filling } else { Operand::new };
            let Ok(altered) = make(&document, draft) else { continue };
            match self.ask(self.old, &altered, Model::Declared, self.recorded) {
                Answer::Proven => {
                    return Judged { class: Class::Compatible, backed_by: Backing::Proof, witness: None };
                }
                Answer::Refuted(w)
                    if !self.rounded.touches(&w.value)
                        && is_witness(self.old, self.new, Model::Declared, &w.value) =>
                {
                    return broken(self.call(&w, Some(raw)));
                }
                Answer::Refuted(_) | Answer::Unknown { .. } => {}
            }
        }
        Judged { class: Class::NeedsReview, backed_by: Backing::Nothing, witness: None }
    }

    /// The recorded values that the old side takes and the new one refuses, by the change that explains them.
    pub fn recorded(&self, raws: &[Raw]) -> Recorded {
        let mut told = Recorded { changes: vec![(0, None); raws.len()], unexplained: (0, None), all: 0 };
        for value in self.recorded.iter().filter(|v| self.old.accepts(v) && !self.new.accepts(v)) {
            told.all += 1;
            let refusals = refusals(self.new, value);
            let mut explained = false;
            for (raw, (count, first)) in raws.iter().zip(&mut told.changes) {
                if let Some(refusal) = refusals.iter().find(|r| explains(raw, r)) {
                    explained = true;
                    *count += 1;
                    first.get_or_insert_with(|| refusal.of_recorded(value));
                }
            }
            if !explained {
                told.unexplained.0 += 1;
                if let Some(refusal) = refusals.first() {
                    told.unexplained.1.get_or_insert_with(|| refusal.of_recorded(value));
                }
            }
        }
        told
    }
}

pub(super) fn broken(witness: WitnessCall) -> Judged {
    Judged { class: Class::Breaking, backed_by: Backing::Witness, witness: Some(witness) }
}

/// The edits that require an argument, with what a runtime fills in for it.
fn with_default(raw: &Raw, old: &Value) -> Vec<Edit> {
    let mut edits = raw.edits.clone();
    let Some(schema) = raw.new.as_ref().filter(|schema| schema.get("default").is_some()) else {
        return edits;
    };
    match (&raw.old, &raw.old_location) {
        (Some(_), Some(at)) => {
            let value = schema.get("default").cloned();
            edits.push(Edit { at: at.clone(), key: "default".to_owned(), value });
        }
        (None, _) => {
            let name = crate::pointer::tokens(&raw.pointer).last().unwrap_or_default();
            let Some(at) = edits.last().map(|edit| edit.at.clone()) else { return edits };
            let table = old.pointer(&format!("{at}/properties")).and_then(Value::as_object);
            let mut table = table.cloned().unwrap_or_default();
            table.insert(name, schema.clone());
            edits.push(Edit { at, key: "properties".to_owned(), value: Some(Value::Object(table)) });
        }
        _ => {}
    }
    edits
}

/// Whether a value that a runtime fills in may be new or another one.
fn changes_default(raw: &Raw) -> bool {
    match raw.kind {
        Kind::DefaultAdded | Kind::DefaultRemoved | Kind::DefaultChanged => true,
        Kind::PropertyAdded | Kind::RequiredAdded => {
            raw.new.as_ref().is_some_and(|schema| schema.get("default").is_some())
        }
        _ => false,
    }
}

/// The class of what no validator sees.
fn ruled(kind: Kind) -> Option<Class> {
    match kind {
        Kind::TitleChanged
        | Kind::DescriptionChanged
        | Kind::ExamplesChanged
        | Kind::DeprecationChanged
        | Kind::EnumReordered => Some(Class::UsuallyCompatible),
        Kind::UnitChanged | Kind::DefaultAdded | Kind::DefaultRemoved | Kind::DefaultChanged => {
            Some(Class::HighRisk)
        }
        _ => None,
    }
}

/// The least class of a change although nothing is refused: what is lost, or what only the open model sees.
fn floor(raw: &Raw, output: bool) -> Option<Class> {
    match (raw.kind, output) {
        (Kind::PropertyDropped, false) => Some(Class::HighRisk),
        // The result has a new field: old readers can ignore it.
        (Kind::PropertyDropped | Kind::PropertyRemoved, true) => Some(Class::UsuallyCompatible),
        // The result lost a field that could always be absent.
        (Kind::PropertyAdded, true) => Some(Class::HighRisk),
        (Kind::ObjectClosed, _) => Some(Class::UsuallyCompatible),
        (Kind::FormatChanged, _) => formats::least(raw.old.as_ref(), raw.new.as_ref()),
        (Kind::KeywordChanged, _) if raw.keyword == "unknown" => Some(Class::UsuallyCompatible),
        _ => None,
    }
}

/// One error of the new schema about a value.
struct Refusal {
    pointer: String,
    keyword: String,
    location: String,
    /// The missing or the undeclared names.
    names: Vec<String>,
}

impl Refusal {
    fn of_recorded(&self, value: &Value) -> WitnessCall {
        WitnessCall {
            name: None,
            value: Some(value.clone()),
            from: WitnessFrom::Recorded,
            place: None,
            pointer: self.pointer.clone(),
            keyword: self.keyword.clone(),
            location: self.location.clone(),
        }
    }
}

fn refusals(operand: &Operand, value: &Value) -> Vec<Refusal> {
    let mut all: Vec<Refusal> = operand
        .validator()
        .iter_errors(&operand.seen(value))
        .take(64)
        .map(|error| {
            let names = match error.kind() {
                ValidationErrorKind::Required { property } => {
                    property.as_str().map(str::to_owned).into_iter().collect()
                }
                ValidationErrorKind::AdditionalProperties { unexpected }
                | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected.clone(),
                _ => Vec::new(),
            };
            Refusal {
                pointer: error.instance_path().to_string(),
                keyword: error.kind().keyword().to_owned(),
                location: error.schema_path().to_string(),
                names,
            }
        })
        .collect();
    // The deepest place says most.
    all.sort_by_key(|r| std::cmp::Reverse(r.pointer.matches('/').count()));
    all
}

/// Whether a change is the reason of a refusal.
fn explains(raw: &Raw, refusal: &Refusal) -> bool {
    let pattern = Pattern::new(&raw.pointer);
    let named = || refusal.names.iter().any(|n| pattern.matches(&crate::pointer::join(&refusal.pointer, n)));
    match refusal.keyword.as_str() {
        "required" => raw.kind == Kind::RequiredAdded && named(),
        "additionalProperties" | "unevaluatedProperties" => {
            (matches!(raw.kind, Kind::PropertyRemoved | Kind::PropertyDropped) && named())
                || (matches!(raw.kind, Kind::ObjectClosed | Kind::OpenKeysChanged)
                    && pattern.matches(&refusal.pointer))
        }
        "anyOf" | "oneOf" | "not" | "if" => {
            let under = raw.pointer.starts_with(&refusal.pointer) || pattern.matches(&refusal.pointer);
            under && !matches!(raw.effect, Effect::Text | Effect::Widens)
        }
        "enum" | "const" => {
            pattern.matches(&refusal.pointer)
                && matches!(
                    raw.kind,
                    Kind::EnumAdded
                        | Kind::EnumValueRemoved
                        | Kind::EnumValueRecased
                        | Kind::ConstChanged
                        | Kind::TypeNarrowed
                        | Kind::TypeChanged
                        | Kind::NullRefused
                )
        }
        keyword => {
            let exclusive = |k: &str| k.replace("exclusiveM", "m").to_lowercase();
            pattern.matches(&refusal.pointer)
                && exclusive(raw.keyword) == exclusive(keyword)
                && raw.effect != Effect::Widens
        }
    }
}
