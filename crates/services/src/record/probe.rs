//! `--probe`: everything that a start needs is asked for once. Nothing is recorded: a file of its own is written and removed.

use std::time::Duration;

use lastcall_ledger::Ledger;
use lastcall_ledger::position::Partition;
use lastcall_record::Committer;
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::Stop;
use super::assign::Assigner;
use super::follower::Follower;
use super::service::{Options, topics};
use crate::checked::Checked;
use crate::kafka::topic::Observer;

const ASK: Duration = Duration::from_secs(10);

/// Asks for everything, in the order in which a start needs it; what rests on something that failed is left out.
pub fn probe(ledger: &Ledger, options: &Options) -> Vec<Checked> {
    let mut all = Vec::new();
    let mut told = |what: String, answer: Result<String, Stop>| {
        let fine = answer.is_ok();
        all.push(Checked { what, answer });
        fine
    };
    let place = format!("ledger {}", ledger.place());
    let written = ledger.probe().and_then(|()| {
        let path = format!("probe/{}", ledger.writer());
        ledger.store().put(&path, &b"lastcall-record --probe".to_vec().into())?;
        Ok(ledger.store().delete(&path)?)
    });
    told(place, written.map(|()| "may be written".to_owned()).map_err(Stop::from));
    let follower = match Follower::start(ledger, options.key.clone()) {
        Ok(follower) => std::sync::Arc::new(follower),
        Err(stop) => {
            told("observed pairs".to_owned(), Err(stop));
            return all;
        }
    };
    let current = follower.now();
    let pairs = match current.pairs() {
        0 => "none: calls would be recorded and compared with nothing; begin with `lastcall plan observe OLD NEW`".to_owned(),
        pairs => format!("{pairs} are ready to be compared"),
    };
    told("observed pairs".to_owned(), Ok(pairs));
    let brokers = format!("brokers {}", options.settings.brokers());
    let observer = match Observer::new(options.settings.plain()) {
        Ok(observer) => std::sync::Arc::new(observer),
        Err(error) => {
            told(brokers, Err(Stop::Kafka { what: "the settings".to_owned(), error }));
            return all;
        }
    };
    let cluster = observer.cluster();
    let answer = match &cluster {
        Some(id) => Ok(format!("cluster {id}")),
        None => Err(Stop::Away(format!(
            "no broker answers within {} s; is the address right, and does the listener that it names lead there?",
            ASK.as_secs()
        ))),
    };
    if !told(brokers, answer) {
        return all;
    }
    let group = options.settings.consumer(&options.group, None);
    let asked =
        group.create::<BaseConsumer>().and_then(|client| client.fetch_group_list(Some(&options.group), ASK));
    let answer = asked.map(|list| match list.groups().first() {
        Some(group) => format!("{}, {} members", group.state(), group.members().len()),
        None => "has no members".to_owned(),
    });
    told(
        format!("group {}", options.group),
        answer.map_err(|error| Stop::Kafka { what: "the group".to_owned(), error }),
    );
    let topics = match topics(&follower, &observer, options) {
        Ok(topics) => topics,
        Err(stop) => {
            told("sources".to_owned(), Err(stop));
            return all;
        }
    };
    let assigner = Assigner {
        ledger: ledger.clone(),
        follower: follower.clone(),
        observer,
        cluster,
        from: options.from,
        accept_gap: options.accept_gap.clone(),
    };
    for topic in topics {
        let Some(source) = current.source(&topic) else { continue };
        let mut config = follower.config(&current, source).and_then(|_| follower.decoder(source)).map(|_| ());
        let count = assigner.observer.partitions(&topic).ok().flatten().unwrap_or_default();
        for partition in 0..count {
            let answer = std::mem::replace(&mut config, Ok(())).and_then(|()| {
                let store = ledger.store();
                let committer = Committer::new(&**store, &topic, Partition(partition), ledger.writer());
                let bounds = assigner.observer.bounds(&topic, partition)?;
                let held = format!("holds [{}, {})", bounds.low, bounds.high);
                Ok(match committer.assigned()? {
                    Some(assigned) => {
                        assigner.fits(source, partition, &assigned, bounds)?;
                        format!("{held}, goes on at {}", assigned.progress.next.0)
                    }
                    None => match options.from {
                        Some(from) => format!("{held}, begins at {}", from.within(bounds)),
                        None => {
                            let what = format!(
                                "{held}, was never recorded: a start needs --from earliest, latest or OFFSET"
                            );
                            return Err(Stop::Usage(what));
                        }
                    },
                })
            });
            told(format!("{topic}/{partition}"), answer);
        }
    }
    all
}
