//! Lines of a file or of standard input: plain, gzip or zstd, in bounded memory. Knows offsets, not records.

mod frames;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lastcall_ledger::position::{NextOffset, Offset};
use memchr::memchr;
use xxhash_rust::xxh3::Xxh3;

/// The longest line that is read whole, unless told otherwise: 64 MiB.
pub const DEFAULT_LIMIT: usize = 64 << 20;
/// What is kept of a line that is longer: 1 MiB.
const KEPT: usize = 1 << 20;
const BUFFER: usize = 256 << 10;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line. Offsets count bytes of the uncompressed text.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Where it begins.
    pub offset: Offset,
    /// Where the next one begins.
    pub next: NextOffset,
    /// The line without its end (`\n` or `\r\n`), and without a byte order mark at the file's head. Of a line beyond
    /// the limit only the first MiB.
    pub bytes: &'a [u8],
    /// Length of the line without its end.
    pub length: u64,
    /// It was longer than the limit: `bytes` is a part.
    pub too_long: bool,
    /// It ends with a line's end; otherwise it is the last one and may still grow.
    pub terminated: bool,
    /// XXH3-128 over everything before `next`, if asked for; the line itself is not in it if it is not terminated
    /// and the input is not final.
    pub prefix: Option<u128>,
}

/// Reads lines one after another. A line that lies whole in the input's buffer is given as it lies there.
pub struct LineReader {
    input: Box<dyn BufRead + Send>,
    /// Bytes of the input's buffer that the last line was given from.
    given: usize,
    /// A line that crosses the buffer's end.
    line: Vec<u8>,
    offset: i64,
    limit: usize,
    is_final: bool,
    hasher: Option<Box<Xxh3>>,
    consumed: Arc<AtomicU64>,
    total: Option<u64>,
    compressed: bool,
}

/// Counts the bytes that were taken from the file itself: compressed ones, for a progress bar.
struct Counting<R> {
    inner: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.consumed.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl LineReader {
    /// Opens a file; gzip and zstd are recognized by their first bytes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder; name a file"));
        }
        let total = about.is_file().then_some(about.len());
        Self::new(file, total)
    }

    /// Reads standard input.
    pub fn stdin() -> io::Result<Self> {
        Self::new(io::stdin(), None)
    }

    /// Reads any stream; `total` is its length in bytes, where known.
    pub fn new(input: impl Read + Send + 'static, total: Option<u64>) -> io::Result<Self> {
        let consumed = Arc::new(AtomicU64::new(0));
        let counting = Counting { inner: input, consumed: consumed.clone() };
        let mut plain = BufReader::with_capacity(BUFFER, counting);
        let magic: [u8; 4] = {
            // A pipe may give fewer bytes at first: the longest signature is four bytes, and one read of a file or
            // pipe that has any gives them in practice; what is shorter than four bytes is no archive.
            let start = plain.fill_buf()?;
            let mut magic = [0; 4];
            for (to, from) in magic.iter_mut().zip(start) {
                *to = *from;
            }
            magic
        };
        let (input, compressed): (Box<dyn BufRead + Send>, bool) = if magic.starts_with(&[0x1f, 0x8b]) {
            let decoder = flate2::bufread::MultiGzDecoder::new(plain);
            (Box::new(BufReader::with_capacity(BUFFER, decoder)), true)
        } else if magic == [0x28, 0xb5, 0x2f, 0xfd] {
            let decoder = zstd::stream::read::Decoder::with_buffer(plain)?;
            (Box::new(BufReader::with_capacity(BUFFER, decoder)), true)
        } else {
            (Box::new(plain), false)
        };
        Ok(Self {
            input,
            given: 0,
            line: Vec::new(),
            offset: 0,
            limit: DEFAULT_LIMIT,
            is_final: false,
            hasher: None,
            consumed,
            total,
            compressed,
        })
    }

    /// The text itself, uncompressed, for input that is not lines.
    pub fn into_input(mut self) -> Box<dyn BufRead + Send> {
        self.input.consume(self.given);
        self.input
    }

    /// Sets the longest line that is read whole.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit.max(1);
        self
    }

    /// The input is complete: a last line without an end is a line.
    pub fn with_final(mut self, is_final: bool) -> Self {
        self.is_final = is_final;
        self
    }

    /// Keeps the hash of everything that was read.
    pub fn with_hash(mut self) -> Self {
        self.hasher = Some(Box::new(Xxh3::new()));
        self
    }

    /// Bytes taken from the file itself so far.
    pub fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// The file's length, where known.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Where the next line begins.
    pub fn position(&self) -> NextOffset {
        NextOffset(self.offset)
    }

    /// Hash of everything before [`Self::position`], if asked for.
    pub fn prefix(&self) -> Option<u128> {
        self.hasher.as_ref().map(|h| h.digest128())
    }

    fn explain(&self, error: io::Error) -> io::Error {
        if self.compressed {
            let what = format!(
                "after byte {} of the uncompressed text: {error}; the archive is damaged or still being written",
                self.offset
            );
            return io::Error::new(error.kind(), what);
        }
        error
    }

    /// Skips the first bytes, hashing them. `false`: the text is shorter.
    pub fn skip_to(&mut self, next: NextOffset) -> io::Result<bool> {
        self.input.consume(std::mem::take(&mut self.given));
        while self.offset < next.0 {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.explain(error)),
            };
            if buffer.is_empty() {
                return Ok(false);
            }
            let wanted = usize::try_from(next.0 - self.offset).unwrap_or(usize::MAX).min(buffer.len());
            if let (Some(hasher), Some(part)) = (&mut self.hasher, buffer.get(..wanted)) {
                hasher.update(part);
            }
            self.input.consume(wanted);
            self.offset += wanted as i64;
        }
        Ok(true)
    }

    /// The next line; `None` at the end. The end may be temporary: a file that grows gives more later.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.input.consume(std::mem::take(&mut self.given));
        self.line.clear();
        let limit = self.limit as u64 + 2;
        let inside = match self.input.fill_buf() {
            Ok([]) => return Ok(None),
            Ok(buffer) => memchr(b'\n', buffer).map_or(0, |at| at + 1),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(self.explain(error)),
        };
        self.given = if inside as u64 <= limit { inside } else { 0 };
        if self.given == 0
            && let Err(error) = self.input.by_ref().take(limit).read_until(b'\n', &mut self.line)
        {
            return Err(self.explain(error));
        }
        let cut = self.line.len() as u64 == limit && self.line.last() != Some(&b'\n');
        let (mut more, mut ended) = (0, false);
        if cut {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&self.line);
            }
            self.line.truncate(KEPT.min(self.limit));
            self.line.shrink_to(KEPT);
            (more, ended) = self.skip_line()?;
            more += limit - self.line.len() as u64;
        }
        let line = match self.given {
            0 => self.line.as_slice(),
            given => self.input.fill_buf()?.get(..given).unwrap_or_default(),
        };
        if line.is_empty() {
            return Ok(None);
        }
        let raw = line.len() as u64 + more;
        let terminated = ended || (!cut && line.last() == Some(&b'\n'));
        if (terminated || self.is_final)
            && !cut
            && let Some(hasher) = &mut self.hasher
        {
            hasher.update(line);
        }
        let offset = Offset(self.offset);
        let next = offset.after(raw).ok_or_else(|| io::Error::other("the offset does not fit in 63 bits"))?;
        let mut bytes = line;
        let mut length = raw;
        if terminated {
            length -= 1;
            bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        }
        let whole = bytes.len() as u64 == length;
        if whole && let Some(rest) = bytes.strip_suffix(b"\r") {
            bytes = rest;
            length -= 1;
        }
        if offset.0 == 0
            && let Some(rest) = bytes.strip_prefix(BOM)
        {
            bytes = rest;
            length -= BOM.len() as u64;
        }
        let too_long = length > self.limit as u64;
        let too_long = too_long || !whole;
        self.offset = next.0;
        let prefix = self.hasher.as_ref().map(|h| h.digest128());
        Ok(Some(Line { offset, next, bytes, length, too_long, terminated, prefix }))
    }

    /// Passes over the rest of a line; its length with its end, and whether it has one.
    fn skip_line(&mut self) -> io::Result<(u64, bool)> {
        let mut skipped = 0;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.explain(error)),
            };
            if buffer.is_empty() {
                return Ok((skipped, false));
            }
            let end = buffer.iter().position(|b| *b == b'\n');
            let wanted = end.map_or(buffer.len(), |at| at + 1);
            if let (Some(hasher), Some(part)) = (&mut self.hasher, buffer.get(..wanted)) {
                hasher.update(part);
            }
            self.input.consume(wanted);
            skipped += wanted as u64;
            if end.is_some() {
                return Ok((skipped, true));
            }
        }
    }
}
