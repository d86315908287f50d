//! `lastcall-record plant`: calls with a known fault into a topic that is recorded. Their ids are committed to the control
//! chain first.

use lastcall_event::{Preset, Timestamp};
use lastcall_ledger::Ledger;
use lastcall_ledger::control::SourceKind;
use lastcall_record::plant::{PlantError, Planted, Planting};

use super::Stop;
use crate::kafka::Settings;
use crate::kafka::producer::{Outgoing, Producer};
use crate::kafka::topic::Observer;

/// What is planted where.
pub struct Request<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Which candidate, where several are observed.
    pub candidate: Option<&'a str>,
    /// The topic: a source of the ledger.
    pub topic: &'a str,
    /// The calls.
    pub from: Planted<'a>,
    /// Their time; none: now.
    pub at: Option<Timestamp>,
    /// Make the calls and write nothing.
    pub dry: bool,
}

/// What was planted.
pub struct Done {
    /// The calls.
    pub planting: Planting,
    /// The control entry that commits them; none of a dry run.
    pub control: Option<u64>,
}

impl From<PlantError> for Stop {
    fn from(error: PlantError) -> Self {
        match error {
            PlantError::Ledger(error) => Self::Ledger(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

/// Plants calls.
///
/// # Errors
/// The topic is no source or is not there, a call would not come back as expected, or the broker does not take them: the
/// committed ids then never come, and the error says so.
pub fn plant(ledger: &Ledger, settings: &Settings, request: &Request<'_>) -> Result<Done, Stop> {
    let control = ledger.control_now()?;
    let topic = request.topic;
    match control.sources.get(topic) {
        Some(source) if source.kind != SourceKind::Topic => {
            return Err(Stop::Usage(format!(
                "source `{topic}` is no topic: `lastcall plan plant` appends to files"
            )));
        }
        Some(source) if source.preset != Preset::Native => {
            return Err(Stop::Usage(format!(
                "source `{topic}` is read as {}, and planted calls are written as Lastcall's own records: plant them \
                 into a source with preset native",
                source.preset.as_str()
            )));
        }
        Some(_) => {}
        None => return Err(Stop::Usage(format!("topic `{topic}` is no source of this ledger"))),
    }
    let pair = control.observed_pair(request.tool, request.candidate).map_err(Stop::Usage)?.clone();
    let planting = Planting::new(ledger, &pair, request.from, request.at.or(ledger.system_now()))?;
    if request.dry {
        return Ok(Done { planting, control: None });
    }
    // Before the commitment, so that a broker that is away commits nothing.
    let observer = Observer::new(settings.plain())?;
    let there =
        observer.partitions(topic).map_err(|error| Stop::Kafka { what: format!("topic {topic}"), error })?;
    if there.is_none() {
        return Err(Stop::Topic(format!("there is no topic `{topic}` at {}", settings.brokers())));
    }
    let producer = Producer::new(settings)?;
    let seq = planting.commit(ledger, &pair)?;
    let sent = planting.list.calls.iter().zip(&planting.records).try_for_each(|(call, record)| {
        let (key, value) = (Some(call.call_id.as_bytes()), record.as_bytes());
        producer.send(topic, &Outgoing { key, value, time: None, header: None })
    });
    sent.and_then(|()| producer.finish()).map_err(|error| Stop::Kafka {
        what: format!("topic {topic}; control entry {seq} commits calls of which some never came"),
        error,
    })?;
    Ok(Done { planting, control: Some(seq) })
}
