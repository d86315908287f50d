//! One change between two contracts: what, where, how bad, and what backs that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::class::{Backing, Bump, Class, Handling};

/// Which part of a contract a change is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Name, title, description, strict, annotations, provider.
    Definition,
    /// The schema of the arguments: what callers send.
    Input,
    /// The schema of the result: what callers receive. Every question is asked the other way round.
    Output,
    /// The error codes of `tool.yaml`.
    Errors,
}

impl Side {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Input => "input",
            Self::Output => "output",
            Self::Errors => "errors",
        }
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal),+ $(,)?) => {
        /// What kind of change it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ChangeKind { $($(#[doc = $doc])+ $name),+ }

        impl ChangeKind {
            /// Every kind, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word, snake case; also the rule id in reports.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// What the kind means, one sentence: the rule's text in SARIF and in the guide.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+)),+ }
            }
        }
    };
}

kinds! {
    /// The tool is called by another name.
    ToolRenamed = "tool_renamed",
    /// The tool is new on this surface.
    ToolAdded = "tool_added",
    /// The tool is gone from this surface.
    ToolRemoved = "tool_removed",
    /// Several tools became one.
    ToolsMerged = "tools_merged",
    /// Another provider's shape of the same definition.
    ProviderChanged = "provider_changed",
    /// The provider's strict flag was set, cleared or stated.
    StrictChanged = "strict_changed",
    /// The definition no longer fits the subset of JSON Schema that a provider's strict mode takes.
    ProviderSubsetLeft = "provider_subset_left",
    /// A hint such as readOnlyHint or destructiveHint changed.
    AnnotationChanged = "annotation_changed",
    /// Another JSON Schema draft is named.
    DraftChanged = "draft_changed",
    /// The result is declared now.
    OutputSchemaAdded = "output_schema_added",
    /// The result is no longer declared.
    OutputSchemaRemoved = "output_schema_removed",
    /// An error code is new.
    ErrorAdded = "error_added",
    /// An error code is no longer listed.
    ErrorRemoved = "error_removed",
    /// An error code belongs to another category.
    ErrorCategoryChanged = "error_category_changed",
    /// Whether an error may be retried changed.
    ErrorRetryChanged = "error_retry_changed",
    /// A title changed.
    TitleChanged = "title_changed",
    /// A description changed.
    DescriptionChanged = "description_changed",
    /// Examples changed.
    ExamplesChanged = "examples_changed",
    /// A part is marked deprecated, or no longer.
    DeprecationChanged = "deprecation_changed",
    /// A quantity is stated in another unit.
    UnitChanged = "unit_changed",
    /// A default is declared where none was.
    DefaultAdded = "default_added",
    /// A declared default is gone.
    DefaultRemoved = "default_removed",
    /// Another default is declared.
    DefaultChanged = "default_changed",
    /// A property is declared that was not.
    PropertyAdded = "property_added",
    /// A property is no longer declared, and refused.
    PropertyRemoved = "property_removed",
    /// A property is no longer declared but still accepted: its value is lost without an error.
    PropertyDropped = "property_dropped",
    /// A property has to be given that could be left out.
    RequiredAdded = "required_added",
    /// A property may be left out that had to be given.
    RequiredRemoved = "required_removed",
    /// More types are accepted.
    TypeWidened = "type_widened",
    /// Fewer types are accepted.
    TypeNarrowed = "type_narrowed",
    /// Other types are accepted.
    TypeChanged = "type_changed",
    /// `null` is accepted now.
    NullAllowed = "null_allowed",
    /// `null` is no longer accepted.
    NullRefused = "null_refused",
    /// Values are listed where any was accepted.
    EnumAdded = "enum_added",
    /// Values are no longer listed: any is accepted.
    EnumDropped = "enum_dropped",
    /// One more value is listed.
    EnumValueAdded = "enum_value_added",
    /// One value is no longer listed.
    EnumValueRemoved = "enum_value_removed",
    /// A listed value is written in another case.
    EnumValueRecased = "enum_value_recased",
    /// The same values are listed in another order.
    EnumReordered = "enum_reordered",
    /// Exactly one value is accepted, and it was not, or it is another.
    ConstChanged = "const_changed",
    /// A numeric bound accepts less.
    RangeTightened = "range_tightened",
    /// A numeric bound accepts more.
    RangeLoosened = "range_loosened",
    /// Fewer lengths or counts are accepted.
    SizeTightened = "size_tightened",
    /// More lengths or counts are accepted.
    SizeLoosened = "size_loosened",
    /// Text has to match a pattern, another one, or none.
    PatternChanged = "pattern_changed",
    /// Text has to be of a format, another one, or none.
    FormatChanged = "format_changed",
    /// Items of a list have to differ.
    UniqueRequired = "unique_required",
    /// Items of a list may repeat.
    UniqueDropped = "unique_dropped",
    /// Items are described where they were not, or no longer, or as a tuple.
    ItemsChanged = "items_changed",
    /// Undeclared properties are refused.
    ObjectClosed = "object_closed",
    /// Undeclared properties are accepted.
    ObjectOpened = "object_opened",
    /// What undeclared properties have to look like changed.
    OpenKeysChanged = "open_keys_changed",
    /// Alternatives or conditions (anyOf, oneOf, not, if, dependent*) changed.
    BranchesChanged = "branches_changed",
    /// A keyword that no rule reads changed.
    KeywordChanged = "keyword_changed",
    /// The same values, written otherwise.
    Rewritten = "rewritten",
    /// A call is refused that no rule explains.
    RefusedOtherwise = "refused_otherwise",
    /// The schemas go on beyond a limit of the comparison: what lies there was not looked at.
    CutOff = "cut_off",
}

impl std::fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a witness comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WitnessFrom {
    /// A call that was really made.
    Recorded,
    /// What a proof left open.
    Proof,
    /// An `enum`, `const`, `default` or example of one of the schemas.
    Example,
    /// A value at or just past a bound of one of the schemas, or one with a part changed.
    Boundary,
    /// Made from the schema.
    Generated,
    /// A value of the difference that the canonicalizer computed.
    Subtracted,
}

impl WitnessFrom {
    /// The word for it, snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Proof => "proof",
            Self::Example => "example",
            Self::Boundary => "boundary",
            Self::Generated => "generated",
            Self::Subtracted => "subtracted",
        }
    }
}

/// A value that one contract takes and the other refuses, checked by two validations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessCall {
    /// The tool's name by which the call is made; `None` for a result or a bare schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The arguments; the result where the output schema is in question. Absent where it is a recorded one whose values
    /// are not to be shown: then `place` says where it stands.
    #[serde(default, deserialize_with = "some_value", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where it comes from.
    pub from: WitnessFrom,
    /// Of a recorded one: where it stands, and its call id, such as `calls.jsonl:17, call_id c17`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// JSON Pointer into `value`: what is refused.
    pub pointer: String,
    /// The keyword that refuses; `name` where no tool answers to the call.
    pub keyword: String,
    /// JSON Pointer into the refusing schema.
    pub location: String,
}

/// A `null` that is there is a value.
fn some_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A likely new name: shown beside a removal and an addition, never instead of them (invariant 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RenameHint {
    /// Pointer or tool name as it was.
    pub from: String,
    /// Pointer or tool name as it is.
    pub to: String,
    /// Why it is likely, in words.
    pub evidence: String,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What kind.
    pub kind: ChangeKind,
    /// Which part of the contract.
    pub side: Side,
    /// Instance pointer: the argument or result field; `*` stands for any list index or open key. For the definition
    /// the pointer of its part (`/description`), for errors `/` and the code.
    pub pointer: String,
    /// Where the old document says it: JSON Pointer into the schema (input, output) or the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_location: Option<String>,
    /// Where the new document says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_location: Option<String>,
    /// What stood there; absent when nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What stands there; absent when nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// How bad.
    pub class: Class,
    /// What the class rests on.
    pub backed_by: Backing,
    /// The version step that this change alone asks for.
    pub bump: Bump,
    /// What to do before it goes live.
    pub handling: Handling,
    /// Whether the model reads this part of the definition: its behaviour may change although no value is refused.
    pub model_visible: bool,
    /// The change in words that its author would use, one sentence.
    pub sentence: String,
    /// A value that shows it, where `backed_by` is `witness`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<WitnessCall>,
    /// How many of the recorded calls are refused here; absent when none were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_refused: Option<u64>,
    /// A likely new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<RenameHint>,
    /// How to avoid the break or to migrate, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}
