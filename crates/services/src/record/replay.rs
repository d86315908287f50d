//! `lastcall-record replay`: dead letters into their topic again, after what made them dead was mended: a newer build, or a
//! source with another map. A call that comes twice counts once, by its call id.

use std::collections::BTreeMap;

use lastcall_event::source::{Decoder, Item, Message, Nobody};
use lastcall_event::{Timestamp, decode};
use lastcall_ledger::Ledger;
use lastcall_ledger::rows::DeadRow;
use lastcall_ledger::state::SourceInfo;
use lastcall_record::{MARK, decoder};

use super::Stop;
use crate::kafka::Settings;
use crate::kafka::producer::{Outgoing, Producer};

/// Which dead letters go where.
pub struct Request<'a> {
    /// The source that they came from.
    pub source: &'a str,
    /// Those of this reason alone.
    pub reason: Option<&'a str>,
    /// The topic; the source itself if none is named.
    pub to: Option<&'a str>,
    /// Those too that this build cannot read either.
    pub all: bool,
    /// Say what would be replayed.
    pub dry: bool,
}

/// What became of the dead letters.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Replayed, by the reason for which they had died.
    pub replayed: BTreeMap<String, u64>,
    /// Not replayed, by why.
    pub left: BTreeMap<&'static str, u64>,
}

impl Done {
    /// How many were replayed.
    pub fn total(&self) -> u64 {
        self.replayed.values().sum()
    }
}

const CUT: &str = "the record keeps their first part alone (too_long, cut_off)";
const HIDDEN: &str = "the source's redaction hid their bytes";
const STILL: &str = "this build cannot read them either, from what is kept: of a batch one record, of a message no headers (--all \
                     replays them nevertheless)";

/// Replays dead letters.
///
/// # Errors
/// The source is unknown, the ledger or the broker cannot be used.
pub fn replay(ledger: &Ledger, settings: &Settings, request: &Request<'_>) -> Result<Done, Stop> {
    let control = ledger.control_now()?;
    if !control.sources.contains_key(request.source) {
        return Err(Stop::Usage(format!("the ledger has no source `{}`", request.source)));
    }
    let topic = request.to.unwrap_or(request.source);
    let Some(target) = control.sources.get(topic) else {
        return Err(Stop::Usage(format!(
            "topic `{topic}` is no source of this ledger: nobody would record what is replayed into it"
        )));
    };
    // What it is replayed into has to read it.
    let decoder = decoder(ledger, target)?;
    let producer = if request.dry { None } else { Some(Producer::new(settings)?) };
    let mut done = Done::default();
    let mut failed = None;
    for partition in ledger.partition_numbers(request.source)? {
        for (_, chunk) in ledger.partition(request.source, partition)?.chunks() {
            ledger.for_each_dead(chunk, |row| {
                if failed.is_some() || request.reason.is_some_and(|reason| reason != row.reason) {
                    return;
                }
                if let Some(why) = unfit(target, decoder.as_ref(), &row, request.all) {
                    *done.left.entry(why).or_default() += 1;
                    return;
                }
                let sent =
                    producer.as_ref().map_or(Ok(()), |producer| send(producer, topic, request.source, &row));
                match sent {
                    Ok(()) => *done.replayed.entry(row.reason).or_default() += 1,
                    Err(error) => failed = Some(error),
                }
            })?;
        }
    }
    let answer = match (failed, producer) {
        (Some(error), _) => Err(error),
        (None, Some(producer)) => producer.finish().map(|_| ()),
        (None, None) => Ok(()),
    };
    answer.map_err(|error| Stop::Kafka {
        what: format!("topic {topic}; some were replayed: replaying again is safe, a call counts once"),
        error,
    })?;
    Ok(done)
}

/// With the time at which it was read first: its calls are held against that.
fn send(
    producer: &Producer,
    topic: &str,
    source: &str,
    row: &DeadRow,
) -> Result<(), rdkafka::error::KafkaError> {
    let from = format!("{source}/{}/{}", row.position.partition, row.position.offset);
    let header = Some(("lastcall-replayed", from.as_str()));
    let time: Option<Timestamp> = row.received;
    producer.send(topic, &Outgoing { key: Some(from.as_bytes()), value: &row.bytes, time, header })
}

/// Why a dead letter is not replayed.
fn unfit(target: &SourceInfo, decoder: Option<&Decoder>, row: &DeadRow, all: bool) -> Option<&'static str> {
    if row.reason == "too_long" || row.reason == "cut_off" {
        return Some(CUT);
    }
    if row.reason == "not_redacted" || row.bytes.starts_with(MARK.as_bytes()) {
        return Some(HIDDEN);
    }
    let readable = match decoder {
        None => decode(&row.bytes, target.preset).is_ok(),
        Some(decoder) => {
            let items = decoder.decode(&Message::of(&row.bytes), &Nobody);
            !items.iter().any(|item| matches!(item, Item::Dead { .. }))
        }
    };
    (!readable && !all).then_some(STILL)
}
