//! `--probe`: everything that a start needs is asked for once. Nothing is written, and no candidate is called.

use std::sync::Arc;

use super::service::Options;
use crate::Stop;
use crate::checked::Checked;
use crate::kafka::topic::{ASK, Observer};

/// Asks for everything, in the order in which a start needs it; what rests on something that failed is left out.
pub fn probe(options: &Options) -> Vec<Checked> {
    let mut all = Vec::new();
    let mut told = |what: String, answer: Result<String, Stop>| {
        let fine = answer.is_ok();
        all.push(Checked { what, answer });
        fine
    };
    let brokers = format!("brokers {}", options.settings.brokers());
    let observer = match Observer::new(options.settings.plain()) {
        Ok(observer) => Arc::new(observer),
        Err(error) => {
            told(brokers, Err(Stop::Kafka { what: "the settings".to_owned(), error }));
            return all;
        }
    };
    let answer = match observer.cluster() {
        Some(id) => Ok(format!("cluster {id}")),
        None => Err(Stop::Away(format!(
            "no broker answers within {} s; is the address right, and does the listener that it names lead there?",
            ASK.as_secs()
        ))),
    };
    if !told(brokers, answer) {
        return all;
    }
    let starter = options.starter(&observer);
    let (upstream, output) = (&options.upstream, &options.output);
    let count = match starter.partitions() {
        Ok(count) => count,
        Err(stop) => {
            told(format!("topics {upstream} and {output}"), Err(stop));
            return all;
        }
    };
    let compacted = match observer.is_compacted(output) {
        Some(true) => Err(Stop::Topic("it is compacted, and would lose rows".to_owned())),
        _ => Ok(format!(
            "{count} partitions, as {upstream} has; messages of at most {} bytes",
            observer.setting(output, "max.message.bytes").unwrap_or_else(|| "unknown".to_owned())
        )),
    };
    told(format!("topic {output}"), compacted);
    for partition in 0..count {
        let answer = observer.bounds(upstream, partition).map_err(Stop::from).and_then(|bounds| {
            let start = starter.start(partition)?;
            let held = format!("holds [{}, {})", bounds.low, bounds.high);
            Ok(match (start.fresh, start.lost) {
                (true, _) => format!("{held}, begins at {}", start.mark.resume),
                (false, 0) => format!("{held}, goes on at {}", start.mark.resume),
                (false, lost) => format!("{held}, goes on at {}; {lost} records are gone", start.mark.resume),
            })
        });
        told(format!("{upstream}/{partition}"), answer);
    }
    all
}
