//! Planted calls: made of what a person wrote or of a sample, checked, and committed to the control chain before the first
//! of them goes anywhere.

use lastcall_compare::{Category, PairConfig, PrepareError, PreparedPair, compare};
use lastcall_contract::{Contract, Definition, DefinitionError, Digest, Pick};
use lastcall_event::{Preset, Record, Timestamp, decode};
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::window::{Expect, PlantList, PlantedCall};
use lastcall_ledger::{Ledger, LedgerError, random_hex};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Why nothing is planted.
#[derive(Debug, thiserror::Error)]
pub enum PlantError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A definition in the ledger is not one.
    #[error(transparent)]
    Definition(#[from] Box<DefinitionError>),
    /// The pair.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// What was given.
    #[error("{0}")]
    Given(String),
}

fn says(what: String) -> PlantError {
    PlantError::Given(what)
}

/// Where planted calls come from: a text, and the name of the place it was read from.
#[derive(Clone, Copy)]
pub enum Planted<'a> {
    /// `{"call": …, "expect": …}` a line.
    Calls(&'a str, &'a str),
    /// A call that both contracts accept; faults are made of it by what the pair changes.
    Sample(&'a str, &'a str),
}

/// Calls that are ready to be planted.
pub struct Planting {
    /// Their ids, and what is expected of each.
    pub list: PlantList,
    /// Their records, in the same order.
    pub records: Vec<String>,
}

impl Planting {
    /// Makes calls of what was given, with new ids, and checks that the comparator says of each what is expected. `at` is
    /// their time; none: their own.
    ///
    /// # Errors
    /// There is no call, one cannot be read, or would not come back as expected: that would be a false alarm to come.
    pub fn new(
        ledger: &Ledger,
        pair: &Pair,
        from: Planted<'_>,
        at: Option<Timestamp>,
    ) -> Result<Self, PlantError> {
        let (current, candidate, config) = contracts(ledger, pair)?;
        let prepared = PreparedPair::new(&current, &candidate, &config)?;
        let lines = match from {
            Planted::Calls(text, place) => read_lines(text, place)?,
            Planted::Sample(text, place) => {
                faults(text, place, &current.definition, &candidate.definition, &config)?
            }
        };
        let (mut list, mut records) = (PlantList::default(), Vec::new());
        for (i, mut line) in lines.into_iter().enumerate() {
            let what = format!("call {}", i + 1);
            complete(&mut line, &what, at, pair)?;
            let call_id = format!("call_{}", random_hex(12)?);
            line.call.insert("call_id".to_owned(), json!(call_id));
            let json = Value::Object(line.call).to_string();
            check(&prepared, &json, line.expect, &what)?;
            list.calls.push(PlantedCall { call_id, expect: line.expect });
            records.push(json);
        }
        if list.calls.is_empty() {
            return Err(says("there is no call to plant".to_owned()));
        }
        Ok(Self { list, records })
    }

    /// Commits the ids to the control chain; the entry's number. Nothing else makes a call a planted one.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn commit(&self, ledger: &Ledger, pair: &Pair) -> Result<u64, LedgerError> {
        let bytes = serde_json_canonicalizer::to_vec(&self.list)
            .map_err(|error| LedgerError::Refused(format!("the list of planted calls: {error}")))?;
        let entry = Control::Plant {
            tool_id: pair.tool_id.clone(),
            candidate: pair.candidate.clone(),
            list: ledger.put_object(&bytes)?,
            count: self.list.calls.len() as u64,
        };
        Ok(ledger.append_control(entry)?.0)
    }
}

/// A line of what a person wrote.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    call: Map<String, Value>,
    #[serde(default)]
    expect: Option<Expect>,
}

/// The definitions and the configuration of an observed pair, from the ledger's objects.
///
/// # Errors
/// One of them is missing or altered.
pub fn contracts(ledger: &Ledger, pair: &Pair) -> Result<(Contract, Contract, PairConfig), PlantError> {
    let odd = |what: &str, error: &dyn std::fmt::Display| says(format!("{what} in the ledger: {error}"));
    let contract = |id: &str, digest: &Digest| -> Result<Contract, PlantError> {
        let text = String::from_utf8(ledger.object(digest)?).map_err(|error| odd(id, &error))?;
        let named = Pick { name: Some(id.split('@').next().unwrap_or(id)), source: None };
        let definition = Definition::from_text(id, &text, Pick::default())
            .or_else(|error| Definition::from_text(id, &text, named).map_err(|_| error))
            .map_err(Box::new)?;
        Ok(Contract::new(id, definition))
    };
    let config = serde_json::from_slice(&ledger.object(&pair.config_digest)?)
        .map_err(|error| odd("the pair's configuration", &error))?;
    Ok((
        contract(&pair.current, &pair.current_digest)?,
        contract(&pair.candidate, &pair.candidate_digest)?,
        config,
    ))
}

fn read_lines(text: &str, place: &str) -> Result<Vec<Line>, PlantError> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    lines
        .map(|(i, l)| {
            serde_json::from_str(l).map_err(|error| {
                says(format!("{place}:{}: not a {{\"call\": …, \"expect\": …}} line: {error}", i + 1))
            })
        })
        .collect()
}

/// Fills in what a record needs and a person need not write: type, version, tool, contract, outcome, time.
fn complete(line: &mut Line, what: &str, at: Option<Timestamp>, pair: &Pair) -> Result<(), PlantError> {
    let call = &mut line.call;
    let kind = if call.contains_key("candidates") { "mirrored_call" } else { "tool_call" };
    call.entry("type").or_insert_with(|| json!(kind));
    call.entry("schema_version").or_insert_with(|| json!(1));
    call.entry("outcome").or_insert_with(|| json!({"status": "ok"}));
    for (key, wanted) in [("tool_id", &pair.tool_id), ("contract_id", &pair.current)] {
        let found = call.entry(key).or_insert_with(|| json!(wanted));
        if *found != json!(wanted) {
            return Err(says(format!(
                "{what}: its `{key}` is {found}, the pair's is \"{wanted}\"; it would not be compared"
            )));
        }
    }
    match (at, call.contains_key("ts")) {
        (Some(at), _) => {
            call.insert("ts".to_owned(), json!(at));
        }
        (None, true) => {}
        (None, false) => {
            return Err(says(format!(
                "{what} has no `ts`, and a simulated ledger has no now; say --at TIME"
            )));
        }
    }
    Ok(())
}

fn check(prepared: &PreparedPair, json: &str, expect: Option<Expect>, what: &str) -> Result<(), PlantError> {
    let decoded = decode(json.as_bytes(), Preset::Native)
        .map_err(|error| says(format!("{what} is no record: {}", error.message)))?;
    let Record::Call(call) = decoded.record else { return Err(says(format!("{what} is no call"))) };
    let Some(expect) = expect else { return Ok(()) };
    let comparison = compare(prepared, &call);
    let found = comparison
        .discrepancies
        .iter()
        .any(|d| d.category == expect.category && d.severity == expect.severity);
    if found {
        return Ok(());
    }
    let said: Vec<String> =
        comparison.discrepancies.iter().map(|d| format!("{}/{}", d.category, d.severity)).collect();
    let said = if said.is_empty() { comparison.result.as_str().to_owned() } else { said.join(", ") };
    Err(says(format!(
        "{what} is expected to be {}/{}, and this build finds {said}; correct `expect` or the call",
        expect.category, expect.severity
    )))
}

/// Faults made of a sample: what the two schemas say differs at the top level decides, not the comparator. Each is
/// the sample with one argument changed.
fn faults(
    text: &str,
    place: &str,
    old: &Definition,
    new: &Definition,
    config: &PairConfig,
) -> Result<Vec<Line>, PlantError> {
    let sample: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| says(format!("{place}: not one call as a JSON object: {error}")))?;
    let Some(arguments) = sample.get("arguments").and_then(Value::as_object) else {
        return Err(says(format!("{place}: `arguments` has to be an object")));
    };
    let severity =
        |c: Category| config.map.severities.get(&c).copied().unwrap_or_else(|| c.default_severity());
    let mut out = Vec::new();
    let mut fault = |category: Category, arguments: Map<String, Value>| {
        let mut call = sample.clone();
        call.insert("arguments".to_owned(), Value::Object(arguments));
        out.push(Line { call, expect: Some(Expect { category, severity: severity(category) }) });
    };
    let required = |d: &Definition, name: &str| {
        let list = d.input_schema.get("required").and_then(Value::as_array);
        list.is_some_and(|l| l.iter().any(|n| n == name))
    };
    let empty = Map::new();
    let properties = |d: &Definition| d.input_schema.get("properties").and_then(Value::as_object).cloned();
    let (was, is) = (properties(old), properties(new));
    let (was, is) = (was.as_ref().unwrap_or(&empty), is.as_ref().unwrap_or(&empty));
    for (name, schema) in is {
        if required(new, name) && !required(old, name) && was.contains_key(name) {
            let mut less = arguments.clone();
            less.remove(name);
            fault(Category::RequiredAdded, less);
        }
        if required(new, name) && !was.contains_key(name) {
            fault(Category::RequiredAdded, without(arguments, name));
        }
        let Some(before) = was.get(name) else { continue };
        let gone = values(before).into_iter().find(|v| !values(schema).contains(v));
        if let (Some(gone), false) = (gone, values(schema).is_empty()) {
            fault(Category::EnumValueRemoved, with(arguments, name, gone));
        }
        if let (Some(a), Some(b)) = (kind(before), kind(schema))
            && a != b
            && (a, b) != ("integer", "number")
            && let Some(value) = value_of(a)
        {
            fault(Category::TypeChanged, with(arguments, name, value));
        }
    }
    if out.is_empty() {
        return Err(says(format!(
            "no fault can be made of {place}: the pair requires no new argument and changes no type or enum at the top \
             level; write them by hand with --calls"
        )));
    }
    Ok(out)
}

fn with(arguments: &Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    let mut out = arguments.clone();
    out.insert(name.to_owned(), value);
    out
}

fn without(arguments: &Map<String, Value>, name: &str) -> Map<String, Value> {
    let mut out = arguments.clone();
    out.remove(name);
    out
}

/// The values of an enum.
fn values(schema: &Value) -> Vec<Value> {
    schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The one type of a schema.
fn kind(schema: &Value) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

/// A value of a type that no other type accepts.
fn value_of(kind: &str) -> Option<Value> {
    Some(match kind {
        "string" => json!("planted"),
        "integer" => json!(7),
        "number" => json!(7.5),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => return None,
    })
}
