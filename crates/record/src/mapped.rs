//! Sources whose messages go through a map: the map's text, its decoder, and what tools are called.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use lastcall_event::source::{Decoder, Input, Item, Map, MapError, Message, Nobody, Resolve, Resolved};
use lastcall_event::{Preset, Record, decode};
use lastcall_ledger::control::Role;
use lastcall_ledger::state::SourceInfo;
use lastcall_ledger::{Ledger, LedgerError};

use crate::lines::LineReader;
use crate::run::{RunError, RunOptions};

/// Records that are looked at to find out whether a file holds mirrored calls.
const PEEK: usize = 200;

/// The text of the map of a preset: the user's, or that of this build; `None`: the preset has no map.
///
/// # Errors
/// The user's map is none, is missing, or is given to a preset that has its own.
pub fn map_text(preset: Preset, given: Option<&str>) -> Result<Option<String>, MapError> {
    let odd = |message: &str| Err(MapError { at: String::new(), message: message.to_owned() });
    match (Map::text_of(preset), given) {
        (None, Some(text)) if preset == Preset::Map => {
            Map::parse(text)?;
            Ok(Some(text.to_owned()))
        }
        (None, None) if preset == Preset::Map => odd("preset map needs one: name its file with --map"),
        (_, Some(_)) => odd("a map goes with preset map alone"),
        (built_in, None) => Ok(built_in.map(str::to_owned)),
    }
}

/// The decoder of a source, from the map that was registered with it; `None`: it has no map.
///
/// # Errors
/// The map is missing, altered, or cannot be read by this build.
pub fn decoder(ledger: &Ledger, info: &SourceInfo) -> Result<Option<Decoder>, RunError> {
    let Some(digest) = &info.map else {
        if info.preset.is_mapped() {
            return Err(RunError::Source(format!(
                "source `{}` is registered without its map: register it again under another name",
                info.name
            )));
        }
        return Ok(None);
    };
    let text = String::from_utf8(ledger.object(digest)?)
        .map_err(|error| LedgerError::Refused(format!("the map of source `{}`: {error}", info.name)))?;
    Ok(Some(Decoder::new(Map::parse(&text)?)))
}

/// A file is mirrored calls if one of its first calls carries candidates or an upstream position.
pub(crate) fn guess_role(path: &Path, options: &RunOptions, place: &str) -> Result<Role, RunError> {
    let preset = options.preset.unwrap_or_default();
    // a source that is registered already has its map, and its role
    let map = map_text(preset, options.map.as_deref()).ok().flatten().and_then(|text| Map::parse(&text).ok());
    let decoder = map.map(Decoder::new);
    let framed = decoder.as_ref().is_some_and(|decoder| decoder.map().input() == Input::OtlpProto);
    let read = |error: io::Error| RunError::Read { place: place.to_owned(), error };
    let mut lines = LineReader::open(path).map_err(read)?;
    for _ in 0..PEEK {
        let line = if framed { lines.next_frame() } else { lines.next_line() };
        let Some(line) = line.map_err(read)? else { break };
        let role = match &decoder {
            None => role_of(line.bytes, preset),
            Some(decoder) => {
                decoder.decode(&Message::of(line.bytes), &Nobody).iter().find_map(|item| match item {
                    Item::Record { text, .. } => role_of(text.as_bytes(), Preset::Native),
                    _ => None,
                })
            }
        };
        if let Some(role) = role {
            return Ok(role);
        }
    }
    Ok(Role::ToolCalls)
}

fn role_of(bytes: &[u8], preset: Preset) -> Option<Role> {
    let Record::Call(call) = decode(bytes, preset).ok()?.record else { return None };
    let mirrored = !call.candidates.is_empty() || call.upstream.is_some();
    Some(if mirrored { Role::MirroredCalls } else { Role::ToolCalls })
}

/// What tools are called: by their ids, and as models know them.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, BTreeSet<(String, String)>>);

impl Names {
    /// Adds a contract that production may use, and under which name it is given to models.
    pub fn add(&mut self, name: &str, tool_id: &str, contract_id: &str) {
        for name in [name, tool_id] {
            let meant = (tool_id.to_owned(), contract_id.to_owned());
            self.0.entry(name.to_owned()).or_default().insert(meant);
        }
    }
}

impl Resolve for Names {
    fn resolve(&self, name: &str) -> Resolved {
        let Some(meant) = self.0.get(name) else { return Resolved::Nothing };
        let mut each = meant.iter();
        match (each.next(), each.next()) {
            (Some((tool_id, contract_id)), None) => {
                Resolved::One { tool_id: tool_id.clone(), contract_id: contract_id.clone() }
            }
            (Some((tool_id, _)), Some(_)) if meant.iter().all(|(other, _)| other == tool_id) => {
                Resolved::Contracts { tool_id: tool_id.clone() }
            }
            (None, _) => Resolved::Nothing,
            _ => Resolved::Tools,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_contract_or_says_why_not() {
        let mut names = Names::default();
        names.add("lookup_order", "orders.lookup", "orders.lookup@1");
        names.add("search", "web.search", "web.search@1");
        names.add("search", "web.search", "web.search@2");
        names.add("send", "sms.send", "sms.send@1");
        names.add("send", "mail.send", "mail.send@1");
        let one =
            Resolved::One { tool_id: "orders.lookup".to_owned(), contract_id: "orders.lookup@1".to_owned() };
        assert_eq!((names.resolve("lookup_order"), names.resolve("orders.lookup")), (one.clone(), one));
        assert_eq!(names.resolve("search"), Resolved::Contracts { tool_id: "web.search".to_owned() });
        assert_eq!(names.resolve("send"), Resolved::Tools);
        assert_eq!(names.resolve("other"), Resolved::Nothing);
    }
}
