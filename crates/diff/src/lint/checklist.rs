//! The two checklists that a definition and its change are held against, each line with what answers it.

use super::rules::{Rule, RuleId};

/// Which checklist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Of one definition.
    Definition,
    /// Of a change.
    Compatibility,
}

/// What answers a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// These rules.
    Rules(&'static [RuleId]),
    /// These rules, which can only ask the owner or the record.
    Ask(&'static [RuleId]),
}

/// One line of a checklist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Whose line.
    pub list: List,
    /// The question.
    pub question: &'static str,
    /// What answers it.
    pub covered: Covered,
}

impl Ask {
    /// The rules that answer.
    pub fn rules(&self) -> Vec<&'static Rule> {
        let (Covered::Rules(ids) | Covered::Ask(ids)) = self.covered;
        ids.iter().map(|id| id.rule()).collect()
    }
}

const fn line(list: List, question: &'static str, covered: Covered) -> Ask {
    Ask { list, question, covered }
}

use RuleId as R;

/// Both checklists, in order: seven lines about a definition, eight about a change.
pub const CHECKLISTS: [Ask; 15] = [
    line(
        List::Definition,
        "a tool id that stays",
        Covered::Rules(&[R::NotInRegistry, R::ToolIdCarriesVersion, R::RegistryBroken]),
    ),
    line(
        List::Definition,
        "the schema under version control",
        Covered::Rules(&[R::NotFrozen, R::FrozenChanged, R::VersionNotSemver]),
    ),
    line(
        List::Definition,
        "owner, risk level and deprecated versions stated",
        Covered::Rules(&[R::OwnerMissing, R::ApproverMissing, R::RiskLevelMissing, R::DeprecatedUnmarked]),
    ),
    line(
        List::Definition,
        "undeclared arguments refused",
        Covered::Rules(&[R::ExtraFieldsAllowed, R::OpenaiStrictOpen, R::AnthropicStrictOpen]),
    ),
    line(
        List::Definition,
        "units, defaults, permissions and limits in the descriptions",
        Covered::Rules(&[
            R::ArgumentDescriptionMissing,
            R::UnitUnstated,
            R::DefaultOnlyInText,
            R::DefaultUnstated,
            R::PermissionUnstated,
            R::RangeUnstated,
        ]),
    ),
    line(
        List::Definition,
        "enum values that mean something",
        Covered::Rules(&[R::EnumUnexplained, R::EnumCaseTwins]),
    ),
    line(
        List::Definition,
        "error codes with stable categories",
        Covered::Rules(&[
            R::ErrorCodesMissing,
            R::ErrorCategoryMissing,
            R::ErrorRetryUnstated,
            R::ErrorCodeRepeated,
        ]),
    ),
    line(List::Compatibility, "arguments newly required", Covered::Rules(&[R::RequiredAdded])),
    line(List::Compatibility, "arguments taken away", Covered::Rules(&[R::ArgumentRemoved])),
    line(
        List::Compatibility,
        "arguments renamed or retyped",
        Covered::Rules(&[R::ArgumentRenamed, R::ArgumentRetyped]),
    ),
    line(List::Compatibility, "enums narrowed", Covered::Rules(&[R::EnumNarrowed])),
    line(List::Compatibility, "defaults changed", Covered::Rules(&[R::DefaultChanged])),
    line(List::Compatibility, "paths in the result moved", Covered::Rules(&[R::ResultMoved])),
    line(List::Compatibility, "error codes with another meaning", Covered::Ask(&[R::ErrorSemantics])),
    line(
        List::Compatibility,
        "old prompts and stored sessions affected",
        Covered::Ask(&[R::SessionsAffected]),
    ),
];
