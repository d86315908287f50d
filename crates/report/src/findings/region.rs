//! Where a JSON Pointer stands in the text of a document. `serde_json` keeps no positions, so the text is scanned once
//! for all pointers together. Takes for granted that the text was parsed before; on anything else it answers a place
//! nearby and never panics.

use std::collections::BTreeMap;

/// A stretch of text: lines and columns from 1, columns in Unicode code points, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First line.
    pub line: usize,
    /// First column.
    pub column: usize,
    /// Last line.
    pub end_line: usize,
    /// The column after the last one.
    pub end_column: usize,
}

/// The places of these pointers, in their order. A member is marked from its key to the end of its value, or the key
/// alone when the value goes over several lines; a list's item likewise from its first character. A pointer that is
/// not there gets the place of its nearest parent.
pub fn regions(text: &str, pointers: &[&str]) -> Vec<Region> {
    let mut root = Node::default();
    for (n, pointer) in pointers.iter().enumerate() {
        let mut node = &mut root;
        for token in pointer.split('/').skip(1).take(MAX_TOKENS) {
            node = node.children.entry(token.replace("~1", "/").replace("~0", "~")).or_default();
        }
        node.wanted.push(n);
    }
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    Scan { text, at: mark }.walk(&mut root, None);
    let mut spans = vec![(0, 0); pointers.len()];
    root.spread((0, 0), &mut spans);
    lines(text, &spans)
}

/// Deeper than any definition may nest; what lies below gets the place of its parent.
const MAX_TOKENS: usize = 128;

/// The pointers as a tree, token by token.
#[derive(Default)]
struct Node {
    children: BTreeMap<String, Node>,
    /// Which pointers end here.
    wanted: Vec<usize>,
    /// First byte and the byte after the last.
    span: Option<(usize, usize)>,
}

impl Node {
    fn spread(&self, above: (usize, usize), spans: &mut [(usize, usize)]) {
        let own = self.span.unwrap_or(above);
        for n in &self.wanted {
            if let Some(span) = spans.get_mut(*n) {
                *span = own;
            }
        }
        self.children.values().for_each(|child| child.spread(own, spans));
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Steps over this byte and the white space before it, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// One value, with everything that is wanted in it.
    fn walk(&mut self, node: &mut Node, key: Option<(usize, usize)>) {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(b'{') if !node.children.is_empty() => self.members(node),
            Some(b'[') if !node.children.is_empty() => self.items(node),
            _ => self.skip(),
        }
        let from = key.map_or(start, |(key, _)| key);
        let over_lines = self.text.as_bytes().get(from..self.at).is_none_or(|b| b.contains(&b'\n'));
        let to = if over_lines { key.map_or(start + 1, |(_, end)| end) } else { self.at };
        node.span = Some((from, to));
    }

    fn members(&mut self, node: &mut Node) {
        self.at += 1;
        while !self.take(b'}') && self.peek() == Some(b'"') {
            let start = self.at;
            self.string();
            let end = self.at;
            let name: Option<String> =
                self.text.get(start..end).and_then(|quoted| serde_json::from_str(quoted).ok());
            if !self.take(b':') {
                return;
            }
            match name.and_then(|name| node.children.get_mut(&name)) {
                Some(child) => self.walk(child, Some((start, end))),
                None => self.skip(),
            }
            self.take(b',');
        }
    }

    fn items(&mut self, node: &mut Node) {
        self.at += 1;
        let mut n = 0usize;
        while !self.take(b']') && self.peek().is_some() {
            match node.children.get_mut(n.to_string().as_str()) {
                Some(child) => self.walk(child, None),
                None => self.skip(),
            }
            n += 1;
            if !self.take(b',') && self.peek() != Some(b']') {
                return;
            }
        }
    }

    /// A string, from its opening quote.
    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return,
                _ => {}
            }
        }
    }

    /// A whole value, without recursion.
    fn skip(&mut self) {
        self.space();
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' | b',' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                _ if depth > 0 => self.at += 1,
                byte if byte.is_ascii_whitespace() => return,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
        }
    }
}

/// Byte spans as lines and columns, in one pass over the text.
fn lines(text: &str, spans: &[(usize, usize)]) -> Vec<Region> {
    let mut offsets: Vec<usize> = spans.iter().flat_map(|(from, to)| [*from, *to]).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut found: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut wanted = offsets.into_iter().peekable();
    let (mut line, mut column) = (1, 1);
    for (at, c) in text.char_indices() {
        while let Some(offset) = wanted.next_if(|offset| *offset <= at) {
            found.insert(offset, (line, column));
        }
        if wanted.peek().is_none() {
            break;
        }
        if c == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    found.extend(wanted.map(|offset| (offset, (line, column))));
    let at = |offset: &usize| found.get(offset).copied().unwrap_or((1, 1));
    spans
        .iter()
        .map(|(from, to)| {
            let ((line, column), (end_line, end_column)) = (at(from), at(to));
            Region { line, column, end_line, end_column }
        })
        .collect()
}
