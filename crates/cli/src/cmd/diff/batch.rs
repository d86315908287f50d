//! `lastcall diff --batch FILE`: a question a line, an answer a line, in order. A line that cannot be answered gets its
//! number and the reason, and hides no other.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use lastcall_contract::{DefinitionErrorKind, strict_json};
use lastcall_diff::{ContractDiff, DiffOptions, Direction, diff_contracts, diff_schemas};
use lastcall_record::lines::LineReader;
use serde_json::{Value, json};

use super::Args;
use super::sides::{What, read, schema_of};
use crate::ui::Exit;

/// Answers every line.
pub fn run(args: &Args, file: &Path) -> anyhow::Result<Exit> {
    let label = file.display().to_string();
    let reader = if label == "-" { LineReader::stdin() } else { LineReader::open(file) };
    let mut reader = reader.with_context(|| format!("cannot read {label}"))?.with_final(true);
    let mut out: Box<dyn std::io::Write> = match &args.out {
        Some(path) => {
            let file =
                std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            Box::new(std::io::BufWriter::new(file))
        }
        None => Box::new(std::io::BufWriter::new(std::io::stdout().lock())),
    };
    let (mut number, mut answered, mut failed, mut unread) = (0u64, 0u64, 0u64, 0u64);
    while let Some(line) = reader.next_line().with_context(|| format!("{label}: line {}", number + 1))? {
        number += 1;
        if line.bytes.iter().all(u8::is_ascii_whitespace) && !line.too_long {
            continue;
        }
        let asked = if line.too_long {
            Err((Value::Null, "longer than a line may be".to_owned()))
        } else {
            answer(args, line.bytes)
        };
        let said = match asked {
            Ok((id, diff)) => {
                answered += 1;
                failed += u64::from(!diff.class.passes());
                json!({
                    "id": id,
                    "class": diff.class,
                    "bump": diff.bump,
                    "proven": diff.proven(),
                    "witness": diff.witness(),
                    "changes": diff.changes,
                })
            }
            Err((id, error)) => {
                unread += 1;
                json!({"id": id, "line": number, "error": error})
            }
        };
        match writeln!(out, "{}", lastcall_report::plain(&said.to_string())) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(141),
            written => written.context("cannot write the answer")?,
        }
    }
    out.flush().context("cannot write the answer")?;
    if answered + unread == 0 {
        bail!("{label}: no line in it; write {{\"id\": …, \"old\": …, \"new\": …}} on each");
    }
    tell!("{answered} answered, {failed} of them not compatible; {unread} lines could not be answered");
    Ok(if failed > 0 {
        Exit::No
    } else if unread > 0 {
        Exit::Usage
    } else {
        Exit::Yes
    })
}

/// The question's id, and the answer or why there is none.
fn answer(args: &Args, line: &[u8]) -> Result<(Value, ContractDiff), (Value, String)> {
    let text = std::str::from_utf8(line).map_err(|e| (Value::Null, format!("not UTF-8: {e}")))?;
    let question = strict_json("this line", text).map_err(|error| match error.kind {
        DefinitionErrorKind::DuplicateKey => {
            // the id alone may still say which question it was
            let lax = serde_json::from_str::<Value>(text).ok().filter(|_| error.pointer != "/id");
            (lax.and_then(|v| v.get("id").cloned()).unwrap_or_default(), error.to_string())
        }
        _ => (Value::Null, error.message),
    })?;
    let id = question.get("id").cloned().unwrap_or_default();
    match compare(args, &question) {
        Ok(diff) => Ok((id, diff)),
        Err(error) => Err((id, format!("{error:#}"))),
    }
}

/// One side: read as a file is; a list has to have one tool.
fn side(question: &Value, key: &str) -> anyhow::Result<What> {
    let Some(value) = question.get(key) else { bail!("no `{key}` in this line") };
    match read(&format!("`{key}`"), &value.to_string())? {
        What::Schema(schema) => Ok(What::Schema(schema)),
        What::Tools { mut tools, .. } => match (tools.pop(), tools.as_slice()) {
            (None, _) => bail!("`{key}` has no tool"),
            (Some(tool), []) => match &tool.contract {
                Ok(_) => Ok(What::Tools { tools: vec![tool], single: true }),
                Err(why) => bail!("{why}"),
            },
            (Some(last), others) => {
                let names: Vec<String> =
                    others.iter().chain([&last]).map(|tool| format!("`{}`", tool.name)).take(12).collect();
                bail!(
                    "`{key}` has {} tools: {}. Ask about one tool a line, or compare the lists as files",
                    others.len() + 1,
                    names.join(", ")
                )
            }
        },
    }
}

fn compare(args: &Args, question: &Value) -> anyhow::Result<ContractDiff> {
    let (old, new) = (side(question, "old")?, side(question, "new")?);
    let options =
        DiffOptions { fills_defaults: args.fills_defaults, seed: args.seed, ..DiffOptions::default() };
    if let (What::Tools { tools: old, .. }, What::Tools { tools: new, .. }) = (&old, &new)
        && let ([old], [new]) = (old.as_slice(), new.as_slice())
        && let (Ok(old), Ok(new)) = (&old.contract, &new.contract)
    {
        return Ok(diff_contracts(old, new, &options)?);
    }
    let direction = Direction::from(args.direction);
    match (schema_of(&old, direction), schema_of(&new, direction)) {
        (Some((old, draft)), Some((new, _))) => Ok(diff_schemas(old, new, draft, direction, &options)?),
        _ => bail!("a tool without a schema of this direction against a bare schema"),
    }
}
