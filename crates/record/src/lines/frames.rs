//! Messages of a file that is no text: four bytes of length, the highest first, and then the message, as the OpenTelemetry
//! Collector's file exporter writes protobuf.

use std::io::{self, BufRead as _, Read as _};

use lastcall_ledger::position::Offset;

use super::{KEPT, Line, LineReader};

impl LineReader {
    /// The next message; `None` at the end. One that is cut off at the end has [`Line::terminated`] unset: the file may
    /// still grow.
    ///
    /// # Errors
    /// The file cannot be read, or begins like text.
    pub fn next_frame(&mut self) -> io::Result<Option<Line<'_>>> {
        self.input.consume(std::mem::take(&mut self.given));
        self.line.clear();
        self.take_up_to(4)?;
        if self.line.is_empty() {
            return Ok(None);
        }
        if self.offset == 0 && self.line.starts_with(b"{\"") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it begins like JSON; a file of protobuf messages has the length of each before it (4 bytes, the highest \
                 first), as the Collector's file exporter writes them; for OTLP in JSON name preset otlp-json",
            ));
        }
        let stated = self.line.first_chunk::<4>().map(|head| u64::from(u32::from_be_bytes(*head)));
        let too_long = stated.is_some_and(|length| length > self.limit as u64);
        let wanted = stated.unwrap_or(0);
        let kept = if too_long { (KEPT as u64).min(self.limit as u64) } else { wanted };
        self.take_up_to(kept)?;
        let mut taken = self.line.len() as u64;
        let whole = |taken: u64| stated.is_some_and(|length| taken == length + 4);
        if (whole(taken) || too_long || self.is_final)
            && let Some(hasher) = &mut self.hasher
        {
            hasher.update(&self.line);
        }
        if too_long {
            taken += self.pass_over(wanted - kept)?;
        }
        let terminated = whole(taken);
        let offset = Offset(self.offset);
        let next =
            offset.after(taken).ok_or_else(|| io::Error::other("the offset does not fit in 63 bits"))?;
        self.offset = next.0;
        let prefix = self.hasher.as_ref().map(|h| h.digest128());
        let bytes = self.line.get(4..).unwrap_or_default();
        Ok(Some(Line { offset, next, bytes, length: taken.saturating_sub(4), too_long, terminated, prefix }))
    }

    /// Takes bytes that are not kept; how many there were.
    fn pass_over(&mut self, bytes: u64) -> io::Result<u64> {
        let mut passed = 0;
        while passed < bytes {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.explain(error)),
            };
            let wanted = usize::try_from(bytes - passed).unwrap_or(usize::MAX).min(buffer.len());
            if wanted == 0 {
                break;
            }
            if let (Some(hasher), Some(part)) = (&mut self.hasher, buffer.get(..wanted)) {
                hasher.update(part);
            }
            self.input.consume(wanted);
            passed += wanted as u64;
        }
        Ok(passed)
    }

    /// Appends as many bytes as there are, up to a number.
    fn take_up_to(&mut self, bytes: u64) -> io::Result<()> {
        let read = self.input.by_ref().take(bytes).read_to_end(&mut self.line);
        read.map(|_| ()).map_err(|error| self.explain(error))
    }
}
