//! One tool: its candidates, its gate, and what becomes of a call.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{join, join_all};
use lastcall_event::{CallRecord, Fidelity, RawValue, Status, Timestamp};
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::answer::{Answer, Exchange, Failure, Replayed};
use crate::breaker::Breaker;
use crate::counts::{CandidateCounts, Tally};
use crate::gate::Gate;
use crate::settings::Limits;
use crate::suppress::Runner;
use crate::target::Ask;

pub(crate) struct Tool {
    pub id: String,
    pub candidates: Vec<Candidate>,
    pub rerun: Option<Rerun>,
    pub gate: Gate,
    /// Reads, or declared idempotent: the same call may be made again.
    pub idempotent: bool,
}

pub(crate) struct Candidate {
    pub contract: Arc<str>,
    pub runner: Runner,
    pub breaker: Breaker,
    pub tally: Tally,
    /// A candidate under its own name in messages and metrics.
    pub shown: String,
    /// What is asked, without secrets.
    pub asked: String,
    /// The contract's schema of arguments.
    pub schema: Option<serde_json::Value>,
}

pub(crate) struct Rerun {
    pub share: f64,
    /// Only calls of this contract; empty: of any.
    pub contract: Option<String>,
    pub candidate: Candidate,
}

/// Seeds, so that what is sampled and what is rerun do not depend on each other.
const SAMPLE: u64 = 0;
const RERUN: u64 = 1;

impl Tool {
    pub async fn replay(&self, call: &CallRecord<'_>) -> Replayed {
        if !self.candidates.iter().any(|c| c.runner.asks()) && self.rerun.is_none() {
            return self.unsent(Status::NotRun, None);
        }
        let arguments = match arguments(call) {
            Ok(arguments) => arguments,
            Err(class) => return self.unsent(Status::NotRun, Some(class)),
        };
        let key = key(call);
        let leaves = |limits: &Limits| left_out(limits, key, call.ts).is_some();
        let place = self.gate.enter(leaves).await;
        let limits = &*place.limits;
        if let Some((status, class)) = left_out(limits, key, call.ts) {
            return self.unsent(status, class);
        }
        let ask = Ask { arguments, call_id: &call.call_id };
        let candidates = self.candidates.iter().map(|candidate| {
            let contract = Arc::clone(&candidate.contract);
            self.asked(candidate, contract, &ask, limits)
        });
        let rerun = async {
            let rerun = self.rerun.as_ref().filter(|rerun| rerun.fits(call, key))?;
            let contract = Arc::from(call.contract_id.as_deref().or(rerun.contract.as_deref())?);
            Some(self.asked(&rerun.candidate, contract, &ask, limits).await)
        };
        let (candidates, current_rerun) = join(join_all(candidates), rerun).await;
        Replayed { candidates, current_rerun }
    }

    fn unsent(&self, status: Status, class: Option<&'static str>) -> Replayed {
        let answer = |candidate: &Candidate| {
            // without anything to ask nothing was left out: the schema alone judges
            let (status, class) =
                if candidate.runner.asks() { (status, class) } else { (Status::NotRun, None) };
            candidate.tally.status(status);
            Answer::unsent(&candidate.contract, status, class)
        };
        Replayed { candidates: self.candidates.iter().map(answer).collect(), current_rerun: None }
    }

    async fn asked(
        &self,
        candidate: &Candidate,
        contract: Arc<str>,
        ask: &Ask<'_>,
        limits: &Limits,
    ) -> Answer {
        if !candidate.runner.asks() {
            candidate.tally.status(Status::NotRun);
            return Answer::unsent(&contract, Status::NotRun, None);
        }
        if !candidate.breaker.admits(limits.breaker) {
            let answer = Answer::of(&contract, candidate.runner.suppression(), Err(Failure::CircuitOpen));
            candidate.tally.failure(Failure::CircuitOpen);
            candidate.tally.status(answer.status);
            return answer;
        }
        let began = Instant::now();
        let exchange = tokio::time::timeout(limits.timeout, self.exchanges(candidate, ask, limits)).await;
        let exchange = exchange.unwrap_or(Err(Failure::TimedOut));
        let took = began.elapsed();
        if let Err(failure) = &exchange {
            candidate.tally.failure(*failure);
        }
        if !matches!(exchange, Err(Failure::NotOffered)) {
            let good = exchange.as_ref().err().is_none_or(|failure| !failure.is_bad());
            candidate.breaker.told(limits.breaker, good);
        }
        let mut answer = Answer::of(&contract, candidate.runner.suppression(), exchange);
        candidate.tally.status(answer.status);
        if answer.suppression != lastcall_event::Suppression::NotExecuted {
            candidate.tally.took(took);
            answer.latency_ms = Some(took.as_secs_f64() * 1000.0);
        }
        answer
    }

    /// One exchange, and further tries where the tool allows them.
    async fn exchanges(&self, candidate: &Candidate, ask: &Ask<'_>, limits: &Limits) -> Exchange {
        let mut left = if self.idempotent { limits.retries } else { 0 };
        let mut pause = Duration::from_millis(50);
        candidate.tally.exchange(false);
        loop {
            match candidate.runner.run(ask, limits).await {
                Err(failure) if left > 0 && failure.may_pass() => {
                    left -= 1;
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2);
                    candidate.tally.exchange(true);
                }
                ended => return ended,
            }
        }
    }

    pub fn counts(&self) -> impl Iterator<Item = CandidateCounts> {
        let (limits, waiting) = (self.gate.limits(), self.gate.waiting());
        let of = move |candidate: &Candidate, rerun: bool| CandidateCounts {
            open: candidate.breaker.is_open(),
            waiting,
            on: limits.on,
            ..candidate.tally.counts(&self.id, &candidate.shown, rerun)
        };
        let rerun = self.rerun.as_ref().map(|rerun| (&rerun.candidate, true));
        self.candidates.iter().map(|c| (c, false)).chain(rerun).map(move |(c, rerun)| of(c, rerun))
    }
}

impl Rerun {
    /// Whether the current version is run again for this call.
    fn fits(&self, call: &CallRecord<'_>, key: &str) -> bool {
        let current = self
            .contract
            .as_deref()
            .is_none_or(|contract| call.contract_id.as_deref().is_none_or(|id| id == contract));
        current && !call.contract_is_unknown() && chosen(key, RERUN, self.share)
    }
}

/// Why a call need not run under these limits.
fn left_out(limits: &Limits, key: &str, at: Timestamp) -> Option<(Status, Option<&'static str>)> {
    if !limits.on {
        return Some((Status::NotRun, Some("switched_off")));
    }
    if !chosen(key, SAMPLE, limits.sample) {
        return Some((Status::SampledOut, None));
    }
    let max_age = i64::try_from(limits.max_age?.as_millis()).unwrap_or(i64::MAX);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    (now.saturating_sub(at.0) > max_age).then_some((Status::Shed, Some("max_age")))
}

/// What sampling goes by: the session, else the run, the trace, the call.
fn key<'c>(call: &'c CallRecord<'_>) -> &'c str {
    let envelope = &call.envelope;
    let ids = [&envelope.session_id, &envelope.run_id, &envelope.trace_id];
    let id = ids.into_iter().flatten().find(|id| !id.is_empty());
    id.unwrap_or(&call.call_id)
}

/// Whether a key is among this share of all keys.
fn chosen(key: &str, seed: u64, share: f64) -> bool {
    const ALL: f64 = (1u64 << 53) as f64;
    // 53 bits, so that the share is exact: 1 is all of them, 0 is none
    ((xxh3_64_with_seed(key.as_bytes(), seed) >> 11) as f64) < share * ALL
}

/// The text that the model produced, where it is one that a tool can be given.
fn arguments<'c>(call: &'c CallRecord<'_>) -> Result<&'c str, &'static str> {
    match call.fidelity {
        Fidelity::Raw | Fidelity::Reconstructed => {}
        // nobody knows what the model sent: the comparison is unresolved, whatever a candidate says
        Fidelity::Normalized => return Err("normalized"),
        Fidelity::NotCaptured => return Err("not_captured"),
    }
    let text = match &call.arguments_text {
        Some(text) => {
            let text = text.trim_matches([' ', '\t', '\n', '\r']);
            // only what is one JSON value may stand inside another
            serde_json::from_str::<&RawValue>(text).map_err(|_| "arguments_not_json")?;
            text
        }
        None => call.arguments.get().unwrap_or_default(),
    };
    if text.starts_with('{') { Ok(text) } else { Err("arguments_not_object") }
}
