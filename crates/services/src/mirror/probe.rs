//! `--probe`: everything that a start needs is asked for once. Nothing is written, and candidates are asked what they offer:
//! no call is run.

use std::sync::Arc;

use lastcall_event::Suppression;
use lastcall_mirror::Mirror;
use tokio::runtime::Builder;

use super::service::Options;
use crate::Stop;
use crate::checked::Checked;
use crate::kafka::topic::{ASK, Observer};

/// Asks for everything, in the order in which a start needs it; what rests on something that failed is left out.
pub fn probe(mirror: &Mirror, options: &Options) -> Vec<Checked> {
    let mut all = candidates(mirror);
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

/// What each candidate says of itself.
fn candidates(mirror: &Mirror) -> Vec<Checked> {
    let asked = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(mirror.probe()),
        Err(error) => {
            let answer = Err(Stop::Away(error.to_string()));
            return vec![Checked { what: "candidates".to_owned(), answer }];
        }
    };
    let each = asked.into_iter().map(|probed| {
        let rerun = if probed.rerun { "rerun of " } else { "" };
        let what = format!("{} {rerun}{}", probed.tool, probed.contract);
        let notes = probed.notes.join("; ");
        let answer = match (probed.fits, probed.suppression) {
            (false, _) if !probed.reached => Err(Stop::Away(format!("{}: {notes}", probed.asked))),
            // Nothing that waiting would mend.
            (false, _) => Err(Stop::Usage(format!("{}: {notes}", probed.asked))),
            (true, Suppression::NotExecuted) => Ok("is never executed".to_owned()),
            (true, _) if notes.is_empty() => Ok(format!("{} answers", probed.asked)),
            (true, _) => Ok(format!("{} answers; {notes}", probed.asked)),
        };
        Checked { what, answer }
    });
    each.collect()
}
