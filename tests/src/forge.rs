//! What somebody can do who may write everything: one file is changed, and everything that names it, directly or not, is
//! written anew with the digests that then hold. What they cannot do is sign.

use std::collections::BTreeMap;

use lastcall_ledger::store::Bytes;
use sha2::{Digest as _, Sha256};

use crate::tamper::{Changes, Files};

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The text with digests replaced.
fn with_digests(text: &str, map: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("sha256:") {
        let (before, after) = rest.split_at(at + 7);
        out += before;
        let digits = after.get(..64).unwrap_or_default();
        match map.get(digits) {
            Some(new) => {
                out += new;
                rest = &after[64..];
            }
            None => rest = after,
        }
    }
    out + rest
}

/// The changes by which `path` has `bytes` and everything fits again. Index entries that change claim no signer any
/// more, and lose their signatures.
pub fn forge(files: &Files, path: &str, bytes: Bytes) -> Changes {
    let mut base: BTreeMap<&str, String> = BTreeMap::new();
    for (path, bytes) in files {
        if (path.starts_with("chains/") && path.ends_with(".json")) || path.starts_with("objects/") {
            base.insert(path, String::from_utf8(bytes.to_vec()).expect("entries and objects are text"));
        }
    }
    let mut map: BTreeMap<String, String> = BTreeMap::new();
    match base.get_mut(path) {
        Some(text) => *text = String::from_utf8(bytes.to_vec()).expect("what is forged of text is text"),
        None => {
            map.insert(hex(&files[path]), hex(&bytes));
        }
    }
    let forged = |path: &str, text: &str, map: &BTreeMap<String, String>| {
        let mut text = with_digests(text, map);
        let original = &files[path][..];
        if path.starts_with("chains/index/")
            && text.as_bytes() != original
            && let Some(at) = text.find("\"signer\":\"")
        {
            let end = at + 10 + text[at + 10..].find('"').expect("a text ends") + 2;
            text.replace_range(at..end, "");
        }
        text
    };
    // What names nothing changed stands after the first round, what names that after the second, and so on.
    loop {
        let mut more = false;
        for (path, text) in &base {
            let (old, new) = (hex(&files[*path]), hex(forged(path, text, &map).as_bytes()));
            if old != new && map.get(&old) != Some(&new) {
                map.insert(old, new);
                more = true;
            }
        }
        if !more {
            break;
        }
    }
    let mut changes = Changes::new();
    if !base.contains_key(path) {
        changes.insert(path.to_owned(), Some(bytes));
    }
    for (path, text) in &base {
        let text = forged(path, text, &map);
        if text.as_bytes() == &files[*path][..] {
            continue;
        }
        if path.starts_with("objects/") {
            changes.insert((*path).to_owned(), None);
            changes.insert(format!("objects/{}", hex(text.as_bytes())), Some(text.into()));
            continue;
        }
        changes.insert((*path).to_owned(), Some(text.into()));
        let signature = path.replace(".json", ".sig");
        if files.contains_key(&signature) {
            changes.insert(signature, None);
        }
    }
    changes
}
