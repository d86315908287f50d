//! What verify holds in memory: records of more chunks, and of more calls in a chunk, each verified in a process of its
//! own.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lastcall_compare::{COMPARATOR_VERSION, PairConfig, config_bytes, epoch_digest};
use lastcall_contract::{Contract, Definition, Pick};
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::index::compact;
use lastcall_ledger::verify::{Outcome, verify};
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_record::{Limits, RunOptions, run_file};
use serde_json::{Value, json};

use crate::store::Folder;
use crate::{peak_mib, set};

/// Chunks, and calls in each.
const SIZES: [(u64, u64); 3] = [(1_000, 100), (4_000, 100), (10_000, 10)];

/// Makes the records and verifies them.
pub fn measure(figures: &mut Value) -> Result<()> {
    for (chunks, calls) in SIZES {
        let dir = Path::new("target/bench/verify");
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir)?;
        make(dir, chunks, calls)?;
        let start = Instant::now();
        let child = Command::new(std::env::current_exe()?).arg("verify-one").arg(dir).output()?;
        let seconds = start.elapsed().as_secs_f64();
        ensure!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        let mib: u64 =
            String::from_utf8_lossy(&child.stdout).trim().parse().context("the child says its MiB")?;
        println!("verify, {chunks} chunks of {calls} calls: {seconds:.1} s, {mib} MiB");
        set(figures, format!("verify_{chunks}_chunks_of_{calls}_mib"), json!(mib));
        set(figures, format!("verify_{chunks}_chunks_of_{calls}_s"), json!(seconds));
        std::fs::remove_dir_all(dir)?;
    }
    Ok(())
}

/// Verifies one record, and says the largest resident set in MiB.
pub fn one(dir: &Path) -> Result<()> {
    let ledger = Ledger::open_in(Arc::new(Folder::new(dir)), "the record")?;
    let report = verify(&ledger, &mut |_| {})?;
    ensure!(report.outcome == Outcome::Intact, "{:?}", report.findings.first());
    println!("{}", peak_mib());
    Ok(())
}

fn make(dir: &Path, chunks: u64, calls: u64) -> Result<()> {
    let ledger = Ledger::init_in(Arc::new(Folder::new(dir)), LedgerClock::Simulated, "the record")?;
    let contract = |version: u32, most: u32| -> Result<Contract> {
        let text = format!(
            r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{"n":{{"type":"integer","maximum":{most}}}}}}}}}"#
        );
        Ok(Contract::new(format!("t@{version}"), Definition::from_text("t", &text, Pick::default())?))
    };
    let (current, candidate, config) = (contract(1, 100)?, contract(2, 90)?, PairConfig::default());
    let object = |contract: &Contract| ledger.put_object(contract.definition.verbatim.as_bytes());
    let pair = Pair {
        tool_id: "t".to_owned(),
        current: current.id.clone(),
        current_digest: object(&current)?,
        candidate: candidate.id.clone(),
        candidate_digest: object(&candidate)?,
        config_digest: ledger.put_object(&config_bytes(&config))?,
        epoch: epoch_digest(&current, &candidate, &config),
        comparator: COMPARATOR_VERSION,
    };
    ledger.append_control(Control::Observe { pair })?;
    let mut text = String::new();
    let days = 28;
    let total = chunks * calls;
    for n in 0..total {
        let minutes = n * days * 1440 / total;
        let (day, hour, minute) = (1 + minutes / 1440, minutes / 60 % 24, minutes % 60);
        writeln!(
            text,
            r#"{{"type":"tool_call","schema_version":1,"call_id":"c{n}","ts":"2026-06-{day:02}T{hour:02}:{minute:02}:00Z","tool_id":"t","contract_id":"t@1","arguments":{{"n":{}}},"outcome":{{"status":"ok"}}}}"#,
            n % 100
        )?;
    }
    text.push_str("{\"type\":\"clock\",\"schema_version\":1,\"ts\":\"2026-06-29T02:00:00Z\"}\n");
    let input = dir.with_extension("jsonl");
    std::fs::write(&input, text)?;
    let limits = Limits { records: calls, ..Limits::default() };
    run_file(&ledger, &input, &RunOptions { limits, ..RunOptions::default() }, &mut |_| {})?;
    std::fs::remove_file(&input)?;
    compact(&ledger, &mut |_| {})?;
    Ok(())
}
