//! One schema against another, in the direction in which values flow.

use lastcall_contract::Draft;
use serde_json::Value;

use super::definition::{bump_of, handling_of, model_visible};
use super::judge::{Case, Judged, Recorded, broken};
use super::raw::{Edit, Effect, Raw};
use super::rounded::Rounded;
use super::strip::without_text;
use super::words::{Said, dotted};
use super::{hints, text, walk};
use crate::change::{Change, ChangeKind as Kind, Side, WitnessFrom};
use crate::class::{Backing, Class};
use crate::doc::SchemaDoc;
use crate::prove::Operand;
use crate::report::{DiffOptions, FactAnswer, Facts};

/// One schema of a side, with the draft under which it is read.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub schema: &'a Value,
    pub draft: Draft,
}

/// What a flow came to.
pub(super) struct Flow {
    pub facts: Facts,
    pub changes: Vec<Change>,
    pub notes: Vec<String>,
    pub recorded: (u64, u64),
}

/// Both sides prepared: `sub` is the one whose values have to be taken.
pub(super) fn flow(
    sub: (&Operand, Part<'_>),
    sup: (&Operand, Part<'_>),
    rounded: Rounded,
    output: bool,
    options: &DiffOptions<'_>,
) -> Flow {
    let recorded = if output { &[] } else { options.recorded };
    let fills = options.fills_defaults && !output;
    let case =
        Case { old: sub.0, new: sup.0, rounded: &rounded, seed: options.seed, recorded, output, fills };
    let facts = case.facts();
    let old = SchemaDoc::of_draft(sub.1.schema.clone(), sub.0.draft());
    let new = SchemaDoc::of_draft(sup.1.schema.clone(), sup.0.draft());
    let mut raws = walk::changes(&old, &new);
    text::untold(&old, &new, &mut raws);
    hints::renames(&mut raws, &old, &new);
    if sub.0.draft() != sup.0.draft() {
        raws.push(draft_changed(sub.0, sup.0));
    }
    let differ = sub.1.schema != sup.1.schema;
    let beyond_text = sub.0.draft() != sup.0.draft() || without_text(old.root()) != without_text(new.root());
    if facts.same_values() && beyond_text {
        let seen = raws.len();
        raws.retain(|raw| stays_although_equal(raw) || (fills && raw.kind == Kind::RequiredAdded));
        if raws.len() < seen || !raws.iter().any(|raw| raw.effect != Effect::Text) {
            raws.push(at_root(Kind::Rewritten, Effect::Either));
        }
    } else if differ && raws.is_empty() && !beyond_text {
        raws.push(at_root(Kind::Rewritten, Effect::Either));
    } else if beyond_text
        && facts.declared.answer != FactAnswer::Refuted
        && !raws.iter().any(|raw| raw.effect != Effect::Text)
    {
        raws.push(at_root(Kind::KeywordChanged, Effect::Either));
    }
    raws.extend(rounded.raws.iter().cloned());
    let mut judged = case.judge(&raws, &facts);
    close(&facts, &mut raws, &mut judged);
    let told = case.recorded(&raws);
    let refused = told.all;
    let counts = bind_recorded(told, &mut raws, &mut judged);
    let counted = !recorded.is_empty();
    let all = recorded.len();
    let changes = raws
        .iter()
        .zip(judged)
        .zip(counts)
        .map(|((raw, judged), count)| change(raw, judged, output, counted.then_some((count, all))));
    let changes = changes.collect();
    let mut notes = notes(&facts, output);
    notes.extend(sup.0.refused_defaults().iter().map(|(pointer, default)| {
        let name = dotted(pointer);
        format!("The new default {default} of `{name}` is refused by its own schema: a call without `{name}` is filled with it and refused.")
    }));
    Flow { notes, facts, changes, recorded: (recorded.len() as u64, refused) }
}

/// A recorded call that is refused is a risk whatever is declared: it is what callers send. How many are refused by
/// each change.
fn bind_recorded(told: Recorded, raws: &mut Vec<Raw>, judged: &mut Vec<Judged>) -> Vec<u64> {
    let mut counts: Vec<u64> = Vec::with_capacity(raws.len());
    for (judged, (count, witness)) in judged.iter_mut().zip(told.changes) {
        if count > 0 && judged.class < Class::HighRisk {
            *judged = Judged { class: Class::HighRisk, backed_by: Backing::Witness, witness };
        }
        counts.push(count);
    }
    let worst = judged.iter().map(|j| j.class).max().unwrap_or_default();
    if told.unexplained.0 > 0 && worst < Class::HighRisk {
        raws.push(at_root(Kind::RefusedOtherwise, Effect::Narrows));
        let witness = told.unexplained.1;
        judged.push(Judged { class: Class::HighRisk, backed_by: Backing::Witness, witness });
        counts.push(told.unexplained.0);
    }
    counts
}

/// The answer about the whole binds: a refutation is told, and an unknown is never outvoted by what rules say.
fn close(facts: &Facts, raws: &mut Vec<Raw>, judged: &mut Vec<Judged>) {
    let worst = judged.iter().map(|j| j.class).max().unwrap_or_default();
    match (&facts.declared.answer, &facts.declared.witness) {
        (FactAnswer::Refuted, Some(witness)) if worst < Class::Breaking => {
            raws.push(at_root(Kind::RefusedOtherwise, Effect::Narrows));
            judged.push(broken(witness.clone()));
        }
        (FactAnswer::Unknown, _) if worst < Class::NeedsReview => {
            raws.push(at_root(Kind::KeywordChanged, Effect::Either));
            judged.push(Judged { class: Class::NeedsReview, backed_by: Backing::Nothing, witness: None });
        }
        _ => {}
    }
}

/// Changes that are worth telling although the schemas take the same values: what is declared is what models send.
fn stays_although_equal(raw: &Raw) -> bool {
    raw.effect == Effect::Text
        || raw.keyword == "unknown"
        || matches!(
            raw.kind,
            Kind::PropertyAdded
                | Kind::PropertyDropped
                | Kind::PropertyRemoved
                | Kind::DraftChanged
                | Kind::FormatChanged
                | Kind::CutOff
        )
}

fn at_root(kind: Kind, effect: Effect) -> Raw {
    Raw {
        kind,
        pointer: String::new(),
        old_location: Some(String::new()),
        new_location: Some(String::new()),
        old: None,
        new: None,
        effect,
        keyword: "",
        edits: Vec::new(),
        place: None,
        rename: None,
        values: 1,
    }
}

fn draft_changed(old: &Operand, new: &Operand) -> Raw {
    let edit =
        Edit { at: String::new(), key: "$schema".to_owned(), value: new.schema().get("$schema").cloned() };
    Raw {
        old: Some(Value::from(old.draft().as_str())),
        new: Some(Value::from(new.draft().as_str())),
        keyword: "$schema",
        edits: vec![edit],
        ..at_root(Kind::DraftChanged, Effect::Either)
    }
}

/// The change as told: of results, old and new are swapped back.
fn change(raw: &Raw, judged: Judged, output: bool, recorded: Option<(u64, usize)>) -> Change {
    let side = if output { Side::Output } else { Side::Input };
    let kind = if output { mirrored(raw) } else { raw.kind };
    let swap = |a: &Option<Value>, b: &Option<Value>| {
        if output { (b.clone(), a.clone()) } else { (a.clone(), b.clone()) }
    };
    let (old, new) = swap(&raw.old, &raw.new);
    let (old_location, new_location) = if output {
        (raw.new_location.clone(), raw.old_location.clone())
    } else {
        (raw.old_location.clone(), raw.new_location.clone())
    };
    let rename = raw.rename.clone().map(|mut hint| {
        if output {
            std::mem::swap(&mut hint.from, &mut hint.to);
        }
        hint
    });
    let said = Said {
        kind,
        side,
        pointer: &raw.pointer,
        old: old.as_ref(),
        new: new.as_ref(),
        keyword: raw.keyword,
        rename: rename.as_ref(),
        values: raw.values,
        breaks: judged.class == Class::Breaking,
        idle: judged.class == Class::Compatible && raw.effect == Effect::Narrows,
    };
    let (mut sentence, fix) = (said.sentence(), said.fix());
    if let (Some((count, all)), Class::HighRisk, Backing::Witness) =
        (recorded, judged.class, judged.backed_by)
    {
        let verb = if count == 1 { "is" } else { "are" };
        sentence.push_str(&format!(" {count} of the {all} recorded calls {verb} refused."));
    }
    Change {
        kind,
        side,
        pointer: raw.pointer.clone(),
        old_location,
        new_location,
        old,
        new,
        class: judged.class,
        backed_by: judged.backed_by,
        bump: bump_of(judged.class, kind),
        handling: handling_of(judged.class),
        model_visible: model_visible(kind, side),
        sentence,
        witness: judged.witness,
        recorded_refused: recorded.map(|(count, _)| count),
        rename,
        fix,
    }
}

/// The kind as seen from the other side.
fn mirrored(raw: &Raw) -> Kind {
    match raw.kind {
        Kind::PropertyDropped | Kind::PropertyRemoved => Kind::PropertyAdded,
        Kind::PropertyAdded => Kind::PropertyRemoved,
        Kind::RequiredAdded if raw.old.is_none() && raw.new.is_some() => Kind::PropertyRemoved,
        Kind::RequiredAdded => Kind::RequiredRemoved,
        Kind::RequiredRemoved => Kind::RequiredAdded,
        Kind::TypeWidened => Kind::TypeNarrowed,
        Kind::TypeNarrowed => Kind::TypeWidened,
        Kind::NullAllowed => Kind::NullRefused,
        Kind::NullRefused => Kind::NullAllowed,
        Kind::EnumAdded => Kind::EnumDropped,
        Kind::EnumDropped => Kind::EnumAdded,
        Kind::EnumValueAdded => Kind::EnumValueRemoved,
        Kind::EnumValueRemoved => Kind::EnumValueAdded,
        Kind::RangeTightened => Kind::RangeLoosened,
        Kind::RangeLoosened => Kind::RangeTightened,
        Kind::SizeTightened => Kind::SizeLoosened,
        Kind::SizeLoosened => Kind::SizeTightened,
        Kind::UniqueRequired => Kind::UniqueDropped,
        Kind::UniqueDropped => Kind::UniqueRequired,
        Kind::ObjectClosed => Kind::ObjectOpened,
        Kind::ObjectOpened => Kind::ObjectClosed,
        Kind::DefaultAdded => Kind::DefaultRemoved,
        Kind::DefaultRemoved => Kind::DefaultAdded,
        other => other,
    }
}

/// What only the open model sees.
fn notes(facts: &Facts, output: bool) -> Vec<String> {
    let (FactAnswer::Refuted, Some(witness)) = (facts.open.answer, &facts.open.witness) else {
        return Vec::new();
    };
    if facts.declared.answer == FactAnswer::Refuted {
        return Vec::new();
    }
    // what was really sent may be personal data: it is counted, and not told here
    let value = witness.value.as_ref().filter(|_| witness.from != WitnessFrom::Recorded);
    let such = match value {
        Some(value) => format!(", such as {value},"),
        None => ", as a recorded one has,".to_owned(),
    };
    let place = if witness.pointer.is_empty() {
        String::new()
    } else {
        format!(" at `{}`", dotted(&witness.pointer))
    };
    vec![if output {
        format!(
            "A result with fields that the new schema does not declare{such} is refused by the old one{place}."
        )
    } else {
        format!("A call with arguments that the old schema does not declare{such} is refused now{place}.")
    }]
}
