//! What the seed feeds in.

use lastcall_event::Timestamp;
use lastcall_tests::chance::Rng;

#[derive(Clone, Debug)]
pub struct Call {
    pub id: u64,
    pub tool: &'static str,
    pub contract: Option<&'static str>,
    pub day: i32,
    pub cohort: Option<&'static str>,
    pub agent: Option<&'static str>,
    pub session: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Call(Call),
    Dead,
    Blank,
    Clock,
    Coverage,
    Loss,
}

#[derive(Clone, Debug)]
pub struct Made {
    pub offset: i64,
    pub next: i64,
    pub bytes: Vec<u8>,
    pub kind: Kind,
}

impl Made {
    pub fn call(&self) -> Option<&Call> {
        match &self.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }
}

pub const FIRST_DAY: i32 = 20_000;
pub const TOOLS: [&str; 3] = ["refund", "search", "send"];

fn time(ms: i64) -> String {
    Timestamp(ms).to_string()
}

pub fn make_records(rng: &mut Rng, dense: bool) -> Vec<Made> {
    let count = 3 + rng.below(22);
    let mut offset = 0i64;
    let mut clock = i64::from(FIRST_DAY) * 86_400_000;
    let mut calls: Vec<(Kind, String)> = Vec::new();
    (0..count)
        .map(|id| {
            let (kind, text) = match rng.below(20) {
                0 => (Kind::Blank, String::new()),
                1 => (Kind::Dead, "{\"type\":\"tool_call\"".to_owned()),
                2 => (Kind::Dead, "[1,2]".to_owned()),
                3 => {
                    clock += rng.below(100_000_000) as i64;
                    (Kind::Clock, format!(r#"{{"type":"clock","schema_version":1,"ts":"{}"}}"#, time(clock)))
                }
                4 => (
                    Kind::Coverage,
                    format!(
                        r#"{{"type":"coverage","schema_version":1,"tool_id":"refund","hour":"{}","count":3}}"#,
                        time(clock)
                    ),
                ),
                5 => (
                    Kind::Loss,
                    format!(
                        r#"{{"type":"loss","schema_version":1,"count":2,"interval":{{"from":"{0}","to":"{0}"}}}}"#,
                        time(clock)
                    ),
                ),
                // The same call once more.
                6 if !calls.is_empty() => rng.pick(&calls).clone(),
                _ => {
                    calls.push(make_call(rng, id));
                    calls.last().cloned().unwrap()
                }
            };
            let at = offset;
            let next = if dense { at + text.len() as i64 + 1 } else { at + 1 };
            offset = if dense { next } else { next + rng.below(3) as i64 };
            Made { offset: at, next, bytes: text.into_bytes(), kind }
        })
        .collect()
}

fn make_call(rng: &mut Rng, id: u64) -> (Kind, String) {
    let tool = *rng.pick(&TOOLS);
    let contract = *rng.pick(&[None, Some("v1"), Some("v1"), Some("v9")]);
    let day = FIRST_DAY + rng.below(3) as i32;
    let cohort = *rng.pick(&[None, Some("eu"), Some("us")]);
    let agent = *rng.pick(&[None, Some("a1")]);
    let session = Some(rng.below(6)).filter(|session| *session < 5);
    let mut envelope = serde_json::Map::new();
    for (key, value) in [("cohort", cohort), ("agent_id", agent)] {
        if let Some(value) = value {
            envelope.insert(key.to_owned(), value.into());
        }
    }
    if let Some(session) = session {
        envelope.insert("session_id".to_owned(), format!("s{session}").into());
    }
    let mut call = serde_json::json!({
        "type": "tool_call", "schema_version": 1, "call_id": format!("c{id}"),
        "ts": time(i64::from(day) * 86_400_000 + rng.below(86_400_000) as i64),
        "tool_id": tool, "arguments": {"id": id}, "outcome": {"status": "ok"}, "envelope": envelope,
    });
    if let Some(version) = contract {
        call["contract_id"] = format!("{tool}@{version}").into();
    }
    (Kind::Call(Call { id, tool, contract, day, cohort, agent, session }), call.to_string())
}
