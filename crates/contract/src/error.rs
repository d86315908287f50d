//! Why a definition was refused: the file, the place in it, and what to do. Never a stack of causes to decipher.

/// What kind of refusal; stable, for callers that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionErrorKind {
    /// The text is not JSON.
    NotJson,
    /// A number that no double holds: valid JSON, and no validator of ours can compare it.
    NumberTooLarge,
    /// An object has the same key twice: readers disagree about which one counts.
    DuplicateKey,
    /// The document or one definition is larger than allowed.
    TooBig,
    /// The document nests deeper than allowed, or one value would be checked too often.
    TooDeep,
    /// JSON, but no tool definition.
    NotADefinition,
    /// A tool without a name.
    Nameless,
    /// Several tools, none chosen, or the chosen name occurs twice.
    SeveralTools,
    /// The chosen name is not in the document.
    NoSuchTool,
    /// Not a valid JSON Schema of its draft.
    InvalidSchema,
    /// `$schema` names no draft that Lastcall knows.
    UnknownDraft,
    /// A reference leaves the document.
    ExternalRef,
    /// The schema of the arguments cannot accept an object.
    NotAnObjectSchema,
}

impl DefinitionErrorKind {
    /// The stable code, snake case.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::NumberTooLarge => "number_too_large",
            Self::DuplicateKey => "duplicate_key",
            Self::TooBig => "too_big",
            Self::TooDeep => "too_deep",
            Self::NotADefinition => "not_a_definition",
            Self::Nameless => "nameless_tool",
            Self::SeveralTools => "several_tools",
            Self::NoSuchTool => "no_such_tool",
            Self::InvalidSchema => "invalid_schema",
            Self::UnknownDraft => "unknown_draft",
            Self::ExternalRef => "external_ref",
            Self::NotAnObjectSchema => "not_an_object_schema",
        }
    }
}

/// Why a definition was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    /// The file, as the caller labelled it.
    pub file: String,
    /// JSON Pointer into that file; empty for the whole document.
    pub pointer: String,
    /// What kind of refusal.
    pub kind: DefinitionErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

impl std::fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if !self.pointer.is_empty() {
            write!(f, " at {}", self.pointer)?;
        }
        write!(f, ": {}. {}.", self.message, self.next)
    }
}

impl std::error::Error for DefinitionError {}

/// A refusal before the file is known: pointer relative to what was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON Pointer into the schema; empty for its root.
    pub pointer: String,
    /// What kind of refusal.
    pub kind: DefinitionErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

impl SchemaError {
    /// The same refusal seen from a file, where the schema stands at `prefix`.
    pub(crate) fn within(self, file: &str, prefix: &str) -> DefinitionError {
        DefinitionError {
            file: file.to_owned(),
            pointer: format!("{prefix}{}", self.pointer),
            kind: self.kind,
            message: self.message,
            next: self.next,
        }
    }
}

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        write!(f, "{}. {}.", self.message, self.next)
    }
}

impl std::error::Error for SchemaError {}

/// One segment of a JSON Pointer, escaped (RFC 6901).
pub(crate) fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// A text for a message: cut at 80 characters, control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == 80 {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// The name in `known` that is nearest to `wrong`, if it is near enough to be meant.
pub fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong: Vec<char> = wrong.chars().take(64).collect();
    let limit = (wrong.len() / 3).max(1);
    known
        .iter()
        .map(|name| (distance(&wrong, &name.chars().collect::<Vec<_>>()), *name))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            let cost = (diagonal + usize::from(x != y)).min(left + 1).min(above + 1);
            diagonal = *above;
            left = cost;
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
