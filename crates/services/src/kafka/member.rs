//! A member of a consumer group: lists of partitions, what a message carries, what an error means.

use lastcall_ledger::calmly;
use rdkafka::TopicPartitionList;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Headers, Message};

use super::Key;
use crate::Stop;

/// Headers of a message that are read; its value names what is in it, and nobody needs more.
const HEADERS: usize = 256;

/// The partitions of librdkafka's list.
pub fn keys_of(tpl: &TopicPartitionList) -> Vec<Key> {
    let key = |topic: &str, partition| Key { source: topic.into(), partition };
    tpl.elements().iter().map(|element| key(element.topic(), element.partition())).collect()
}

/// Partitions as librdkafka's list.
pub fn list<'a>(keys: impl IntoIterator<Item = &'a Key>) -> TopicPartitionList {
    let mut tpl = TopicPartitionList::new();
    keys.into_iter().for_each(|key| {
        tpl.add_partition(&key.source, key.partition);
    });
    tpl
}

/// What a message carries outside its value.
#[derive(Clone, Debug, Default)]
pub struct Outer {
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The headers, in order.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl Outer {
    /// Of a message. The client library gives up on a header whose name is no UTF-8: that one is left out, and no other.
    pub fn of(message: &impl Message) -> Self {
        let count = message.headers().map_or(0, Headers::count).min(HEADERS);
        let header = |at: usize| {
            let header = message.headers()?.try_get(at)?;
            Some((header.key.to_owned(), header.value.unwrap_or_default().to_vec()))
        };
        let all = calmly(|| (0..count).filter_map(header).collect());
        let one = |at| calmly(|| header(at)).flatten();
        let headers = all.unwrap_or_else(|| (0..count).filter_map(one).collect());
        Self { key: message.key().map(<[u8]>::to_vec), headers }
    }

    /// Bytes that it holds in memory, about.
    pub fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len() + 48);
        self.key.as_ref().map_or(0, Vec::len) + headers.sum::<usize>()
    }
}

/// What an error of a poll means.
pub enum Trouble {
    /// It ends the process.
    Ends(Stop),
    /// A position lies outside its topic.
    OutOfRange(KafkaError),
    /// The group took this process for dead: its partitions are looked at again.
    Again,
    /// It passes by itself: librdkafka connects again. The code is one of few.
    Passes {
        /// Of the error.
        code: String,
        /// The error.
        error: KafkaError,
    },
}

impl Trouble {
    /// Of an error that a poll returned.
    pub fn of(error: KafkaError) -> Self {
        use RDKafkaErrorCode as Code;
        let code = error.rdkafka_error_code();
        let what = |what: &str, error| Self::Ends(Stop::Kafka { what: what.to_owned(), error });
        match (&error, code) {
            (KafkaError::MessageConsumptionFatal(_), _) => what("reading", error),
            (_, Some(Code::AutoOffsetReset | Code::OffsetOutOfRange)) => Self::OutOfRange(error),
            (
                _,
                Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::TopicAuthorizationFailed),
            ) => what("a topic cannot be read", error),
            (_, Some(Code::PollExceeded)) => Self::Again,
            _ => {
                let code = code.map_or_else(|| "client".to_owned(), |code| format!("{code:?}"));
                Self::Passes { code, error }
            }
        }
    }
}
