//! Server-sent events, as far as MCP uses them: the data of each event. WHATWG HTML, section 9.2.

use crate::answer::Failure;

/// Reads a stream piece by piece. Holds no more than `limit` bytes, and of a stream reads no more than 16 times that:
/// notifications must end some time.
pub(super) struct Events {
    limit: usize,
    left: usize,
    /// The line that has not ended.
    line: Vec<u8>,
    /// The event's data so far.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return, so a line feed belongs to it.
    returned: bool,
    begun: bool,
}

impl Events {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            left: limit.saturating_mul(16),
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            returned: false,
            begun: false,
        }
    }

    /// The events that end in this piece.
    pub fn read(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        self.left = self.left.checked_sub(piece.len()).ok_or(Failure::AnswerTooLarge)?;
        let mut out = Vec::new();
        let mut rest = piece;
        loop {
            if self.returned
                && let Some((first, after)) = rest.split_first()
            {
                self.returned = false;
                if *first == b'\n' {
                    rest = after;
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.hold(rest)?;
                return Ok(out);
            };
            let (part, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            self.hold(part)?;
            self.returned = after.first() == Some(&b'\r');
            rest = after.get(1..).unwrap_or_default();
            self.ended(&mut out);
        }
    }

    fn hold(&mut self, part: &[u8]) -> Result<(), Failure> {
        if self.line.len() + self.data.len() + part.len() > self.limit {
            return Err(Failure::AnswerTooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// A line has ended.
    fn ended(&mut self, out: &mut Vec<Vec<u8>>) {
        let mut line = std::mem::take(&mut self.line);
        if !self.begun {
            self.begun = true;
            if line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
            }
        }
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            // some servers begin with an event of empty data
            if std::mem::take(&mut self.has_data) && !data.is_empty() {
                out.push(data);
            }
            return;
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return,
        };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn all(text: &str, step: usize) -> Vec<String> {
        let mut events = Events::new(1 << 16);
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(step) {
            out.extend(events.read(piece).unwrap());
        }
        out.into_iter().map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let text = "\u{feff}: hello\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":1}\r\n\r\ndata:x\rdata: y\r\rdata\n\nretry: 5\ndata: é\n\ndata: left open\n";
        let whole = all(text, text.len());
        assert_eq!(whole, ["{\"a\":1}", "x\ny", "é"]);
        for step in 1..text.len() {
            assert_eq!(all(text, step), whole, "{step}");
        }
    }

    #[test]
    fn what_never_ends_is_not_held() {
        let mut events = Events::new(1000);
        assert!(events.read(&[b'x'; 1001]).is_err());
        let mut events = Events::new(1000);
        let noise = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";
        let ends = (0..1000).any(|_| events.read(noise).is_err());
        assert!(ends);
    }
}
