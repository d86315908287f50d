//! JSON Pointers (RFC 6901) and pointer patterns, in which a token `*` stands for any list index or open key.

/// Escapes one token: `~` → `~0`, `/` → `~1`.
pub fn escape(token: &str) -> std::borrow::Cow<'_, str> {
    if token.contains(['~', '/']) { token.replace('~', "~0").replace('/', "~1").into() } else { token.into() }
}

/// The pointer one token further.
pub fn join(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", escape(token))
}

/// The pattern one property name further: a name that is itself `*` is written `~2`, so that it stays a name.
pub fn join_name(pattern: &str, name: &str) -> String {
    if name == "*" { format!("{pattern}/~2") } else { join(pattern, name) }
}

/// The tokens of a pointer, unescaped.
pub fn tokens(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"))
}

/// A pointer in which `*` matches any one token (`~2` is a name that is `*`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    text: String,
    tokens: Vec<Token>,
}

/// One token of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// Any one token.
    Any,
    /// This one.
    Name(String),
}

impl Pattern {
    /// Reads a pattern: `""`, or tokens that each begin with `/`.
    pub fn new(text: &str) -> Self {
        let token = |raw: &str| match raw {
            "*" => Token::Any,
            "~2" => Token::Name("*".to_owned()),
            raw => Token::Name(raw.replace("~1", "/").replace("~0", "~")),
        };
        Self { text: text.to_owned(), tokens: text.split('/').skip(1).map(token).collect() }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Whether the pattern names this pointer.
    pub fn matches(&self, pointer: &str) -> bool {
        let mut own = self.tokens.iter();
        for token in tokens(pointer) {
            match own.next() {
                Some(Token::Any) => {}
                Some(Token::Name(name)) if *name == token => {}
                _ => return false,
            }
        }
        own.next().is_none()
    }

    /// The pointer that this pattern becomes when its `*` take the tokens that stand at their places in `like`.
    pub fn fill(&self, like: &str) -> String {
        let like: Vec<String> = tokens(like).collect();
        let mut out = String::new();
        for (i, token) in self.tokens.iter().enumerate() {
            let token = match token {
                Token::Any => like.get(i).map_or("*", String::as_str),
                Token::Name(name) => name,
            };
            out.push('/');
            out.push_str(&escape(token));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_by_token() {
        let pattern = Pattern::new("/lines/*/unit");
        assert!(pattern.matches("/lines/0/unit") && pattern.matches("/lines/*/unit"));
        assert!(!pattern.matches("/lines/0") && !pattern.matches("/lines/0/unit/x") && !pattern.matches(""));
        assert_eq!(Pattern::new("/lines/*/uom").fill("/lines/3/unit"), "/lines/3/uom");
        assert!(Pattern::new("").matches(""));
        assert!(Pattern::new("/a~1b").matches("/a~1b"));
        let star = Pattern::new(&join_name("", "*"));
        assert!(star.matches("/*") && !star.matches("/b"), "a name that is a star is no wildcard");
    }
}
