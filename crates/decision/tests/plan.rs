//! Reading `release-policy.yaml`: tier values, refusals with their place, the digest.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use lastcall_decision::{CeilingBasis, Plan, Ratio, Tier};

fn read(text: &str) -> Result<Plan, String> {
    Plan::parse(text, "release-policy.yaml").map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    read(text).unwrap_err()
}

/// The table of decision.md section 1, typed in again.
#[test]
fn tiers_have_the_values_of_the_table() {
    let table = [
        (Tier::T1, "0.02", 5, 28, 400, 1, 150),
        (Tier::T2, "0.01", 7, 28, 800, 1, 300),
        (Tier::T3, "0.005", 7, 42, 1600, 2, 600),
        (Tier::T4, "0.002", 10, 56, 4000, 3, 1500),
        (Tier::T5, "0.001", 14, 84, 8000, 3, 3000),
    ];
    for (tier, b, counted, max, calls, z_days, z_calls) in table {
        let plan = read(&format!("burn_in: {{tier: {}, profile: article}}", tier.as_str())).unwrap();
        assert_eq!(plan.ceiling, Ratio::parse(b).unwrap());
        assert_eq!((plan.counted_days, plan.max_scored_days, plan.min_calls), (counted, max, calls));
        assert_eq!((plan.final_block_free.days, plan.final_block_free.calls), (z_days, z_calls));
        assert_eq!((plan.decay.days, plan.decay.fraction), (3, Ratio::parse("0.5").unwrap()));
        assert!(plan.overrides().is_empty());
    }
}

#[test]
fn the_suggestion_table() {
    let rows = [("read", [1, 2, 3, 4]), ("write", [2, 3, 4, 5]), ("send", [3, 4, 5, 5])];
    for (side_effect, tiers) in rows {
        for (risk, tier) in ["low", "medium", "high", "critical"].into_iter().zip(tiers) {
            assert_eq!(Tier::suggest(side_effect, risk).as_str(), format!("T{tier}"), "{side_effect} {risk}");
        }
    }
    assert_eq!(Tier::suggest("", ""), Tier::T5);
}

const WHOLE: &str = "\
burn_in:
  tier: T3
  profile: article
  ceiling: 0.0075
  ceiling_basis: window
  counted_days: 5
  max_scored_days: 14
  min_calls: 900
  final_block_free: {days: 1, calls: 300}
  decay: {days: 2, fraction: 0.25}
  risk_limit: 0.05
  place_ceiling: 0.05
  min_outcomes: 10
  max_unstable: 0.02
  max_both_rejected: 0.05
  required: {agents: [a], cohorts: [], dates: [2026-06-30]}
  calendar: every_day
  cohort: null
  sampling: {rate: 1.0, by: session}
  lateness: 90m
  fallback: none
  confirmation_days: 3
in_flight:
  longest_retry_delay: 24h
  oldest_supported_snapshot: 30d
  rollback_window: 14d
";

#[test]
fn every_key_is_read() {
    let plan = read(WHOLE).unwrap();
    assert_eq!(plan.ceiling_basis, CeilingBasis::Window);
    assert_eq!(plan.decay_ceiling().to_string(), "0.001875");
    assert_eq!(plan.lateness.ms, 90 * 60_000);
    assert_eq!(plan.in_flight.longest_retry_delay.to_string(), "1d");
    assert_eq!(plan.required.dates[0].to_string(), "2026-06-30");
    let overrides: Vec<String> = plan.overrides().into_keys().collect();
    let set = ["ceiling", "ceiling_basis", "counted_days", "decay", "final_block_free", "lateness"];
    assert_eq!(overrides[..6], set);
}

#[test]
fn the_digest_is_of_the_resolved_plan() {
    let short = read("burn_in: {tier: T2, profile: article}").unwrap();
    let long =
        read("burn_in:\n  profile: article\n  ceiling: 1.0e-2\n  min_calls: 800\n  lateness: 60m\n").unwrap();
    assert_eq!(short.digest().unwrap(), long.digest().unwrap());
    let other = read("burn_in: {tier: T2, profile: article, min_calls: 801}").unwrap();
    assert_ne!(short.digest().unwrap(), other.digest().unwrap());
    let back = Plan::from_object(&short.canonical().unwrap()).unwrap();
    assert_eq!(back, short);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let said = [
        (
            "burn_in:\n  profile: article\n  celing: 0.02\n",
            "release-policy.yaml:3:3: unknown key `celing`; did you mean `ceiling`?",
        ),
        (
            "burn_in:\n  tier: T9\n",
            "release-policy.yaml:2:9: unknown value `T9`; known are `T1`, `T2`, `T3`, `T4`, `T5`",
        ),
        (
            "burn_in:\n  profile: article\n  ceiling: 1.5\n",
            "release-policy.yaml:3:12: `ceiling` is 1.5; it has to be above 0 and below 1, with at most 6 decimals (0.01 is 1 %)",
        ),
        (
            "burn_in:\n  profile: article\n  counted_days: 30\n",
            "release-policy.yaml:3:17: `counted_days` is 30 and `max_scored_days` 28: the counted days could never be \
             reached; raise `max_scored_days`",
        ),
        (
            "burn_in:\n  profile: article\n  decay: {days: 9}\n",
            "release-policy.yaml:3:17: `decay.days` is 9 and `counted_days` 7: decay looks at the last of the counted \
             days; lower `decay.days`",
        ),
        (
            "in_flight: {}\n",
            "release-policy.yaml: there is no `burn_in:`; the shortest plan is `burn_in: {tier: T2, profile: article}`",
        ),
    ];
    for (text, message) in said {
        assert_eq!(refused(text), message);
    }
    for text in [
        "burn_in: {profile: article, ceiling: 0}",
        "burn_in: {profile: article, ceiling: -0.01}",
        "burn_in: {profile: article, ceiling: .nan}",
        "burn_in: {profile: article, decay: {fraction: 0}}",
        "burn_in: {profile: article, counted_days: 0}",
        "burn_in: {profile: article, lateness: soon}",
        "burn_in: {profile: article, required: {dates: [tomorrow]}}",
        "burn_in: {profile: article, ceiling: 0.01, ceiling: 0.02}",
        "burn_in: [",
        "",
        "- burn_in",
    ] {
        let message = refused(text);
        assert!(message.starts_with("release-policy.yaml"), "{text}: {message}");
        assert!(!message.contains('\n'), "{text}: {message}");
    }
}

#[test]
fn strict_is_refused_whether_written_or_left_out() {
    let written = refused("burn_in:\n  tier: T2\n  profile: strict\n");
    assert!(
        written.starts_with("release-policy.yaml:3:12: `profile: strict` is not in this build"),
        "{written}"
    );
    let left_out = refused("burn_in: {tier: T2}");
    assert!(left_out.contains("(the default, where `profile` is left out)"), "{left_out}");
    let window = refused("burn_in:\n  ceiling_basis: window\n");
    assert!(window.starts_with("release-policy.yaml:2:18: `ceiling_basis: window` belongs to"), "{window}");
}
