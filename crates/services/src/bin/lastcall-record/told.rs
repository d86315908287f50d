//! What is said to people. Pure.

use std::fmt::Write as _;

use lastcall_services::record::{Summary, plant, replay};

/// A run's end, on one line.
pub fn summary(summary: &Summary) -> String {
    let balance = &summary.balance;
    format!(
        "read {}: {} calls, {} dead, {} other, in {} chunks and {} heartbeats; {} appends lost to others, {} rebalances, \
         {} partitions at the end",
        balance.read,
        balance.calls,
        balance.dead,
        balance.other,
        summary.chunks,
        summary.heartbeats,
        summary.lost,
        summary.rebalances,
        summary.partitions,
    )
}

/// What a dry run found.
pub fn dry(summary: &Summary) -> String {
    let balance = &summary.balance;
    let mut out = format!(
        "dry run: {} records of {} partitions would be recorded: {} calls, {} dead letters, {} other\n",
        balance.read, summary.partitions, balance.calls, balance.dead, balance.other
    );
    for (reason, count) in &summary.dead_reasons {
        let _ = writeln!(out, "  dead, {reason}: {count}");
    }
    for (result, count) in &summary.results {
        let _ = writeln!(out, "  compared, {result}: {count}");
    }
    out.push_str("nothing was written\n");
    out
}

/// What was planted.
pub fn plant(done: &plant::Done, tool: &str, topic: &str) -> String {
    let Some(seq) = done.control else {
        return done.planting.records.iter().flat_map(|record| [record, "\n"]).collect();
    };
    let count = done.planting.records.len();
    let mut out =
        format!("planted {count} calls of `{tool}` in topic {topic}, committed by control entry {seq}\n");
    for call in &done.planting.list.calls {
        let _ = match call.expect {
            Some(e) => writeln!(out, "  {} has to come back as {}/{}", call.call_id, e.category, e.severity),
            None => writeln!(out, "  {} is synthetic", call.call_id),
        };
    }
    out
}

/// What was replayed.
pub fn replay(done: &replay::Done, topic: &str, dry: bool) -> String {
    let (would, total) = (if dry { "would be replayed" } else { "replayed" }, done.total());
    let mut out = format!("{total} dead letters {would} into topic {topic}\n");
    for (reason, count) in &done.replayed {
        let _ = writeln!(out, "  {reason}: {count}");
    }
    for (why, count) in &done.left {
        let _ = writeln!(out, "  left {count}: {why}");
    }
    if dry {
        out.push_str("nothing was written\n");
    }
    out
}
