//! What of a source's records is not kept: rules that stand in the control chain and are applied before anything is
//! written. The types and their checks; `record` applies them.

mod hold;

use std::fmt;

use lastcall_event::{Place, Preset};
use serde::{Deserialize, Serialize};

use crate::error::LedgerError;

pub use hold::Redacted;

/// The most rules of one source.
const MAX_RULES: usize = 256;
/// The longest pointer, in bytes.
const MAX_POINTER: usize = 1024;
/// The most steps of a pointer.
const MAX_STEPS: usize = 32;

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// It stays: an exception within a wider rule.
    Keep,
    /// A keyed hash takes its place: equal values stay equal, and nobody without the key can try values out.
    Hash,
    /// It is left out.
    Drop,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactionRule {
    /// Only records of this tool (`*` at the end matches any rest); absent: of every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// JSON Pointer into the record; a step `*` stands for any key and any index. One that begins with `/arguments`
    /// holds wherever the record repeats the arguments.
    pub pointer: String,
    /// What becomes of what stands there.
    pub action: Treatment,
}

/// The rules of one source, and which key their hashes are made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// The rules. Of those that fit a value the most precise holds: more steps, then a key before a `*`.
    pub rules: Vec<RedactionRule>,
    /// Fingerprint of the key (16 hex digits). The key itself never stands in a ledger.
    pub key: String,
}

/// One step of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// This key, or this index of a list.
    Key(String),
    /// Any key, any index.
    Any,
}

impl Treatment {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Hash => "hash",
            Self::Drop => "drop",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Keep, Self::Hash, Self::Drop].into_iter().find(|t| t.as_str() == name)
    }
}

impl fmt::Display for RedactionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = &self.tool {
            write!(f, "{tool}:")?;
        }
        write!(f, "{}={}", self.pointer, self.action.as_str())
    }
}

impl RedactionRule {
    /// Reads `[TOOL:]/pointer=keep|hash|drop`.
    ///
    /// # Errors
    /// It has another shape; the text says which is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shape = || {
            format!(
                "`{text}` is no rule of redaction; write [TOOL:]/pointer=keep|hash|drop, such as /arguments/email=hash"
            )
        };
        let (place, action) = text.rsplit_once('=').ok_or_else(shape)?;
        let action = Treatment::parse(action).ok_or_else(shape)?;
        let (tool, pointer) = match place.find(":/").filter(|_| !place.starts_with('/')) {
            Some(at) => (place.get(..at).map(str::to_owned), place.get(at + 1..).unwrap_or_default()),
            None => (None, place),
        };
        if !pointer.starts_with('/') || tool.as_deref() == Some("") {
            return Err(shape());
        }
        Ok(Self { tool, pointer: pointer.to_owned(), action })
    }

    /// Whether it is about the same place as another rule.
    pub fn same_place(&self, other: &Self) -> bool {
        self.tool == other.tool && self.pointer == other.pointer
    }

    /// Whether what it names may hold, or be, what another rule names.
    fn reaches(&self, other: &Self) -> bool {
        let (Ok(wide), Ok(narrow)) = (self.steps(), other.steps()) else { return true };
        let fits = |(a, b): (&Step, &Step)| *a == Step::Any || *b == Step::Any || a == b;
        wide.len() <= narrow.len() && wide.iter().zip(&narrow).all(fits)
    }

    /// The steps of its pointer.
    ///
    /// # Errors
    /// It is no JSON Pointer, or longer than allowed.
    pub fn steps(&self) -> Result<Vec<Step>, LedgerError> {
        let wrong = |why: &str| Err(LedgerError::Refused(format!("redaction `{self}`: {why}")));
        let Some(rest) = self.pointer.strip_prefix('/') else {
            return wrong(
                "a pointer begins with `/`; the whole record cannot be redacted, name what is in it",
            );
        };
        if self.pointer.len() > MAX_POINTER {
            return wrong("the pointer is longer than 1024 bytes");
        }
        let mut steps = Vec::new();
        for token in rest.split('/') {
            let odd = token
                .match_indices('~')
                .any(|(at, _)| !matches!(token.as_bytes().get(at + 1), Some(b'0' | b'1')));
            if odd {
                return wrong("`~` is written `~0`, and `/` in a key `~1`");
            }
            steps.push(match token {
                "*" => Step::Any,
                key => Step::Key(key.replace("~1", "/").replace("~0", "~")),
            });
        }
        if steps.len() > MAX_STEPS {
            return wrong("the pointer has more than 32 steps");
        }
        Ok(steps)
    }

    /// The pointers that it stands for: one that begins with `/arguments` holds wherever the record repeats them.
    ///
    /// # Errors
    /// It is no JSON Pointer.
    pub fn paths(&self, preset: Preset) -> Result<Vec<Vec<Step>>, LedgerError> {
        let steps = self.steps()?;
        let Some((Step::Key(first), rest)) = steps.split_first() else { return Ok(vec![steps]) };
        if first != "arguments" {
            return Ok(vec![steps]);
        }
        let step = |key: &&str| if *key == "*" { Step::Any } else { Step::Key((*key).to_owned()) };
        let at = |place: &&[&str]| place.iter().map(step).chain(rest.iter().cloned()).collect();
        Ok(preset.argument_places().iter().map(at).collect())
    }

    /// Refuses what cannot be redacted: a record must stay readable, and be found and counted as before.
    ///
    /// # Errors
    /// The pointer reaches what must stay, or nothing.
    pub fn check(&self, preset: Preset) -> Result<(), LedgerError> {
        let wrong = |why: String| Err(LedgerError::Refused(format!("redaction `{self}`: {why}")));
        let mut place = preset.places();
        let mut so_far = String::new();
        for (at, step) in self.steps()?.iter().enumerate() {
            let (key, next) = match step {
                Step::Any if at == 0 => {
                    return wrong("the first step names a field of the record, not `*`".into());
                }
                // any field of a known object: those that must stay are passed over
                Step::Any if matches!(place, Place::Record(_)) => ("*", Place::Free),
                Step::Any => ("*", place.item()),
                Step::Key(_) if at == 0 && self.is_arguments(step) => ("arguments", Place::Needed),
                Step::Key(key) if matches!(place, Place::List(_)) => {
                    let index = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
                    if !index {
                        return wrong(format!("{so_far} is a list; write {so_far}/* for each of its items"));
                    }
                    (key.as_str(), place.item())
                }
                Step::Key(key) => (key.as_str(), place.member(key)),
            };
            if at > 0 && matches!(place, Place::Text | Place::Classed) {
                return wrong(format!("{so_far} is a text; nothing stands below it"));
            }
            if at > 0 && place == Place::Fixed {
                return wrong(format!("{so_far} must stay as it is"));
            }
            so_far.push('/');
            so_far.push_str(key);
            place = next;
        }
        match (place, self.action) {
            (_, Treatment::Keep)
            | (Place::Free | Place::Text | Place::Encoded | Place::Classed, _)
            | (Place::Needed, Treatment::Hash)
            | (Place::List(Place::Text), Treatment::Drop) => Ok(()),
            (Place::Fixed, _) => wrong(format!(
                "{so_far} must stay as it is: without it the record could not be read, counted or found again"
            )),
            (Place::Needed, _) => {
                wrong(format!("a call must have its arguments; {so_far}/*=drop leaves an empty object"))
            }
            (Place::List(_), _) => wrong(format!("{so_far} is a list; write {so_far}/*")),
            (Place::Record(_), _) => wrong(format!(
                "{so_far} is an object that a record needs; name its fields, or {so_far}/* for all"
            )),
        }
    }

    fn is_arguments(&self, step: &Step) -> bool {
        *step == Step::Key("arguments".to_owned())
    }
}

impl Redaction {
    /// Checks every rule for records of this preset.
    ///
    /// # Errors
    /// There is none, there are too many, or one of them is refused.
    pub fn check(&self, preset: Preset) -> Result<(), LedgerError> {
        if self.rules.is_empty() {
            return Err(LedgerError::Refused("a redaction without a rule redacts nothing".to_owned()));
        }
        if self.rules.len() > MAX_RULES {
            return Err(LedgerError::Refused(format!("a source has at most {MAX_RULES} rules of redaction")));
        }
        self.rules.iter().try_for_each(|rule| rule.check(preset))
    }

    /// These rules with others over them: one with the same tool and pointer takes the place of what stood there. A
    /// `keep` stays only where something wider would hide the value. `None`: nothing is hidden any more.
    pub fn with(current: Option<&Self>, given: &Self) -> Option<Self> {
        let mut rules = current.map(|c| c.rules.clone()).unwrap_or_default();
        for rule in &given.rules {
            match rules.iter_mut().find(|r| r.same_place(rule)) {
                Some(stood) => stood.action = rule.action,
                None => rules.push(rule.clone()),
            }
        }
        let hiding: Vec<RedactionRule> =
            rules.iter().filter(|r| r.action != Treatment::Keep).cloned().collect();
        rules.retain(|r| r.action != Treatment::Keep || hiding.iter().any(|wide| wide.reaches(r)));
        let redaction = Self { rules, key: given.key.clone() };
        redaction.redacts().then_some(redaction)
    }

    /// Whether anything at all is hashed or left out.
    pub fn redacts(&self) -> bool {
        self.rules.iter().any(|rule| rule.action != Treatment::Keep)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_shown() {
        for text in [
            "/arguments/email=hash",
            "refund.create_request:/arguments/items/*/note=drop",
            "sms*:/envelope/session_id=hash",
            "/arguments/a=b=keep",
            "/arguments/x:/y=drop",
        ] {
            assert_eq!(RedactionRule::parse(text).unwrap().to_string(), text);
        }
        for text in ["/arguments/email", "arguments=hash", "/a=mask", ":/a=hash", "t:a=hash", "=hash"] {
            assert!(RedactionRule::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rules_add_to_those_that_stand_and_override_them() {
        let redaction = |rules: &[&str]| Redaction {
            rules: rules.iter().map(|r| RedactionRule::parse(r).unwrap()).collect(),
            key: "k".to_owned(),
        };
        let after = |stood: &[&str], given: &[&str]| -> Vec<String> {
            let stood = (!stood.is_empty()).then(|| redaction(stood));
            let after = Redaction::with(stood.as_ref(), &redaction(given));
            after.map(|r| r.rules.iter().map(ToString::to_string).collect()).unwrap_or_default()
        };
        let stood = ["/arguments/email=hash", "/arguments/phone=drop"];
        assert_eq!(after(&[], &stood), stood);
        assert_eq!(after(&stood, &["/arguments/zip=drop"]).len(), 3);
        assert_eq!(
            after(&stood, &["/arguments/email=drop"]),
            ["/arguments/email=drop", "/arguments/phone=drop"]
        );
        assert_eq!(after(&stood, &["/arguments/email=keep"]), ["/arguments/phone=drop"]);
        assert_eq!(after(&stood, &["t:/arguments/email=drop"]).len(), 3);
        assert!(after(&stood, &["/arguments/email=keep", "/arguments/phone=keep"]).is_empty());
        // What a wider rule would hide stays kept by name.
        for wide in ["/arguments/*=drop", "/arguments=hash"] {
            assert_eq!(after(&[wide, stood[0]], &["/arguments/email=keep"]), [wide, "/arguments/email=keep"]);
        }
    }

    #[test]
    fn what_must_stay_is_refused_with_a_reason() {
        let says = |text: &str, preset| match RedactionRule::parse(text).unwrap().check(preset) {
            Ok(()) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        for (text, part) in [
            ("/call_id=hash", "must stay as it is"),
            ("/tool_id=drop", "must stay as it is"),
            ("/ts=hash", "must stay as it is"),
            ("/envelope/cohort=hash", "must stay as it is"),
            ("/outcome/status=drop", "must stay as it is"),
            ("/upstream/from=hash", "must stay as it is"),
            ("/candidates/*/contract_id=hash", "must stay as it is"),
            ("/candidates/first/result=drop", "/candidates is a list; write /candidates/*"),
            ("/candidates=drop", "is a list"),
            ("/outcome=drop", "name its fields, or /outcome/*"),
            ("/envelope=hash", "name its fields, or /envelope/*"),
            ("/arguments=drop", "/arguments/*=drop leaves an empty object"),
            ("/envelope/delegation=hash", "write /envelope/delegation/*"),
            ("/envelope/session_id/x=hash", "is a text"),
            ("/*=drop", "not `*`"),
            ("/*/email=drop", "not `*`"),
            ("/arguments/a~b=hash", "`~0`"),
        ] {
            assert!(says(text, Preset::Native).contains(part), "{text}: {}", says(text, Preset::Native));
        }
        assert!(says("/trace_id=hash", Preset::Interceptor).contains("must stay as it is"));
        for text in [
            "/arguments=hash",
            "/arguments/*=drop",
            "/arguments/contacts/*/email=hash",
            "/arguments_text=drop",
            "/outcome/result=drop",
            "/outcome/*=drop",
            "/outcome/result_keys/*=hash",
            "/envelope/*=drop",
            "/envelope/delegation=drop",
            "/envelope/session_id=hash",
            "/candidates/*/result/name=hash",
            "/candidates/*/*=drop",
            "/current_rerun/result=drop",
            "/customer=drop",
            "/call_id=keep",
        ] {
            assert_eq!(says(text, Preset::Native), "fine", "{text}");
        }
        assert_eq!(says("/arguments/email=hash", Preset::Interceptor), "fine");
        assert_eq!(says("/candidate_error=hash", Preset::Interceptor), "fine");
    }

    #[test]
    fn arguments_are_redacted_wherever_the_record_repeats_them() {
        let rule = RedactionRule::parse("/arguments/email=hash").unwrap();
        let shown = |preset| -> Vec<String> {
            let step = |s: &Step| match s {
                Step::Any => "/*".to_owned(),
                Step::Key(key) => format!("/{key}"),
            };
            rule.paths(preset).unwrap().iter().map(|p| p.iter().map(step).collect()).collect()
        };
        assert_eq!(
            shown(Preset::Native),
            [
                "/arguments/email",
                "/arguments_text/email",
                "/candidates/*/arguments/email",
                "/current_rerun/arguments/email"
            ]
        );
        assert_eq!(
            shown(Preset::Interceptor),
            ["/raw_args/email", "/current_args/email", "/candidate_args/email"]
        );
    }
}
