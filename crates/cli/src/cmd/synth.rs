//! `lastcall synth DEFINITION`: calls that cover a contract, for `lastcall try` and `lastcall run`.

use std::path::PathBuf;

use anyhow::bail;
use lastcall_contract::Contract;
use lastcall_diff::synth::{Synthesis, synthesize_definition};
use lastcall_event::{Decoded, Preset, Record, Timestamp, decode};
use lastcall_report::plain;
use serde_json::{Value, json};

use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall synth tool.json\n  \
    lastcall synth tools-list.json --tool search_issues --goals\n  \
    lastcall synth old.json | lastcall try old.json new.json -\n  \
    lastcall synth refund.create_request@2.0.0 --registry agent-tools --format events\n\n\
    Exit codes: 0 every goal is covered, 2 could not run, 3 some goal is not reached (its reason is printed).")]
pub struct Args {
    /// A definition (MCP, OpenAI, Anthropic, Gemini, a JSON Schema), or tool_id@version of a registry.
    definition: String,
    /// Which tool, in a file of several.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Where tool_id@version is looked up.
    #[arg(long, value_name = "DIR", env = "LASTCALL_REGISTRY", default_value = "agent-tools")]
    registry: PathBuf,
    /// Another seed gives other values; the same one gives the same calls.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// `jsonl`: a call and what it covers a line. `json`: one document with the goals. `events`: native tool_call records.
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// Time of the first event; each further one is a millisecond later.
    #[arg(long, value_name = "TIME", default_value = "2000-01-01T00:00:00Z")]
    ts: String,
    /// List the goals instead, each with the calls that cover it, or why none does.
    #[arg(long)]
    goals: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Jsonl,
    Json,
    Events,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let contract =
        super::try_calls::contract(&args.definition, args.tool.as_deref(), &args.registry, "synth")?;
    let definition = &contract.definition;
    let made = synthesize_definition(definition, args.seed)?;
    if made.calls.is_empty() && made.unreached.is_empty() {
        bail!("{}: no valid call was found; `lastcall lint` may say why", definition.name);
    }
    if args.goals {
        print!("{}", goals(&made, args.format)?);
    } else {
        match args.format {
            Format::Jsonl => {
                for call in &made.calls {
                    let covers: Vec<String> =
                        call.covers.iter().map(|g| made.goals[*g].to_string()).collect();
                    let line =
                        json!({"name": definition.name, "arguments": call.arguments, "covers": covers});
                    println!("{}", plain(&line.to_string()));
                }
            }
            Format::Json => {
                print!("{}", lastcall_report::to_json(&document(&contract, &made, args.seed))?)
            }
            Format::Events => events(&contract, &made, &args)?,
        }
    }
    let covered = made.goals.len() - made.unreached.len();
    let calls = match made.calls.len() {
        1 => "1 call covers".to_owned(),
        n => format!("{n} calls cover"),
    };
    tell!("{}: {calls} {covered} of {} goals", definition.name, made.goals.len());
    for unreached in &made.unreached {
        tell!("  not reached: {}: {}", made.goals[unreached.goal], unreached.reason);
    }
    if made.cut {
        tell!("  the schema is so large that not every goal was listed or tried");
    }
    Ok(if made.unreached.is_empty() && !made.cut { Exit::Yes } else { Exit::Insufficient })
}

/// The goals as a table, or as JSON.
fn goals(made: &Synthesis, format: Format) -> anyhow::Result<String> {
    let by = |goal: usize| -> Vec<usize> {
        made.calls
            .iter()
            .enumerate()
            .filter(|(_, c)| c.covers.binary_search(&goal).is_ok())
            .map(|(n, _)| n + 1)
            .collect()
    };
    let reason = |goal: usize| made.unreached.iter().find(|u| u.goal == goal).map(|u| u.reason.as_str());
    let mut out = String::new();
    for (n, goal) in made.goals.iter().enumerate() {
        if format == Format::Jsonl {
            let calls: Vec<String> = by(n).iter().take(5).map(ToString::to_string).collect();
            let shown = match reason(n) {
                Some(reason) => format!("not reached: {reason}"),
                None => format!("call {}{}", calls.join(", "), if by(n).len() > 5 { " …" } else { "" }),
            };
            out.push_str(&format!("{}  {}\n", plain(&goal.to_string()), plain(&shown)));
        } else {
            let line = json!({"pointer": goal.pointer, "kind": goal.kind, "detail": goal.detail,
                "location": goal.location, "calls": by(n), "unreached": reason(n)});
            out.push_str(&format!("{}\n", plain(&line.to_string())));
        }
    }
    Ok(out)
}

fn document(contract: &Contract, made: &Synthesis, seed: u64) -> Value {
    let calls: Vec<Value> =
        made.calls.iter().map(|c| json!({"arguments": c.arguments, "covers": c.covers})).collect();
    let unreached: Vec<Value> =
        made.unreached.iter().map(|u| json!({"goal": u.goal, "reason": u.reason})).collect();
    json!({"tool": contract.definition.name, "digest": contract.digest, "seed": seed, "goals": made.goals,
        "calls": calls, "unreached": unreached, "cut": made.cut})
}

/// Native records, checked by the decoder that will read them.
fn events(contract: &Contract, made: &Synthesis, args: &Args) -> anyhow::Result<()> {
    let Some(start) = Timestamp::parse(&args.ts) else {
        bail!("--ts {}: not a time; write it as 2026-06-01T00:00:00Z", args.ts);
    };
    let registered = args.definition.split_once('@');
    let (tool, id) = match registered {
        Some((tool, _)) if contract.id == args.definition => (tool.to_owned(), contract.id.clone()),
        _ => (contract.definition.name.clone(), format!("{}@synth", contract.definition.name)),
    };
    for (n, call) in made.calls.iter().enumerate() {
        let at = Timestamp(start.0 + n as i64);
        let line = json!({
            "type": "tool_call", "schema_version": 1, "call_id": format!("synth/{tool}/{}/{}", args.seed, n + 1),
            "ts": at, "tool_id": tool, "contract_id": id, "arguments": call.arguments, "fidelity": "raw",
            "outcome": {"status": "unknown"}, "envelope": {"agent_id": "lastcall-synth"}
        })
        .to_string();
        match decode(line.as_bytes(), Preset::Native) {
            Ok(Decoded { record: Record::Call(_), .. }) => println!("{}", plain(&line)),
            Ok(_) => bail!("call {} is no call record", n + 1),
            Err(error) => bail!("call {}: {}", n + 1, error.message),
        }
    }
    Ok(())
}
