//! The rules. Ids are stable: a rule that goes leaves its number unused.

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, or a question to the owner.
    Note,
    /// Likely to make calls fail or drift.
    Warning,
    /// Wrong: calls fail, or a provider refuses the definition.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Names and descriptions: what the model reads.
    Text,
    /// The schema as such.
    Schema,
    /// Schemas that accept either of two versions' shapes.
    Shapes,
    /// Regular expressions.
    Patterns,
    /// What a provider demands.
    Provider,
    /// What stands in a registry beside the definition.
    Registry,
    /// A version against the one before it.
    Compatibility,
}

impl Group {
    /// Every group, in the order of the guide.
    pub const ALL: [Self; 7] = [
        Self::Text,
        Self::Schema,
        Self::Shapes,
        Self::Patterns,
        Self::Provider,
        Self::Registry,
        Self::Compatibility,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Schema => "schema",
            Self::Shapes => "shapes",
            Self::Patterns => "patterns",
            Self::Provider => "provider",
            Self::Registry => "registry",
            Self::Compatibility => "compatibility",
        }
    }
}

/// One rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// `LC001` …
    pub id: &'static str,
    /// The name, kebab case.
    pub name: &'static str,
    /// How bad a finding is.
    pub severity: Severity,
    /// What it looks at.
    pub group: Group,
    /// Whether `--fix` can mend it.
    pub fixable: bool,
    /// One sentence: what is found.
    pub summary: &'static str,
    /// Why that matters.
    pub why: &'static str,
    /// What to do.
    pub fix: &'static str,
}

impl Rule {
    /// The rule of this id or name; letter case does not matter.
    pub fn find(text: &str) -> Option<&'static Self> {
        let text = text.to_ascii_lowercase();
        RULES.iter().find(|r| r.name == text || r.id.to_ascii_lowercase() == text)
    }
}

macro_rules! rules {
    ($($variant:ident $id:literal $name:literal $severity:ident $group:ident $fixable:ident
       $summary:literal $why:literal $fix:literal)*) => {
        /// A rule by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum RuleId { $($variant),* }

        /// Every rule, by id.
        pub const RULES: &[Rule] = &[$(Rule {
            id: $id, name: $name, severity: Severity::$severity, group: Group::$group, fixable: rules!(@ $fixable),
            summary: $summary, why: $why, fix: $fix,
        }),*];
    };
    (@ fixable) => { true };
    (@ manual) => { false };
}

impl RuleId {
    /// The rule.
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }
}

rules! {
    UnreadableDefinition "LC001" "unreadable-definition" Error Schema manual
        "The definition cannot be read for certain"
        "A definition that readers understand differently, or that is no valid schema, protects no call."
        "Correct the definition at that place"
    ToolDescriptionMissing "LC002" "tool-description-missing" Warning Text manual
        "The tool has no description"
        "The description is what the model chooses a tool by."
        "Say in one or two sentences what the tool does, and when not to use it"
    ToolDescriptionThin "LC003" "tool-description-thin" Note Text manual
        "The tool's description says little more than its name"
        "Two tools with such descriptions cannot be told apart by a model."
        "Say what the tool does to the world, what it answers, and when not to use it"
    ArgumentDescriptionMissing "LC004" "argument-description-missing" Warning Text manual
        "An argument has no description"
        "The model then guesses from the name alone, and guesses change with the model."
        "Describe it: meaning, unit, default, limits, and who may use it"
    DescriptionRepeatsName "LC005" "description-repeats-name" Note Text manual
        "An argument's description only repeats its name"
        "It takes tokens and tells nothing."
        "Say what the name does not: meaning, unit, default, limits"
    UnitUnstated "LC006" "unit-unstated" Warning Text manual
        "A quantity has no unit, in its name or in its description"
        "Cents or euros, seconds or milliseconds: a value in the wrong unit is valid and wrong."
        "Name the unit in the description, or end the name with it (`timeout_ms`, `amount_cents`)"
    DefaultOnlyInText "LC007" "default-only-in-text" Note Text manual
        "The description names a default that the schema does not state"
        "A default in words cannot be compared between versions."
        "Add `default` to the schema, with the value that the runtime uses"
    DefaultUnstated "LC008" "default-unstated" Note Text manual
        "Optional arguments do not say what happens when they are left out"
        "Most calls leave optional arguments out; a changed default then changes them all without a trace."
        "State `default`, or say in the description what absence means"
    RangeUnstated "LC009" "range-unstated" Note Text manual
        "Numbers have no limits, neither in the schema nor in words"
        "Limits that only the runtime knows turn into errors in production."
        "State `minimum` and `maximum`, or say the limits in the description"
    PermissionUnstated "LC010" "permission-unstated" Note Text manual
        "A tool that changes the world does not say who may use it: ask the owner"
        "Permissions cannot be read from a schema; an agent that does not know them promises what it may not do."
        "Ask the owner, and say in the description which permission or approval a call needs"
    VagueName "LC011" "vague-name" Warning Text manual
        "An argument has a name that says nothing, and no description that does"
        "`data`, `value` or `info` are filled with whatever the conversation offers."
        "Name it for what it holds, or describe it"
    NamesDifferInSpelling "LC012" "names-differ-in-spelling" Warning Text manual
        "Two names beside each other differ in letter case or separators only"
        "A model mixes them up, and so does a reader."
        "Keep one of them, or name the other for what is different"
    NameStylesMixed "LC013" "name-styles-mixed" Note Text manual
        "Arguments beside each other mix `snake_case` and `camelCase`"
        "Models settle on one style and then miss the other."
        "Use one style in a tool"
    DeprecatedWithoutSuccessor "LC014" "deprecated-without-successor" Note Text manual
        "A deprecated argument does not say what replaces it"
        "Callers stay on it."
        "Name the replacement in the description, or say that there is none"
    VersionInName "LC015" "version-in-name" Note Text manual
        "A name carries a version or says that it is old or new"
        "The version belongs to the contract; a name that carries one cannot stay."
        "Name it for what it holds; publish the change as a new version of the contract"
    ToolNameRefused "LC016" "tool-name-refused" Error Provider manual
        "The provider refuses this tool name"
        "The request with this tool in it fails as a whole."
        "OpenAI and Anthropic take up to 64 of `A-Z a-z 0-9 _ -`; Gemini up to 128, also `.` and `:`, not beginning with a digit"
    ToolNameNotPortable "LC017" "tool-name-not-portable" Note Provider manual
        "Some providers refuse this tool name"
        "An MCP tool is offered to models of every provider; clients then rename it, each in its own way."
        "Use up to 64 of `A-Z a-z 0-9 _ -`"
    ToolNameRepeated "LC018" "tool-name-repeated" Error Text manual
        "Two tools of one list have the same name"
        "Providers refuse the list, or the second hides the first."
        "Rename one of them"
    EnumUnexplained "LC019" "enum-unexplained" Warning Text manual
        "An enum of short codes is not explained"
        "`A`, `B`, `2`: the model picks by sound."
        "Say in the description what each value means, or use words as values"
    EnumRepeated "LC020" "enum-repeated" Warning Schema fixable
        "An enum lists a value twice"
        "Some validators refuse the schema."
        "Remove the second"
    EnumCaseTwins "LC021" "enum-case-twins" Warning Schema manual
        "Two enum values differ in letter case or separators only"
        "Often two versions' spellings: the runtime may know one of them only."
        "Keep one spelling"
    EnumValueRefused "LC022" "enum-value-refused" Warning Schema manual
        "An enum value is refused by the schema beside it"
        "A model may choose it, and the call fails."
        "Remove the value, or widen what stands beside it"
    DefaultRefused "LC023" "default-refused" Error Schema manual
        "The default violates its own schema"
        "A runtime that fills it in refuses its own call; a model that repeats it fails."
        "Correct the default or the schema"
    ExampleRefused "LC024" "example-refused" Warning Schema manual
        "An example violates its own schema"
        "Models copy examples."
        "Correct the example or the schema"
    RequiredUndeclared "LC025" "required-undeclared" Error Schema manual
        "A required argument is not declared"
        "No caller knows what to send; in a closed object no call can be valid."
        "Declare it under `properties`, or take it out of `required`"
    NeverAccepts "LC026" "never-accepts" Error Schema manual
        "No value can be valid here"
        "The argument can never be given; if it is required, the tool can never be called."
        "Correct the contradiction"
    BranchRepeated "LC027" "branch-repeated" Warning Schema manual
        "Two branches of a union are the same"
        "In `oneOf` both are then refused; in `anyOf` one is dead."
        "Remove one of them"
    BranchUnreachable "LC028" "branch-unreachable" Warning Schema manual
        "A branch of a union can never be taken"
        "The schema beside it allows none of its types."
        "Remove the branch, or widen the type beside the union"
    KeywordWithoutEffect "LC029" "keyword-without-effect" Warning Schema manual
        "A keyword has no effect where it stands"
        "It looks like a promise and checks nothing."
        "Remove it, or correct the type"
    KeywordUnknown "LC030" "keyword-unknown" Warning Schema fixable
        "A keyword that JSON Schema does not know, near one that it knows"
        "Validators ignore unknown keywords without a word."
        "Correct the spelling"
    KeywordForeign "LC031" "keyword-foreign" Note Schema manual
        "A keyword that JSON Schema does not know"
        "It is ignored by validators; if it is meant as a limit, nothing enforces it."
        "Begin own annotations with `x-`, or remove it"
    KeywordOpenapi "LC032" "keyword-openapi" Warning Schema fixable
        "A keyword of OpenAPI that JSON Schema ignores"
        "`nullable: true` for instance does not allow null here."
        "Write it in JSON Schema: `\"type\": [\"string\", \"null\"]`, `examples`, `const` in the branches"
    KeywordOtherDraft "LC033" "keyword-other-draft" Warning Schema manual
        "A keyword of another draft of JSON Schema"
        "It is ignored under the draft that counts here."
        "Write it as this draft does, or state `$schema`"
    TypeMissing "LC034" "type-missing" Warning Schema manual
        "An argument has no type"
        "Anything is valid, so nothing is checked."
        "State `type`, `enum` or a union"
    ItemsMissing "LC035" "items-missing" Warning Schema manual
        "A list does not say what its items are"
        "OpenAI and Gemini refuse it; elsewhere the model guesses."
        "Add `items`"
    ObjectFreeForm "LC036" "object-free-form" Note Schema manual
        "An object does not say what is in it"
        "A change inside it is invisible to any comparison of contracts."
        "Declare `properties`, or `additionalProperties` with a schema"
    RootNotObject "LC037" "root-not-object" Warning Schema fixable
        "The root does not state `\"type\": \"object\"`"
        "MCP, OpenAI and Anthropic ask for it."
        "Add `\"type\": \"object\"`"
    ExtraFieldsAllowed "LC038" "extra-fields-allowed" Note Schema manual
        "Objects accept arguments that they do not declare"
        "A misspelt or dropped argument is accepted and ignored: the most silent way to break a caller."
        "Set `additionalProperties: false` in a new version, where undeclared arguments are not meant"
    RequiredWithDefault "LC039" "required-with-default" Note Schema manual
        "A required argument has a default"
        "The default is never used."
        "Make it optional, or drop the default"
    TwoWaysToOmit "LC040" "two-ways-to-omit" Note Schema manual
        "An argument may be left out and may be null"
        "Both happen, and a new version that treats them differently breaks one of them."
        "Say that both mean the same, or allow one"
    EitherShape "LC041" "either-shape" Warning Shapes manual
        "A union of objects without a field that tells them apart: either of two versions' shapes"
        "It hides a migration inside one contract: nobody sees which shape is still used."
        "Publish two versions, or add a `const` field that names the shape"
    EitherName "LC042" "either-name" Warning Shapes manual
        "An argument under its old and its new name"
        "Callers stay on the old one, both may come at once, and no schema says which wins."
        "Keep one name in a contract; map the old one in the old version's adapter"
    TextOrEnum "LC043" "text-or-enum" Warning Shapes manual
        "A union of an enum and free text"
        "The enum checks nothing: often the old free text beside the new values."
        "Keep the enum, with a value such as `other`, or keep the text"
    TypeOrType "LC044" "type-or-type" Warning Shapes manual
        "A value of either of two types"
        "Often the old type beside the new one; the runtime has to guess which was meant."
        "Keep one type in a contract"
    OneOrMany "LC045" "one-or-many" Warning Shapes manual
        "One value or a list of such values"
        "Often the old single value beside the new list."
        "Keep the list: one value is a list of one"
    PatternBacktracks "LC046" "pattern-backtracks" Warning Patterns manual
        "An expression that only a backtracking engine can run: its time cannot be bounded"
        "Look-around and back references have no linear-time engine; when the budget ends the answer is unknown."
        "Write it without look-around and back references, or check it in the runtime"
    PatternNestedRepeat "LC047" "pattern-nested-repeat" Warning Patterns manual
        "A repetition directly inside a repetition"
        "In engines that backtrack such an expression takes exponential time on a text that nearly matches."
        "Repeat once: `(a+)+` is `a+`"
    PatternUnanchored "LC048" "pattern-unanchored" Note Patterns manual
        "An expression without `^` or `$` matches anywhere in the text"
        "A pattern searches; it does not match the whole text by itself."
        "Anchor it with `^` and `$` if the whole text is meant"
    PatternNotEcma "LC049" "pattern-not-ecma" Warning Patterns manual
        "An expression uses syntax outside ECMA-262"
        "Other validators refuse it or read it differently."
        "Write it as ECMA-262: no `(?i)`, `\\A`, `\\Z`, `(?P<…>)`, `[[:…:]]`"
    OpenaiStrictOpen "LC050" "openai-strict-open" Error Provider fixable
        "OpenAI strict: an object does not forbid further arguments"
        "The provider refuses the request."
        "Add `additionalProperties: false` to every object"
    OpenaiStrictOptional "LC051" "openai-strict-optional" Error Provider manual
        "OpenAI strict: an argument is not required"
        "The provider refuses the request; optional is written as required and nullable."
        "Add it to `required`, and allow null where it was optional"
    OpenaiStrictRoot "LC052" "openai-strict-root" Error Provider manual
        "OpenAI strict: the root is not a plain object"
        "The provider refuses the request."
        "Make the root `\"type\": \"object\"` without `anyOf`"
    OpenaiStrictKeyword "LC053" "openai-strict-keyword" Error Provider manual
        "OpenAI strict: a keyword outside the subset"
        "The provider refuses the request."
        "Write it without `allOf`, `oneOf`, `not`, `if` and `dependent…`; `anyOf` may stand below the root"
    OpenaiStrictLimit "LC054" "openai-strict-limit" Error Provider manual
        "OpenAI strict: the schema is larger than allowed"
        "The provider refuses more than 5,000 properties, 10 levels, 1,000 enum values or 120,000 characters of names."
        "Split the tool"
    StrictUnstated "LC055" "strict-unstated" Note Provider manual
        "An OpenAI function does not say whether it is strict"
        "The Responses API demands the key, and both mean different calls."
        "State `strict`"
    AnthropicStrictOpen "LC056" "anthropic-strict-open" Error Provider fixable
        "Anthropic strict: an object does not forbid further arguments"
        "The provider refuses the request."
        "Add `additionalProperties: false` to every object"
    AnthropicStrictKeyword "LC057" "anthropic-strict-keyword" Error Provider manual
        "Anthropic strict: a keyword outside the subset"
        "The provider refuses it, or its SDK moves it into the description, where nothing enforces it."
        "Move the limit into the description and check it in the runtime"
    AnthropicStrictRecursion "LC058" "anthropic-strict-recursion" Error Provider manual
        "Anthropic strict: the schema refers to itself"
        "The provider refuses the request."
        "Unroll it to the depth that is needed"
    GeminiKeyword "LC059" "gemini-keyword" Error Provider manual
        "Gemini: a keyword outside the OpenAPI subset of `parameters`"
        "The provider refuses the request or ignores the keyword."
        "Use `parametersJsonSchema`, or write it without that keyword"
    NotInRegistry "LC060" "not-in-registry" Note Registry manual
        "The definition stands in no registry"
        "Without a stable id and a version no call can say which contract it was made under."
        "Add it: `lastcall contract add FILE --tool-id ID --version 1.0.0`"
    RegistryBroken "LC061" "registry-broken" Error Registry manual
        "The registry does not hold together"
        "Facts that contradict each other cannot be relied on."
        "Correct it at that place"
    ToolIdCarriesVersion "LC062" "tool-id-carries-version" Warning Registry manual
        "The tool's id carries a version"
        "The id stays while versions pass; one that carries a version has to change with it."
        "Use an id without a version, and aliases for the old ones"
    VersionNotSemver "LC063" "version-not-semver" Note Registry manual
        "A version is not MAJOR.MINOR.PATCH"
        "Whether a change is breaking is then not to be seen from the number."
        "Number it MAJOR.MINOR.PATCH"
    NotFrozen "LC064" "not-frozen" Warning Registry manual
        "A contract is not frozen"
        "Its definition can change under the same id, and nobody would see it."
        "Keep the registry under version control and freeze it: `lastcall contract freeze ID`"
    FrozenChanged "LC065" "frozen-changed" Error Registry manual
        "A frozen contract was changed"
        "Calls that name it were made under another definition."
        "Restore the file, and publish the change as a new version: `lastcall contract add FILE --version NEW`"
    OwnerMissing "LC066" "owner-missing" Warning Registry manual
        "The tool has no owner"
        "Nobody can be asked what a field means, or approve a release."
        "State `owner` in owner.yaml"
    ApproverMissing "LC067" "approver-missing" Note Registry manual
        "A tool of high risk names nobody who may approve a release"
        "A high-risk change needs a named sign-off."
        "List `approvers` in owner.yaml"
    RiskLevelMissing "LC068" "risk-level-missing" Warning Registry manual
        "The tool has no risk level"
        "It then counts as critical."
        "State `risk_level` in tool.yaml"
    SideEffectMissing "LC069" "side-effect-missing" Warning Registry manual
        "The tool does not say what it does to the world"
        "It then counts as one that sends: the mirror never runs it."
        "State `side_effect: read`, `write` or `send` in tool.yaml"
    SideEffectContradicted "LC070" "side-effect-contradicted" Error Registry manual
        "Annotations and registry disagree about the side effect"
        "One of them is wrong, and the mirror believes the registry."
        "Correct one of the two"
    DeprecatedUnmarked "LC071" "deprecated-unmarked" Note Registry manual
        "Older versions are neither deprecated nor stated as compatible"
        "Nobody can see which versions are on their way out."
        "Mark them `deprecated: true`, or list them under `compatibility`"
    ErrorCodesMissing "LC072" "error-codes-missing" Warning Registry manual
        "The tool lists no error codes"
        "Retry and fallback of agents hang on codes that nobody promised."
        "List `errors` in tool.yaml with `code`, `category` and `retryable`"
    ErrorCategoryMissing "LC073" "error-category-missing" Warning Registry manual
        "An error code has no category"
        "Agents treat business errors and platform errors differently."
        "State `category`: business, permission, rate_limit, timeout, platform …"
    ErrorRetryUnstated "LC074" "error-retry-unstated" Note Registry manual
        "An error code does not say whether the call may be tried again"
        "An agent that retries what cannot succeed, or gives up what could, is a defect in production."
        "State `retryable`"
    ErrorCodeRepeated "LC075" "error-code-repeated" Warning Registry manual
        "An error code is listed twice"
        "Two categories for one code are no stable category."
        "Keep one"
    ChangelogMissing "LC076" "changelog-missing" Warning Registry manual
        "The tool has several versions and no changelog"
        "The teams that use it cannot see what changed for them."
        "Write changelog.md, newest version first"
    ChangelogVersionMissing "LC077" "changelog-version-missing" Warning Registry manual
        "The changelog does not mention the newest version"
        "The change that matters most is the one that is missing."
        "Add an entry for it"
    ConsumersMissing "LC078" "consumers-missing" Note Registry manual
        "The tool does not say which agents use it"
        "A change to a shared tool breaks whoever was not asked."
        "List `consumers` in tool.yaml"
    DomainUndeclared "LC079" "domain-undeclared" Note Registry manual
        "The tool sounds like a domain that asks for a sign-off, and declares none"
        "Payments, permissions, orders, messages and deletions are approved by name."
        "List `domains` in tool.yaml"
    RequiredAdded "LC080" "required-added" Error Compatibility manual
        "A new version requires an argument that the one before did not"
        "Old prompts do not send it."
        "Make it optional with a stated default, or publish a major version"
    ArgumentRemoved "LC081" "argument-removed" Error Compatibility manual
        "A new version no longer declares an argument"
        "Old prompts still send it: refused, or silently lost."
        "Keep it for a deprecation window, or publish a major version"
    ArgumentRenamed "LC082" "argument-renamed" Error Compatibility manual
        "A new version renames an argument"
        "To a caller that is a removal and an addition."
        "Publish a major version, and map the old name in an adapter"
    ArgumentRetyped "LC083" "argument-retyped" Error Compatibility manual
        "A new version narrows the type of an argument"
        "Calls with the old type are refused."
        "Add a new argument instead, or publish a major version"
    EnumNarrowed "LC084" "enum-narrowed" Error Compatibility manual
        "A new version takes away an enum value, or lists values where any were taken"
        "Old prompts still choose it."
        "Keep the value and map it, or publish a major version"
    DefaultChanged "LC085" "default-changed" Warning Compatibility manual
        "A new version changes a default"
        "Every call that leaves the argument out now means something else."
        "Treat it as high risk: replay recorded calls first with `lastcall try OLD NEW CALLS`"
    ResultMoved "LC086" "result-moved" Warning Compatibility manual
        "A new version's result no longer has a path that the one before had"
        "Prompts and code that read the old path find nothing."
        "Keep the old path, or publish a major version"
    ErrorSemantics "LC087" "error-semantics" Note Compatibility manual
        "Whether the error codes still mean the same is not in the definitions: ask the owner"
        "tool.yaml has one list for all versions; a code that moved from business to platform changes every retry."
        "Ask the owner, and look at the history of tool.yaml in version control"
    SessionsAffected "LC088" "sessions-affected" Note Compatibility manual
        "Whether old prompts and stored sessions are affected is not in the definitions: ask the record"
        "Only recorded calls and dependents show who still speaks the old version."
        "Run `lastcall try OLD NEW CALLS`, and `lastcall decide TOOL` before the old version goes"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_and_names_are_unique() {
        for (n, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.id, format!("LC{:03}", n + 1), "{}", rule.name);
            assert!(rule.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", rule.name);
            assert_eq!(RULES.iter().filter(|r| r.name == rule.name).count(), 1, "{}", rule.name);
            assert!(rule.why.ends_with('.') && !rule.fix.ends_with('.'), "{}", rule.name);
        }
    }
}
