//! The 120 comparison cases: computed by hand, each with its reason. They share no code with the comparator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use lastcall_compare::{AdapterMap, Normalization, PairConfig, PreparedPair, SeverityMap, compare};
use lastcall_contract::{Contract, Definition};
use lastcall_diff::Rename;
use lastcall_event::{Preset, Record, decode};
use serde_json::Value;

fn contract(value: &Value) -> Contract {
    let mut definition = value.clone();
    let id = definition.as_object_mut().unwrap().remove("contract_id").unwrap();
    Contract::new(id.as_str().unwrap(), Definition::from_value(&definition).expect("the definition reads"))
}

fn part<T: serde::de::DeserializeOwned + Default>(case: &Value, key: &str) -> T {
    case.get(key).map_or_else(T::default, |v| serde_json::from_value(v.clone()).unwrap())
}

fn config(case: &Value) -> PairConfig {
    PairConfig {
        renames: part::<Vec<Rename>>(case, "renames"),
        normalization: part::<Normalization>(case, "normalization"),
        map: part::<SeverityMap>(case, "map"),
        adapter: case.get("adapter").map(|_| part::<AdapterMap>(case, "adapter")),
    }
}

#[test]
fn every_case() {
    let text = include_str!("cases/comparison-cases.jsonl");
    let (mut passed, mut failed) = (0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let pair =
            PreparedPair::new(&contract(&case["current"]), &contract(&case["candidate"]), &config(&case))
                .expect("the pair prepares");
        // the call as it stands in the file: its number literals are part of the case
        #[derive(serde::Deserialize)]
        struct Call<'a> {
            #[serde(borrow)]
            call: &'a serde_json::value::RawValue,
        }
        let raw: Call<'_> = serde_json::from_str(line).unwrap();
        let decoded = decode(raw.call.get().as_bytes(), Preset::Native).expect("the call decodes");
        let Record::Call(call) = decoded.record else { panic!("{id} is no call") };
        let got = compare(&pair, &call);
        let mut seen: Vec<(String, String, String, bool)> = got
            .discrepancies
            .iter()
            .map(|d| (d.field.clone(), d.category.to_string(), d.severity.to_string(), d.refused))
            .collect();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let mut want: Vec<_> = case["expect"]["discrepancies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| {
                (
                    text(&d["field"]),
                    text(&d["category"]),
                    text(&d["severity"]),
                    d["refused"].as_bool().unwrap(),
                )
            })
            .collect();
        seen.sort();
        want.sort();
        let result = got.result.as_str();
        let reason = got.reason.map(|r| r.as_str());
        let want_result = case["expect"]["result"].as_str().unwrap();
        let want_reason = case["expect"]["reason"].as_str();
        if result == want_result && reason == want_reason && seen == want {
            passed += 1;
        } else {
            failed.push(format!(
                "{id}: {}\n  want {want_result} {want_reason:?} {want:?}\n  got  {result} {reason:?} {seen:?}",
                case["description"].as_str().unwrap()
            ));
        }
        for near in case["near_miss"].as_array().into_iter().flatten() {
            assert!(!seen.iter().any(|d| d.1 == near.as_str().unwrap()), "{id}: {near} is a near miss");
        }
        // the same record compared twice gives the same
        assert_eq!(compare(&pair, &call), got, "{id} is not deterministic");
    }
    println!("comparison cases: {passed} of {} as expected", passed + failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(passed, 120);
}
