//! The JSON values of a file that is not one value a line: an indented document, or one list of calls. Streamed: only
//! one value is held at a time.

use std::io::{self, BufRead};

/// The largest value that is read whole.
const LIMIT: usize = 64 << 20;

/// One value as it stands in the file; at the file's end perhaps an unfinished one.
pub struct Piece<'a> {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// Its text.
    pub bytes: &'a [u8],
    /// It was longer than the limit: `bytes` is a part.
    pub too_long: bool,
}

/// Splits a stream into its top-level values; those of a top-level list are taken one by one.
pub struct Pieces {
    input: Box<dyn BufRead + Send>,
    piece: Vec<u8>,
    line: u64,
    in_list: bool,
}

/// Where the scan stands inside a value.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    /// Between values.
    Nothing,
    /// A number or a word.
    Word,
    /// Lists and objects, this many; perhaps a string in them.
    Nested { depth: usize, text: Text },
    /// A string by itself.
    Lone(Text),
}

#[derive(Clone, Copy, PartialEq)]
enum Text {
    No,
    Yes,
    Escaped,
}

impl Text {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Text::No, b'"') | (Text::Escaped, _) => Text::Yes,
            (Text::No, _) | (Text::Yes, b'"') => Text::No,
            (Text::Yes, b'\\') => Text::Escaped,
            (Text::Yes, _) => Text::Yes,
        }
    }
}

impl Pieces {
    /// Reads a stream of text.
    pub fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { input, piece: Vec::new(), line: 1, in_list: false }
    }

    /// The next value; `None` at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.piece.clear();
        let (mut inside, mut too_long, mut begun) = (Inside::Nothing, false, self.line);
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                let some = inside != Inside::Nothing;
                return Ok(some.then_some(Piece { line: begun, bytes: &self.piece, too_long }));
            }
            let (mut used, mut ended, mut from) = (0, false, 0);
            for &byte in buffer {
                if inside == Inside::Word && (byte.is_ascii_whitespace() || matches!(byte, b',' | b']')) {
                    ended = true;
                    break; // the byte belongs to what follows
                }
                used += 1;
                self.line += u64::from(byte == b'\n');
                inside = match (inside, byte) {
                    (Inside::Nothing, b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf) => Inside::Nothing,
                    (Inside::Nothing, b',') if self.in_list => Inside::Nothing,
                    (Inside::Nothing, b']') if self.in_list => {
                        self.in_list = false;
                        Inside::Nothing
                    }
                    (Inside::Nothing, b'[') if !self.in_list => {
                        self.in_list = true;
                        Inside::Nothing
                    }
                    (Inside::Nothing, _) => {
                        (begun, from) = (self.line, used - 1);
                        match byte {
                            b'{' | b'[' => Inside::Nested { depth: 1, text: Text::No },
                            b'"' => Inside::Lone(Text::Yes),
                            _ => Inside::Word,
                        }
                    }
                    (Inside::Word, _) => Inside::Word,
                    (Inside::Lone(text), _) => {
                        let text = text.after(byte);
                        ended = text == Text::No;
                        Inside::Lone(text)
                    }
                    (Inside::Nested { depth, text: Text::No }, b'{' | b'[') => {
                        Inside::Nested { depth: depth + 1, text: Text::No }
                    }
                    (Inside::Nested { depth, text: Text::No }, b'}' | b']') => {
                        ended = depth == 1;
                        Inside::Nested { depth: depth - 1, text: Text::No }
                    }
                    (Inside::Nested { depth, text }, _) => Inside::Nested { depth, text: text.after(byte) },
                };
                if ended {
                    break;
                }
            }
            if inside != Inside::Nothing {
                let part = buffer.get(from..used).unwrap_or_default();
                let room = LIMIT.saturating_sub(self.piece.len());
                too_long |= part.len() > room;
                self.piece.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            }
            self.input.consume(used);
            if ended {
                return Ok(Some(Piece { line: begun, bytes: &self.piece, too_long }));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    fn pieces(text: &str, buffer: usize) -> Vec<(u64, String)> {
        let input = BufReader::with_capacity(buffer, Cursor::new(text.as_bytes().to_vec()));
        let mut pieces = Pieces::new(Box::new(input));
        let mut out = Vec::new();
        while let Some(piece) = pieces.next_piece().unwrap() {
            assert!(!piece.too_long);
            out.push((piece.line, String::from_utf8(piece.bytes.to_vec()).unwrap()));
        }
        out
    }

    #[test]
    fn values_come_one_by_one_whatever_the_buffer() {
        let text = "\u{feff}[\n  {\"a\": \"]}\\\"\",\n   \"b\": [1, {}]},\n [2], \"x,\\\\\", 7,null\n]\n{\n\"c\": 1}\n{\"d\"";
        let want = [
            (2, "{\"a\": \"]}\\\"\",\n   \"b\": [1, {}]}"),
            (4, "[2]"),
            (4, "\"x,\\\\\""),
            (4, "7"),
            (4, "null"),
            (6, "{\n\"c\": 1}"),
            (8, "{\"d\""),
        ]
        .map(|(line, text)| (line, text.to_owned()));
        for buffer in [1, 2, 3, 7, 64, 4096] {
            assert_eq!(pieces(text, buffer), want, "buffer {buffer}");
        }
        for empty in ["", " \n", "[]", "[ ]\n"] {
            assert!(pieces(empty, 4).is_empty(), "{empty:?}");
        }
    }

    #[test]
    fn what_serde_reads_as_a_list_comes_out_as_its_items() {
        let values: Vec<serde_json::Value> = (0..200)
            .map(|i| serde_json::json!({"n": i, "t": "\"[\\{}".repeat(i % 7), "l": vec![vec![i]; i % 4]}))
            .collect();
        let text = serde_json::to_string_pretty(&values).unwrap();
        let got: Vec<serde_json::Value> =
            pieces(&text, 13).iter().map(|(_, t)| serde_json::from_str(t).unwrap()).collect();
        assert_eq!(got, values);
    }
}
