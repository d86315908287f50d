//! What reading a ledger costs as it grows: a record of five-minute chunks, compacted and decided on once a day, is
//! looked at after 1,000, 10,000 and 100,000 chunks. Figures in target/figures/ledger.json.
//!
//! `LASTCALL_BENCH_CHUNKS` makes it shorter (100,000), `LASTCALL_BENCH_RESULTS` says how many results are recounted
//! (2,000,000). What verify holds in memory is measured alone with `ledger verify`.

mod record;
mod store;
mod verified;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use lastcall_decision::decide;
use lastcall_event::Day;
use lastcall_ledger::chain::read_tail_after;
use lastcall_ledger::entry::PartitionBody;
use lastcall_ledger::index::{PartitionEnd, compact};
use lastcall_ledger::names::Chain;
use lastcall_ledger::position::Partition;
use lastcall_ledger::store::MemoryStore;
use lastcall_ledger::window::Record;
use lastcall_ledger::{Ledger, LedgerClock};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};

use self::record::{CHUNKS_A_DAY, FIRST_DAY, Maker, SOURCE};
use self::store::{Counted, Folder};

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Where in a day the record is looked at, in chunks.
const AT: u64 = 136;
const MARKS: [(u64, &str); 3] = [(1_000, "1k"), (10_000, "10k"), (100_000, "100k")];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, dir] = arguments.as_slice()
        && what == "recount"
    {
        return recount(Path::new(dir));
    }
    if let [what, dir] = arguments.as_slice()
        && what == "verify-one"
    {
        return verified::one(Path::new(dir));
    }
    if arguments.first().is_some_and(|what| what == "verify") {
        return verified::measure(&mut json!({}));
    }
    let most = number("LASTCALL_BENCH_CHUNKS", 100_000);
    let mut figures = json!({});
    growth(most, &mut figures)?;
    recounted(number("LASTCALL_BENCH_RESULTS", 2_000_000), &mut figures)?;
    verified::measure(&mut figures)?;
    let file = Path::new("target/figures/ledger.json");
    std::fs::create_dir_all("target/figures")?;
    std::fs::write(file, serde_json::to_string_pretty(&figures)? + "\n")?;
    println!("written: {}", file.display());
    Ok(())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.replace('_', "").parse().ok()).unwrap_or(default)
}

fn set(figures: &mut Value, key: String, value: Value) {
    if let Some(map) = figures.as_object_mut() {
        map.insert(key, value);
    }
}

/// User and system time so far, seconds: what a busy machine does not change.
fn cpu(who: UsageWho) -> Result<f64> {
    let usage = getrusage(who)?;
    let seconds = |t: TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Grows one ledger and looks at it on the way.
fn growth(most: u64, figures: &mut Value) -> Result<()> {
    let store = MemoryStore::default();
    let ledger = Ledger::init_in(Arc::new(store.clone()), LedgerClock::Simulated, "memory")?;
    let mut maker = Maker::begin(ledger.clone(), 20)?;
    let (mut made, mut compacting) = (0u64, 0.0f64);
    for (mark, name) in MARKS.into_iter().filter(|(mark, _)| *mark <= most) {
        // The same time of day at each size: what is open is the same.
        let until = mark - mark % CHUNKS_A_DAY + AT;
        while made < until {
            if made.is_multiple_of(CHUNKS_A_DAY) {
                // A window of 28 days at a time, as a team has it.
                let day = Day(FIRST_DAY.0 + i32::try_from(made / CHUNKS_A_DAY)?);
                if (made / CHUNKS_A_DAY).is_multiple_of(28) {
                    maker.register(day)?;
                }
            }
            maker.chunk()?;
            made += 1;
            if made.is_multiple_of(CHUNKS_A_DAY) {
                let start = Instant::now();
                compact(&ledger, &mut |_| {})?;
                maker.decide()?;
                compacting += start.elapsed().as_secs_f64();
            }
        }
        look(&store, name, made, figures)?;
    }
    println!("compacted and decided {} times in {compacting:.1} s", made / CHUNKS_A_DAY);
    Ok(())
}

/// What start-up, `status` and `decide` read.
fn look(store: &MemoryStore, name: &str, chunks: u64, figures: &mut Value) -> Result<()> {
    let cost = |what: &str, work: &dyn Fn(Ledger) -> Result<()>, figures: &mut Value| -> Result<()> {
        let counted = Counted::new(Arc::new(store.clone()));
        let (start, before) = (Instant::now(), cpu(UsageWho::RUSAGE_SELF)?);
        work(Ledger::open_in(Arc::new(counted.clone()), "memory")?)?;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu(UsageWho::RUSAGE_SELF)? - before);
        let (requests, bytes) = counted.counts();
        println!(
            "{chunks} chunks: {what}: {requests} requests, {bytes} bytes, {seconds:.3} s, {cpu:.3} s of CPU"
        );
        set(figures, format!("{what}_requests_{name}"), json!(requests));
        set(figures, format!("{what}_bytes_{name}"), json!(bytes));
        set(figures, format!("{what}_s_{name}"), json!(seconds));
        set(figures, format!("{what}_cpu_s_{name}"), json!(cpu));
        if what == "decide" {
            set(figures, format!("requests_{name}"), json!(requests));
        }
        Ok(())
    };
    cost("start", &start_up, figures)?;
    cost("status", &|ledger| verdicts(Record::read(ledger)?, None), figures)?;
    cost("decide", &|ledger| verdicts(Record::read(ledger)?, Some(0)), figures)?;
    if chunks < 20_000 {
        cost("genesis", &|ledger| verdicts(Record::from_genesis(ledger)?, Some(0)), figures)?;
    }
    Ok(())
}

/// What `lastcall run` reads before the first record.
fn start_up(ledger: Ledger) -> Result<()> {
    let head = ledger.head()?;
    let control = ledger.control_since(head.as_ref())?;
    let at = head.as_ref().and_then(|head| head.entry.body.partition(SOURCE, Partition(0)));
    let known = at.map(PartitionEnd::from).context("the index knows the partition")?;
    let chain = Chain::partition(SOURCE, Partition(0));
    let end = read_tail_after::<PartitionBody>(&**ledger.store(), &chain, &known.tail)?;
    let named = end.map_or(known.control, |end| end.entry.body.control().clone());
    anyhow::ensure!(ledger.check_control(&control, &named)?, "the control entry is another");
    Ok(())
}

fn verdicts(record: Record, only: Option<usize>) -> Result<()> {
    let mut subjects = record.subjects();
    if let Some(only) = only {
        subjects = subjects.into_iter().skip(only).take(1).collect();
    }
    let inputs = record.gather(&subjects)?;
    let said: Vec<_> = inputs.iter().map(decide).collect();
    anyhow::ensure!(said.iter().all(|v| v.problems.is_empty()), "{:?}", said.first().map(|v| &v.problems));
    Ok(())
}

/// Many results counted again from the chunks, in a process of its own.
fn recounted(results: u64, figures: &mut Value) -> Result<()> {
    let dir = Path::new("target/bench/recount");
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir)?;
    let ledger = Ledger::init_in(Arc::new(Folder::new(dir)), LedgerClock::Simulated, "target/bench/recount")?;
    let start = Instant::now();
    let per_chunk = (results / 200).clamp(1_000, 100_000);
    let days = 14;
    let mut maker = Maker::begin(ledger, per_chunk)?;
    maker.register(FIRST_DAY)?;
    maker.spread(results.div_ceil(per_chunk), days);
    for _ in 0..results.div_ceil(per_chunk) {
        maker.chunk()?;
    }
    println!("{results} results made in {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let child = Command::new(std::env::current_exe()?).arg("recount").arg(dir).output()?;
    let seconds = start.elapsed().as_secs_f64();
    anyhow::ensure!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let cpu = cpu(UsageWho::RUSAGE_CHILDREN)?;
    let mib: u64 = String::from_utf8_lossy(&child.stdout).trim().parse().context("the child says its MiB")?;
    println!("{results} results recounted, repeats taken out: {seconds:.1} s ({cpu:.1} s of CPU), {mib} MiB");
    set(figures, "recount_results".to_owned(), json!(results));
    set(figures, "recount_s".to_owned(), json!(seconds));
    set(figures, "recount_cpu_s".to_owned(), json!(cpu));
    set(figures, "recount_mib".to_owned(), json!(mib));
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

/// Counts, and says the largest resident set in MiB (0 where the kernel does not tell).
fn recount(dir: &Path) -> Result<()> {
    let ledger = Ledger::open_in(Arc::new(Folder::new(dir)), &dir.display().to_string())?;
    verdicts(Record::from_genesis(ledger)?, None)?;
    println!("{}", peak_mib());
    Ok(())
}

/// This process's largest resident set (0 where the kernel does not tell).
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
