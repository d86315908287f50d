//! The files of a chunk: those that stand, their digests, their rows against the entry's counts.

use bytes::Bytes;
use lastcall_contract::Digest;

use super::counted::Counted;
use super::{Outcome, Verifier};
use crate::entry::{Chunk, FileKind, FileRef};
use crate::erasure::Standing;
use crate::error::LedgerError;
use crate::names::Chain;
use crate::position::Partition;

impl Verifier<'_> {
    pub(super) fn chunk(
        &mut self,
        path: &str,
        record: &str,
        partition: Partition,
        chunk: &Chunk,
    ) -> Result<(), LedgerError> {
        let mut counted = Counted::of(partition);
        let mut whole = true;
        for named in &chunk.files {
            self.unnamed.remove(&named.path);
            let found = self.standing(named, record)?;
            let Some((standing, bytes)) = found else {
                whole = false;
                counted.without_calls |= named.kind == FileKind::Calls;
                continue;
            };
            self.report.gone.add(named.kind, &standing);
            counted.gone(named.kind, &standing);
            let (Some(file), Some(bytes)) = (&standing.file, bytes) else { continue };
            self.report.bytes += file.bytes;
            let rows = match file.kind {
                FileKind::Calls => counted.calls(&file.path, bytes, chunk),
                FileKind::Results => counted.results(&file.path, bytes, chunk),
                FileKind::Dead => counted.dead(&file.path, bytes, chunk),
            };
            match rows {
                Ok(rows) if rows == file.rows => self.report.rows += rows,
                Ok(rows) => {
                    let what = format!("it has {rows} rows, its entry says {}", file.rows);
                    self.find(Outcome::Altered, &file.path, Some(record.to_owned()), what);
                }
                Err(error) => {
                    whole = false;
                    counted.without_calls |= file.kind == FileKind::Calls;
                    self.find_error(&file.path, Some(record.to_owned()), error)?;
                }
            }
        }
        if whole && let Some(what) = counted.differs(chunk) {
            self.find(Outcome::Altered, path, Some(record.to_owned()), what);
        }
        Ok(())
    }

    /// What stands in the place of a file, with its bytes; `None`: it was said what is wrong.
    fn standing(
        &mut self,
        named: &FileRef,
        record: &str,
    ) -> Result<Option<(Standing, Option<Bytes>)>, LedgerError> {
        let mut standing = match self.superseded.standing(named) {
            Ok(standing) => standing,
            Err(error) => {
                self.find_error(&named.path, Some(record.to_owned()), error)?;
                return Ok(None);
            }
        };
        loop {
            let Some(file) = standing.file.clone() else { return Ok(Some((standing, None))) };
            self.tell(&file.path);
            self.report.files += 1;
            let Some(bytes) = self.ledger.store().get(&file.path)? else {
                // Erased and removed since verify began.
                match self.ledger.standing(named) {
                    Ok(now) if now.file.as_ref() != Some(&file) => standing = now,
                    _ => {
                        self.missing(&file.path, Some(record.to_owned()), "the file is missing");
                        return Ok(None);
                    }
                }
                continue;
            };
            return Ok(self.fits(&file, record, &bytes).then_some((standing, Some(bytes))));
        }
    }

    /// Whether a file's bytes are those that the entry names.
    fn fits(&mut self, file: &FileRef, record: &str, bytes: &[u8]) -> bool {
        let record = Some(record.to_owned());
        let length = bytes.len() as u64;
        if length < file.bytes {
            let what = format!("it has {length} bytes, its entry says {}", file.bytes);
            self.find(Outcome::Truncated, &file.path, record, what);
        } else if length > file.bytes || Digest::of(bytes) != file.sha256 {
            self.find(Outcome::Altered, &file.path, record, "its SHA-256 is not the one in its entry");
        } else {
            return true;
        }
        false
    }

    /// Erasures that fit no chunk, and files that two entries supersede.
    pub(super) fn erasures(&mut self) {
        let mut odd: Vec<(u64, String)> = self.superseded.twice().to_vec();
        for (_, file) in self.superseded.written() {
            self.unnamed.remove(&file.path);
        }
        let nowhere = self.superseded.replaced().filter(|(_, path)| self.unnamed.contains(*path));
        odd.extend(nowhere.map(|(seq, path)| (seq, path.to_owned())));
        odd.sort();
        for (seq, path) in odd {
            let record = Some(Chain::Control.entry_path(seq));
            let what = "it is superseded there, and it is no file that stood in the record then";
            self.find(Outcome::Altered, &path, record, what);
        }
    }
}
