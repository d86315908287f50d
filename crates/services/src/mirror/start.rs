//! Where a partition goes on: behind the last message of its output that a mirror wrote, nowhere else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use super::mark::{HEADER, Mark};
use crate::Stop;
use crate::kafka::member::Outer;
use crate::kafka::topic::{Bounds, Observer, patiently};
use crate::kafka::{From, Settings};

/// Messages that are looked at first, from the end; each step back looks at twice as many.
const STEP: i64 = 64;
const LARGEST_STEP: i64 = 4096;
/// For so long two topics may differ while partitions are added to both.
const GRACE: Duration = Duration::from_secs(60);
/// For one step.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where one partition goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// What its next message goes on from.
    pub mark: Mark,
    /// Nobody mirrored it before.
    pub fresh: bool,
    /// Upstream records that retention took before they were mirrored.
    pub lost: i64,
}

/// Finds out where partitions go on.
pub struct Starter {
    /// How brokers are spoken to.
    pub settings: Settings,
    /// The consumer group, which this looks up and does not join.
    pub group: String,
    /// Topics from outside.
    pub observer: Arc<Observer>,
    /// The upstream topic.
    pub upstream: String,
    /// The output.
    pub output: String,
    /// For a first deployment.
    pub from: Option<From>,
}

impl Starter {
    /// How many partitions both topics have.
    ///
    /// # Errors
    /// One of them is not there, or they differ.
    pub fn partitions(&self) -> Result<i32, Stop> {
        let count = |topic: &str| {
            let asked = patiently(|| self.observer.partitions(topic));
            let count = asked.map_err(|error| Stop::Kafka { what: format!("topic {topic}"), error })?;
            count.ok_or_else(|| {
                if matches!(topic, "earliest" | "latest") {
                    return Stop::Usage(format!(
                        "there is no topic `{topic}`: `from` in the file is the topic that is read; where a first \
                         deployment begins is said by the flag, --from {topic}"
                    ));
                }
                Stop::Topic(format!(
                    "there is no topic `{topic}` at {}, or this client may not see it. Make it with as many partitions \
                     as the other: `{}` is read and `{}` written",
                    self.settings.brokers(),
                    self.upstream,
                    self.output
                ))
            })
        };
        let (upstream, output) = (count(&self.upstream)?, count(&self.output)?);
        same(&self.upstream, upstream, &self.output, output)?;
        Ok(output)
    }

    /// Where one partition goes on.
    ///
    /// # Errors
    /// A topic cannot be read, they do not fit, or a first deployment does not say where it begins.
    pub fn start(&self, partition: i32) -> Result<Start, Stop> {
        let asked = patiently(|| self.observer.partitions(&self.output));
        let count = asked.map_err(|error| Stop::Kafka { what: format!("topic {}", self.output), error })?;
        let count = count.unwrap_or_default();
        if count <= partition {
            // The same words as where it is noticed later.
            same(&self.upstream, partition.saturating_add(1), &self.output, count)?;
        }
        let bounds = patiently(|| self.observer.bounds(&self.upstream, partition))?;
        match self.tail(partition)? {
            Some(mark) => self.goes_on(partition, mark, bounds),
            None => {
                let resume = self.begins(partition, count, bounds)?;
                let mark = Mark { stated: resume.0, resume: resume.0, first: resume.1 };
                Ok(Start { mark, fresh: true, lost: 0 })
            }
        }
    }

    fn goes_on(&self, partition: i32, mark: Mark, bounds: Bounds) -> Result<Start, Stop> {
        let (upstream, output) = (&self.upstream, &self.output);
        if mark.resume > bounds.high {
            return Err(Stop::Topic(format!(
                "{upstream}/{partition}: mirroring goes on at offset {}, and the topic ends at {}: it was deleted and \
                 made again, or this is another cluster. Its new records need another output: set `to` in the \
                 configuration to a new topic beside `{output}`",
                mark.resume, bounds.high
            )));
        }
        let lost = bounds.low.saturating_sub(mark.resume).max(0);
        let mark = match lost {
            0 => mark,
            _ => Mark { stated: bounds.low, resume: bounds.low, ..mark },
        };
        Ok(Start { mark, fresh: false, lost })
    }

    /// Where a partition begins that nobody mirrored, and how many there were when the first was.
    fn begins(&self, partition: i32, count: i32, bounds: Bounds) -> Result<(i64, i32), Stop> {
        let mut others = (0..count).filter(|other| *other != partition);
        let first = others.find_map(|other| match self.tail(other) {
            Ok(mark) => mark.map(|mark| Ok(mark.first)),
            Err(stop) => Some(Err(stop)),
        });
        let first = first.transpose()?;
        match (first, self.from) {
            // It came later: nothing of it is left out.
            (Some(first), _) if partition >= first => Ok((bounds.low, first)),
            (_, Some(from)) => Ok((from.within(bounds), first.unwrap_or(count))),
            (_, None) => Err(Stop::Usage(format!(
                "topic `{}` was never mirrored into `{}`: say where that begins, with --from earliest (partition \
                 {partition} holds offsets {} to {}), --from latest or --from OFFSET",
                self.upstream, self.output, bounds.low, bounds.high
            ))),
        }
    }

    /// The last mark in a partition of the output, looked for from its end.
    fn tail(&self, partition: i32) -> Result<Option<Mark>, Stop> {
        let Bounds { low, high } = patiently(|| self.observer.bounds(&self.output, partition))?;
        if low >= high {
            return Ok(None);
        }
        let mut config = self.settings.consumer(&self.group, None);
        config
            .set("isolation.level", "read_uncommitted")
            .set("fetch.min.bytes", "1")
            .set("queued.max.messages.kbytes", "4096");
        let client: BaseConsumer = config.create()?;
        let (mut end, mut step) = (high, STEP);
        while end > low {
            let begin = low.max(end.saturating_sub(step));
            let found = patiently(|| last_mark(&client, &self.output, partition, begin, end))?;
            if found.is_some() {
                return Ok(found);
            }
            end = begin;
            step = (step * 2).min(LARGEST_STEP);
        }
        Ok(None)
    }
}

/// The last mark in `[begin, end)`. Offsets may have holes, also at the end: markers of transactions.
fn last_mark(
    client: &BaseConsumer,
    topic: &str,
    partition: i32,
    begin: i64,
    end: i64,
) -> Result<Option<Mark>, KafkaError> {
    let mut at = TopicPartitionList::new();
    at.add_partition_offset(topic, partition, Offset::Offset(begin))?;
    client.assign(&at)?;
    let begun = Instant::now();
    let mut found = None;
    loop {
        match client.poll(Duration::from_millis(100)) {
            Some(Ok(message)) if message.offset() >= end => return Ok(found),
            Some(Ok(message)) => {
                let outer = Outer::of(&message);
                let marks = outer.headers.iter().filter(|(name, _)| name == HEADER);
                found = marks.filter_map(|(_, value)| Mark::parse(value)).next_back().or(found);
                if message.offset() >= end.saturating_sub(1) {
                    return Ok(found);
                }
            }
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(found),
            // Retention took what stood here while it was looked for.
            Some(Err(error))
                if matches!(
                    error.rdkafka_error_code(),
                    Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)
                ) =>
            {
                return Ok(found);
            }
            Some(Err(_)) | None => {}
        }
        if begun.elapsed() > PATIENCE {
            return Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut));
        }
    }
}

/// That two topics have the same number of partitions.
///
/// # Errors
/// They do not: with the next step.
pub fn same(upstream: &str, there: i32, output: &str, here: i32) -> Result<(), Stop> {
    if there == here {
        return Ok(());
    }
    let (few, many) = if there < here { (upstream, here) } else { (output, there) };
    Err(Stop::Topic(format!(
        "topic `{upstream}` has {there} partitions and `{output}` {here}; a row goes to the partition of the same \
         number, so both need the same: kafka-topics --alter --topic {few} --partitions {many}"
    )))
}

/// Whether both topics have the same number of partitions.
pub struct Counts {
    upstream: (String, i32),
    output: (String, i32),
    differ: Option<Instant>,
}

impl Counts {
    /// Both have this many.
    pub fn new(upstream: &str, output: &str, count: i32) -> Self {
        Self { upstream: (upstream.to_owned(), count), output: (output.to_owned(), count), differ: None }
    }

    /// A topic has this many partitions now.
    ///
    /// # Errors
    /// They have differed for longer than adding partitions to both takes.
    pub fn seen(&mut self, topic: &str, count: i32) -> Result<(), Stop> {
        if *topic == *self.upstream.0 {
            self.upstream.1 = count;
        } else {
            self.output.1 = count;
        }
        let answer = same(&self.upstream.0, self.upstream.1, &self.output.0, self.output.1);
        match answer {
            Ok(()) => self.differ = None,
            Err(stop) => {
                if self.differ.get_or_insert_with(Instant::now).elapsed() > GRACE {
                    return Err(stop);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn topics_of_different_sizes_are_refused_with_the_command_that_mends_it() {
        assert!(same("a", 3, "b", 3).is_ok());
        let said = |there, here| same("a", there, "b", here).unwrap_err().to_string();
        assert!(said(6, 3).ends_with("--topic b --partitions 6"), "{}", said(6, 3));
        assert!(said(3, 6).ends_with("--topic a --partitions 6"), "{}", said(3, 6));
    }

    #[test]
    fn topics_may_differ_while_partitions_are_added_to_both_and_no_longer() {
        let mut counts = Counts::new("a", "b", 3);
        assert!(counts.seen("a", 4).is_ok() && counts.differ.is_some());
        assert!(counts.seen("b", 4).is_ok() && counts.differ.is_none());
        assert!(counts.seen("b", 5).is_ok());
        counts.differ = counts.differ.and_then(|at| at.checked_sub(GRACE + GRACE));
        if counts.differ.is_some() {
            let said = counts.seen("b", 5).unwrap_err().to_string();
            assert!(said.ends_with("--topic a --partitions 5"), "{said}");
        }
    }
}
