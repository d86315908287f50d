//! A small ledger of one tool: what its verdicts rest on, for whoever has nothing but the binary and the folder.
//!
//! The source is compacted through to its tail first ([`CompactLimits::behind`] 0), so that every row of the tool lies in
//! day files, and everything else that a verdict needs in its daily facts: no chunk's results are needed, which hold
//! other tools' rows. Copied are whole chains up to the tails that the head names, the tool's objects, and its day files,
//! byte for byte. Both ends derive what that is from the chains and the index ([`held`]): the mark in the folder says the
//! tool and the flags, and nothing that it lists is believed.

mod arguments;
pub(crate) mod held;
mod sealed;
mod walk;

use std::collections::BTreeMap;

use bytes::Bytes;
use lastcall_contract::Digest;
use lastcall_event::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use arguments::{Arguments, check_row};
pub(crate) use sealed::Sealed;
pub(crate) use walk::each_entry;

use crate::chain::{self, Read};
use crate::control::Control;
use crate::entry::{FileKind, PartitionBody};
use crate::error::LedgerError;
use crate::index::{CompactLimits, IndexBody, compact_as, index_entry};
use crate::ledger::Ledger;
use crate::names::{self, Chain};
use crate::sign::{PublicKey, SigningKey, sign_head, signature_of};
use crate::store::{self, Store};
pub use held::Left;

/// The mark of an export, at its root.
pub const MARK: &str = "export.json";
/// The version of the mark and of what stands beside it.
pub const EXPORT_FORMAT: u32 = 1;
/// Every folder of a ledger.
pub(crate) const FOLDERS: [&str; 6] = ["chains", "objects", "days", "calls", "results", "dead"];

/// `export.json`: what a folder is an export of. Written but for `ledger.json` last: without the two it is no ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// [`EXPORT_FORMAT`].
    pub format: u32,
    /// The tool.
    pub tool: String,
    /// The source ledger's id.
    pub ledger: String,
    /// The time of the index entry.
    pub at: Timestamp,
    /// The head of the source ledger then.
    pub index: HeadAt,
    /// Whether the tool's calls are in it.
    pub with_arguments: bool,
    /// What was copied, by folder.
    pub copied: BTreeMap<String, Copied>,
    /// The calls files, whose digests stand in no chain.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls_sha256: BTreeMap<String, Digest>,
}

impl Mark {
    /// The mark of an export whose own cannot be read any more: nobody knows the tool.
    pub(crate) fn unknown() -> Self {
        Self {
            format: EXPORT_FORMAT,
            tool: String::new(),
            ledger: String::new(),
            at: Timestamp(0),
            index: HeadAt { seq: 0, digest: Digest::of(b"") },
            with_arguments: false,
            copied: BTreeMap::new(),
            calls_sha256: BTreeMap::new(),
        }
    }

    /// Whether nobody knows what it is an export of.
    pub(crate) fn is_unknown(&self) -> bool {
        self.tool.is_empty()
    }

    /// Its bytes: the same mark always has the same.
    pub(crate) fn bytes(&self) -> Result<Bytes, LedgerError> {
        let bytes = serde_json_canonicalizer::to_vec(self).map_err(|e| LedgerError::unreadable(MARK, e))?;
        Ok(Bytes::from(bytes))
    }
}

/// An index entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadAt {
    /// Its sequence number.
    pub seq: u64,
    /// Its digest.
    pub digest: Digest,
}

/// What was copied into one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// SHA-256 over one line a file, `<hex>  <path>` as `sha256sum` prints it, in the order of their paths.
    pub sha256: Digest,
}

/// What an export came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The mark, as it was written.
    #[serde(flatten)]
    pub mark: Mark,
    /// What was not copied.
    pub left: Left,
    /// With arguments: calls, and what became of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<ExportedCalls>,
    /// The key that the head was signed with on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<PublicKey>,
    /// The index entry that was written on the way is not signed, and the one before it was, with this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsigned: Option<PublicKey>,
}

/// The calls of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportedCalls {
    /// Calls that are in it, each proven by its commitment.
    pub calls: u64,
    /// Calls that were erased, or whose file expired.
    pub gone: u64,
    /// Calls that no commitment of the days proves, and that were left out: repeats, and calls that were never compared.
    pub unproven: u64,
}

/// The mark of a folder; `None`: it is no export.
///
/// # Errors
/// It was altered, or a newer build wrote it.
pub fn read_mark(store: &dyn Store) -> Result<Option<Mark>, LedgerError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Some(bytes) = store.get(MARK)? else { return Ok(None) };
    let unreadable =
        |e: serde_json::Error| LedgerError::altered(MARK, format!("it cannot be read any more: {e}"));
    let Format { format } = serde_json::from_slice(&bytes).map_err(unreadable)?;
    if format != EXPORT_FORMAT {
        let what = format!("its format is {format}, this build reads {EXPORT_FORMAT}; take a newer lastcall");
        return Err(LedgerError::unreadable(MARK, what));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(unreadable)
}

/// Copies what one tool's verdicts rest on into an empty place. `each` is told what is done, for a progress bar.
///
/// # Errors
/// The tool is neither registered nor observed; something stands at the target; something that the tool needs is missing
/// or altered; a store failed. A target that was not finished is no ledger.
pub fn export(
    ledger: &Ledger,
    tool: &str,
    target: &dyn Store,
    with_arguments: bool,
    each: &mut dyn FnMut(&str),
) -> Result<Exported, LedgerError> {
    export_signed(ledger, tool, target, with_arguments, None, each)
}

/// Refuses, before anything is made, what cannot be exported.
///
/// # Errors
/// The ledger is an export itself, or the tool is neither registered nor observed.
pub fn check(ledger: &Ledger, tool: &str) -> Result<(), LedgerError> {
    if let Some(mark) = ledger.export() {
        let what = format!(
            "{} is an export of `{}` already: copy the folder, or export from the ledger that it came from",
            ledger.place(),
            mark.tool
        );
        return Err(LedgerError::Refused(what));
    }
    let control = ledger.control_now()?;
    if !control.subjects().iter().any(|s| s.tool_id == tool) {
        let what = format!(
            "no tool `{tool}` is registered or observed, so no verdict of it can be exported; \
             `lastcall ledger show {}` lists the tools",
            ledger.place()
        );
        return Err(LedgerError::Refused(what));
    }
    Ok(())
}

/// As [`export`], and signs the head that it rests on.
///
/// # Errors
/// As there; or the head is signed with another key.
pub fn export_signed(
    ledger: &Ledger,
    tool: &str,
    target: &dyn Store,
    with_arguments: bool,
    key: Option<&SigningKey>,
    each: &mut dyn FnMut(&str),
) -> Result<Exported, LedgerError> {
    check(ledger, tool)?;
    target.probe()?;
    refuse_what_stands(target)?;
    let before = match ledger.head()? {
        Some(head) => signature_of(ledger, head.entry.seq)?.map(|signature| signature.public_key),
        None => None,
    };
    let through = CompactLimits { behind: 0, ..CompactLimits::default() };
    let done = compact_as(ledger, through, key.map(SigningKey::public), each)?;
    let signer = match key {
        Some(key) => sign_head(ledger, key)?.map(|(_, signature)| signature.public_key),
        None => None,
    };
    let unsigned = before.filter(|_| signer.is_none() && done.entries > 0);
    let store = &**ledger.store();
    let Some(head) = done.head.map(|seq| index_entry(store, seq)).transpose()?.flatten() else {
        return Err(LedgerError::Missing { place: Chain::Index.entry_path(0) });
    };
    // Two at once would mix: who comes second finds the claim of the first.
    let claim = serde_json::json!({ "format": EXPORT_FORMAT, "claimed_by": crate::ledger::random_hex(16)? });
    if target.create(MARK, &Bytes::from(claim.to_string()))? == store::Created::Exists {
        return Err(being_written());
    }
    let mut copy = Copy { source: store, target, copied: BTreeMap::new(), each };
    let held = held::held(ledger, tool, &head)?;
    let (mut left, superseded) = (held.left, ledger.superseded()?);
    copy.chain::<serde::de::IgnoredAny>(&Chain::Control, &head.entry.body.control.tail, |_, _| Ok(()))?;
    copy.index(&head)?;
    for digest in &held.objects {
        let bytes = ledger.object(digest)?;
        copy.write(&names::object_path(digest), &Bytes::from(bytes))?;
    }
    for file in held.days.values() {
        let bytes = crate::files::checked_as(store, &file.path, file.bytes, &file.sha256)?;
        copy.write(&file.path, &bytes)?;
    }
    let mut calls = with_arguments.then(ExportedCalls::default);
    let mut arguments = Arguments::new(ledger, &held);
    for at in &head.entry.body.partitions {
        let mut ours = Vec::new();
        copy.chain::<PartitionBody>(&at.chain(), &at.tail, |seq, body| {
            if let Some(chunk) = body.chunk() {
                left.chunk(chunk, &superseded);
                ours.extend(chunk.calls.iter().any(|c| *c.tool == *tool).then_some(seq));
            }
            Ok(())
        })?;
        let Some(calls) = &mut calls else { continue };
        for seq in ours {
            let read = chain::read_entry::<PartitionBody>(store, &at.chain(), seq)?;
            let Some(PartitionBody::Chunk(chunk)) = read.map(|read| read.entry.body) else { continue };
            for file in chunk.files.iter().filter(|f| f.kind == FileKind::Calls) {
                (copy.each)(&file.path);
                if let Some(bytes) = arguments.of_tool(&at.source, at.partition.0, &chunk, file, calls)? {
                    left.take_calls();
                    copy.write(&file.path, &bytes)?;
                }
            }
        }
    }
    if with_arguments {
        refuse_erased_since(ledger, &head.entry.body)?;
    }
    let mark = Mark {
        format: EXPORT_FORMAT,
        tool: tool.to_owned(),
        ledger: ledger.meta().id.clone(),
        at: head.entry.at,
        index: HeadAt { seq: head.entry.seq, digest: head.digest.clone() },
        with_arguments,
        calls_sha256: digests(copy.copied.get("calls")),
        copied: copy.copied.iter().map(|(folder, files)| (folder.clone(), listed(files))).collect(),
    };
    target.put(MARK, &mark.bytes()?)?;
    // The last of all: without it the folder is no ledger, whatever stopped us.
    let meta = store.get(names::META)?.ok_or(LedgerError::Missing { place: names::META.to_owned() })?;
    put(target, names::META, &meta)?;
    Ok(Exported { mark, left, calls, signer, unsigned })
}

/// Refuses to finish an export of which calls were erased, or expired, while it was written: its chains end before that,
/// and what was copied may be what had to go.
fn refuse_erased_since(ledger: &Ledger, head: &IndexBody) -> Result<(), LedgerError> {
    let since = chain::read_from::<Control>(&**ledger.store(), &Chain::Control, Some(&head.control.tail))?;
    let gone =
        |read: &&Read<Control>| matches!(read.entry.body, Control::Erase { .. } | Control::Expire { .. });
    let Some(read) = since.iter().find(gone) else { return Ok(()) };
    Err(LedgerError::Refused(format!(
        "calls were erased, or expired, while this export was written ({}): what was copied may be what had to go; remove \
         the folder, which is no ledger, and export again",
        Chain::Control.entry_path(read.entry.seq)
    )))
}

/// The digests of a folder's files, by path.
pub(crate) fn digests(files: Option<&BTreeMap<String, (Digest, u64)>>) -> BTreeMap<String, Digest> {
    files.into_iter().flatten().map(|(path, (sha256, _))| (path.clone(), sha256.clone())).collect()
}

/// The digest and the sums of a folder's files, by path.
pub(crate) fn listed(files: &BTreeMap<String, (Digest, u64)>) -> Copied {
    let lines: String = files.iter().map(|(path, (sha, _))| format!("{}  {path}\n", sha.hex())).collect();
    let bytes = files.values().map(|(_, bytes)| bytes).sum();
    Copied { files: files.len() as u64, bytes, sha256: Digest::of(lines.as_bytes()) }
}

fn refuse_what_stands(target: &dyn Store) -> Result<(), LedgerError> {
    let refused = |what: &str| LedgerError::Refused(what.to_owned());
    if target.get(names::META)?.is_some() {
        return Err(refused(
            "a ledger stands at the target already; nothing was changed: give a new or an empty folder",
        ));
    }
    let mut stands = target.get(MARK)?.is_some();
    for folder in FOLDERS {
        stands = stands || !target.list(folder)?.is_empty();
    }
    if stands { Err(being_written()) } else { Ok(()) }
}

fn being_written() -> LedgerError {
    let what = "the target holds part of an export that was stopped, or that somebody writes now, and it is no ledger; nothing \
                was changed: remove it, or give a new folder";
    LedgerError::Refused(what.to_owned())
}

fn put(target: &dyn Store, path: &str, bytes: &Bytes) -> Result<(), LedgerError> {
    if store::settle(target, path, bytes)? {
        return Ok(());
    }
    Err(LedgerError::Refused(format!(
        "somebody else writes to the target: {path} stands there with other bytes; give each export a folder of its own"
    )))
}

/// Copies, and remembers what.
struct Copy<'a> {
    source: &'a dyn Store,
    target: &'a dyn Store,
    /// By folder and path: digest and length.
    copied: BTreeMap<String, BTreeMap<String, (Digest, u64)>>,
    each: &'a mut dyn FnMut(&str),
}

impl Copy<'_> {
    fn write(&mut self, path: &str, bytes: &Bytes) -> Result<(), LedgerError> {
        (self.each)(path);
        put(self.target, path, bytes)?;
        let folder = path.split('/').next().unwrap_or_default().to_owned();
        let file = (Digest::of(bytes), bytes.len() as u64);
        self.copied.entry(folder).or_default().insert(path.to_owned(), file);
        Ok(())
    }

    /// A chain, up to a tail that the head names.
    fn chain<B: serde::de::DeserializeOwned>(
        &mut self,
        chain: &Chain,
        tail: &chain::Tail,
        mut body: impl FnMut(u64, B) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        each_entry::<B>(self.source, chain, tail, |path, bytes, entry| {
            self.write(path, bytes)?;
            body(entry.seq, entry.body)
        })
    }

    /// The index chain up to the head, with the signatures that stand beside it.
    fn index(&mut self, head: &Read<IndexBody>) -> Result<(), LedgerError> {
        self.chain::<serde::de::IgnoredAny>(&Chain::Index, &head.tail(), |_, _| Ok(()))?;
        for seq in 0..=head.entry.seq {
            let path = names::signature_path(seq);
            if let Some(bytes) = self.source.get(&path)? {
                self.write(&path, &bytes)?;
            }
        }
        Ok(())
    }
}
