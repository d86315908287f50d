//! The plan: `release-policy.yaml`, read, checked and resolved with its tier's values. Never holds a default that
//! the resolved plan does not show.

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use lastcall_event::Day;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::near::nearest;
use crate::ratio::Ratio;

/// A set of starting values, from T1 (relaxed) to T5 (strictest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Tier {
    T1,
    T2,
    T3,
    T4,
    T5,
}

/// Which rule judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// The five checks of the article.
    Article,
    /// Those and evidence that holds however often one looks. Not in this build.
    Strict,
}

/// What the ceiling is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingBasis {
    /// Each day's disagreements against B times that day's compared calls: a daily rate.
    Day,
    /// Each day's disagreements against B times the compared calls of all closed scored days.
    Window,
}

/// Which days of the calendar have to carry calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Calendar {
    /// Every day.
    EveryDay,
}

/// What may stand in for traffic that production itself does not have. Used by profile strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// Nothing.
    None,
    /// Contract cases and a proven diff.
    ContractTests,
}

/// What is sampled as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleBy {
    /// A session's calls are in or out together.
    Session,
}

/// Z: the last days without a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinalBlockFree {
    /// Days. Profile article looks at the final day alone.
    pub days: u32,
    /// Calls back to which strict extends the days.
    pub calls: u64,
}

/// Decay: the last days stay below a fraction of the ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decay {
    /// How many of the last days.
    pub days: u32,
    /// Fraction of B.
    pub fraction: Ratio,
}

/// Who and what has to have been seen. Used by profile strict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Required {
    /// Agents.
    pub agents: Vec<String>,
    /// Cohorts.
    pub cohorts: Vec<String>,
    /// UTC days.
    #[schemars(with = "Vec<String>")]
    pub dates: Vec<Day>,
}

/// Which calls the mirror takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// Share of the calls, 0 to 1.
    pub rate: Ratio,
    /// What is sampled as a whole.
    pub by: SampleBy,
}

/// A length of time: a whole number and `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Milliseconds.
    pub ms: i64,
}

impl Span {
    /// Reads `90s`, `15m`, `24h` or `30d`; at most 10,000 days.
    pub fn parse(text: &str) -> Option<Self> {
        let unit = text.chars().next_back()?;
        let factor = match unit {
            's' => 1_000i64,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return None,
        };
        let count: u32 = text.strip_suffix(unit)?.parse().ok()?;
        let ms = factor.checked_mul(i64::from(count))?;
        (ms <= 10_000 * 86_400_000).then_some(Self { ms })
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (factor, unit) in [(86_400_000i64, 'd'), (3_600_000, 'h'), (60_000, 'm')] {
            if self.ms != 0 && self.ms % factor == 0 {
                return write!(f, "{}{unit}", self.ms / factor);
            }
        }
        write!(f, "{}s", self.ms / 1_000)
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "`{text}` is not a length of time; write 90s, 15m, 24h or 30d"
            ))
        })
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+[smhd]$" })
    }
}

/// What switching the old version off has to wait for. Used by the questions `retire` and `delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// The longest time after which a call may be tried again.
    pub longest_retry_delay: Span,
    /// The oldest snapshot that may still be restored.
    pub oldest_supported_snapshot: Span,
    /// How long a rollback must stay possible.
    pub rollback_window: Span,
}

/// The rule of one window, with every value resolved. Its canonical JSON is the plan's object in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Where the values come from that the file does not set.
    pub tier: Tier,
    /// Which rule judges.
    pub profile: Profile,
    /// B.
    pub ceiling: Ratio,
    /// What B is held against.
    pub ceiling_basis: CeilingBasis,
    /// The trailing days that the daily checks look at.
    pub counted_days: u32,
    /// Days after this many are not scored.
    pub max_scored_days: u32,
    /// Compared calls over the scored days.
    pub min_calls: u64,
    /// Z.
    pub final_block_free: FinalBlockFree,
    /// Decay.
    pub decay: Decay,
    /// alpha. Used by profile strict.
    pub risk_limit: Ratio,
    /// Ceiling at each changed place, agent and cohort. Used by profile strict.
    pub place_ceiling: Ratio,
    /// Calls whose outcome was observed on both sides. Used by profile strict.
    pub min_outcomes: u64,
    /// Bound on calls on which current differs from itself. Used by profile strict.
    pub max_unstable: Ratio,
    /// Bound on calls that both refuse, a day. Used by profile strict.
    pub max_both_rejected: Ratio,
    /// Who and what has to have been seen. Used by profile strict.
    pub required: Required,
    /// Which days have to carry calls.
    pub calendar: Calendar,
    /// Only this cohort's calls count.
    pub cohort: Option<String>,
    /// Which calls the mirror takes.
    pub sampling: Sampling,
    /// How long after its end a day stays open.
    pub lateness: Span,
    /// What may stand in for traffic. Used by profile strict.
    pub fallback: Fallback,
    /// Days of confirmation after the cutover.
    pub confirmation_days: u32,
    /// What switching off has to wait for.
    pub in_flight: InFlight,
}

/// Why a plan was refused: where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct PlanError {
    /// `file:line:column`, or the file alone.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    burn_in: Option<RawPlan>,
    in_flight: Option<RawInFlight>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    tier: Option<Tier>,
    profile: Option<Spanned<Profile>>,
    ceiling: Option<Spanned<Ratio>>,
    ceiling_basis: Option<Spanned<CeilingBasis>>,
    counted_days: Option<Spanned<u32>>,
    max_scored_days: Option<Spanned<u32>>,
    min_calls: Option<Spanned<u64>>,
    final_block_free: Option<RawFinal>,
    decay: Option<RawDecay>,
    risk_limit: Option<Spanned<Ratio>>,
    place_ceiling: Option<Spanned<Ratio>>,
    min_outcomes: Option<u64>,
    max_unstable: Option<Spanned<Ratio>>,
    max_both_rejected: Option<Spanned<Ratio>>,
    required: Option<RawRequired>,
    calendar: Option<Calendar>,
    cohort: Option<String>,
    sampling: Option<RawSampling>,
    lateness: Option<Span>,
    fallback: Option<Fallback>,
    confirmation_days: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawFinal {
    days: Option<Spanned<u32>>,
    calls: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawDecay {
    days: Option<Spanned<u32>>,
    fraction: Option<Spanned<Ratio>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawRequired {
    #[serde(default)]
    agents: Vec<String>,
    #[serde(default)]
    cohorts: Vec<String>,
    #[serde(default)]
    dates: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawSampling {
    rate: Option<Spanned<Ratio>>,
    by: Option<SampleBy>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawInFlight {
    longest_retry_delay: Option<Span>,
    oldest_supported_snapshot: Option<Span>,
    rollback_window: Option<Span>,
}

/// Names the place of what is wrong in one file.
struct Judge<'a> {
    file: &'a str,
}

impl Judge<'_> {
    fn refuse<T, V>(&self, at: Option<&Spanned<V>>, message: impl Into<String>) -> Result<T, PlanError> {
        let place = match at {
            Some(at) => format!("{}:{}:{}", self.file, at.referenced.line(), at.referenced.column()),
            None => self.file.to_owned(),
        };
        Err(PlanError { place, message: message.into() })
    }

    /// The set value, else the tier's; refused unless it lies in its range.
    fn take<V: Copy + std::fmt::Display>(
        &self,
        set: Option<&Spanned<V>>,
        tier: V,
        key: &str,
        fits: impl Fn(V) -> bool,
        range: &str,
    ) -> Result<V, PlanError> {
        let value = set.map_or(tier, |s| s.value);
        if fits(value) {
            return Ok(value);
        }
        self.refuse(set, format!("`{key}` is {value}; it has to be {range}"))
    }
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 5] = [Self::T1, Self::T2, Self::T3, Self::T4, Self::T5];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::T1 => "T1",
            Self::T2 => "T2",
            Self::T3 => "T3",
            Self::T4 => "T4",
            Self::T5 => "T5",
        }
    }

    /// The tier's values (decision.md section 1): B in thousandths, counted days, max scored days, min calls, Z.
    fn values(self) -> (u64, u32, u32, u64, u32, u64) {
        match self {
            Self::T1 => (20, 5, 28, 400, 1, 150),
            Self::T2 => (10, 7, 28, 800, 1, 300),
            Self::T3 => (5, 7, 42, 1_600, 2, 600),
            Self::T4 => (2, 10, 56, 4_000, 3, 1_500),
            Self::T5 => (1, 14, 84, 8_000, 3, 3_000),
        }
    }

    /// A starting tier by side effect (`read`, `write`, `send`) and risk (`low` to `critical`). What is unknown is
    /// taken for the strictest.
    pub fn suggest(side_effect: &str, risk_level: &str) -> Self {
        let base = match side_effect {
            "read" => 0,
            "write" => 1,
            _ => 2,
        };
        let risk = match risk_level {
            "low" => 0,
            "medium" => 1,
            "high" => 2,
            _ => 3,
        };
        Self::ALL.get(base + risk).copied().unwrap_or(Self::T5)
    }
}

fn thousandths(n: u64) -> Ratio {
    // Three decimals and few digits: always a ratio.
    Ratio::new(n, 3).unwrap_or_else(Ratio::zero)
}

impl Plan {
    /// The tier's own plan under profile article.
    pub fn of_tier(tier: Tier) -> Self {
        let (ceiling, counted_days, max_scored_days, min_calls, z_days, z_calls) = tier.values();
        let days = |n: i64| Span { ms: n * 86_400_000 };
        Self {
            tier,
            profile: Profile::Article,
            ceiling: thousandths(ceiling),
            ceiling_basis: CeilingBasis::Day,
            counted_days,
            max_scored_days,
            min_calls,
            final_block_free: FinalBlockFree { days: z_days, calls: z_calls },
            decay: Decay { days: 3, fraction: thousandths(500) },
            risk_limit: thousandths(50),
            place_ceiling: thousandths(50),
            min_outcomes: 0,
            max_unstable: thousandths(20),
            max_both_rejected: thousandths(50),
            required: Required::default(),
            calendar: Calendar::EveryDay,
            cohort: None,
            sampling: Sampling { rate: thousandths(1_000), by: SampleBy::Session },
            lateness: Span { ms: 3_600_000 },
            fallback: Fallback::None,
            confirmation_days: 3,
            in_flight: InFlight {
                longest_retry_delay: days(1),
                oldest_supported_snapshot: days(30),
                rollback_window: days(14),
            },
        }
    }

    /// Reads `release-policy.yaml` (YAML, or JSON). `file` is the name that errors carry.
    ///
    /// # Errors
    /// An unknown key, a value out of its range, a contradiction between two, or a profile that this build lacks.
    pub fn parse(text: &str, file: &str) -> Result<Self, PlanError> {
        let raw: RawPolicy = serde_saphyr::from_str(text).map_err(|error| yaml_error(&error, file))?;
        let Some(burn_in) = raw.burn_in else {
            return Err(PlanError {
                place: file.to_owned(),
                message:
                    "there is no `burn_in:`; the shortest plan is `burn_in: {tier: T2, profile: article}`"
                        .to_owned(),
            });
        };
        let plan = resolve(&burn_in, raw.in_flight.as_ref(), file)?;
        Ok(plan)
    }

    /// The plan as canonical JSON (RFC 8785): the bytes of its object in the ledger.
    ///
    /// # Errors
    /// Never for a plan that was read; the serializer's own error otherwise.
    pub fn canonical(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json_canonicalizer::to_vec(self)
    }

    /// The digest of [`Plan::canonical`].
    ///
    /// # Errors
    /// As [`Plan::canonical`].
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        Ok(Digest::of(&self.canonical()?))
    }

    /// Reads a plan's object from the ledger.
    ///
    /// # Errors
    /// The object is no plan, or one of another build.
    pub fn from_object(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// B times the decay's fraction: what each of the last days has to stay below.
    pub fn decay_ceiling(&self) -> Ratio {
        self.ceiling.times(self.decay.fraction).unwrap_or_else(Ratio::zero)
    }

    /// The values that differ from the tier's, for display: key → value.
    pub fn overrides(&self) -> BTreeMap<String, serde_json::Value> {
        let mut out = BTreeMap::new();
        let (Ok(mine), Ok(tier)) =
            (serde_json::to_value(self), serde_json::to_value(Self::of_tier(self.tier)))
        else {
            return out;
        };
        let (Some(mine), Some(tier)) = (mine.as_object(), tier.as_object()) else { return out };
        for (key, value) in mine {
            if tier.get(key) != Some(value) {
                out.insert(key.clone(), value.clone());
            }
        }
        out
    }
}

fn resolve(raw: &RawPlan, in_flight: Option<&RawInFlight>, file: &str) -> Result<Plan, PlanError> {
    let judge = Judge { file };
    let base = Plan::of_tier(raw.tier.unwrap_or(Tier::T2));
    let profile = raw.profile.as_ref().map_or(Profile::Strict, |p| p.value);
    let basis = raw.ceiling_basis.as_ref().map_or(CeilingBasis::Day, |b| b.value);
    if profile == Profile::Strict {
        if basis == CeilingBasis::Window {
            return judge.refuse(
                raw.ceiling_basis.as_ref(),
                "`ceiling_basis: window` belongs to `profile: article` alone; drop it, or write `profile: article`",
            );
        }
        let said = if raw.profile.is_some() { "" } else { " (the default, where `profile` is left out)" };
        return judge.refuse(
            raw.profile.as_ref(),
            format!(
                "`profile: strict`{said} is not in this build, which judges by `profile: article` alone; \
                 write `profile: article` to use the article's five checks"
            ),
        );
    }
    let ratio = |set: &Option<Spanned<Ratio>>, tier: Ratio, key: &str| {
        let fits = |r: Ratio| r.at_most_one() && r.decimals() <= 14;
        judge.take(set.as_ref(), tier, key, fits, "between 0 and 1, with at most 14 decimals")
    };
    let day_count = |set: &Option<Spanned<u32>>, tier: u32, key: &str| {
        judge.take(set.as_ref(), tier, key, |n| (1..=366).contains(&n), "from 1 to 366")
    };
    let ceiling = judge.take(
        raw.ceiling.as_ref(),
        base.ceiling,
        "ceiling",
        |b| !b.is_zero() && b.below_one() && b.decimals() <= 6,
        "above 0 and below 1, with at most 6 decimals (0.01 is 1 %)",
    )?;
    let raw_decay = raw.decay.as_ref();
    let fraction = raw_decay.and_then(|d| d.fraction.as_ref());
    let decay = Decay {
        days: day_count(&raw_decay.and_then(|d| d.days.clone()), base.decay.days, "decay.days")?,
        fraction: judge.take(
            fraction,
            base.decay.fraction,
            "decay.fraction",
            |f| !f.is_zero() && f.at_most_one() && f.decimals() <= 6,
            "above 0 and at most 1, with at most 6 decimals",
        )?,
    };
    let raw_final = raw.final_block_free.as_ref();
    let final_days = raw_final.and_then(|z| z.days.clone());
    let mut plan = Plan {
        profile,
        ceiling,
        ceiling_basis: basis,
        counted_days: day_count(&raw.counted_days, base.counted_days, "counted_days")?,
        max_scored_days: day_count(&raw.max_scored_days, base.max_scored_days, "max_scored_days")?,
        min_calls: judge.take(
            raw.min_calls.as_ref(),
            base.min_calls,
            "min_calls",
            |n| n >= 1,
            "1 or more",
        )?,
        final_block_free: FinalBlockFree {
            days: day_count(&final_days, base.final_block_free.days, "final_block_free.days")?,
            calls: raw_final.and_then(|z| z.calls).unwrap_or(base.final_block_free.calls),
        },
        decay,
        risk_limit: ratio(&raw.risk_limit, base.risk_limit, "risk_limit")?,
        place_ceiling: ratio(&raw.place_ceiling, base.place_ceiling, "place_ceiling")?,
        min_outcomes: raw.min_outcomes.unwrap_or(base.min_outcomes),
        max_unstable: ratio(&raw.max_unstable, base.max_unstable, "max_unstable")?,
        max_both_rejected: ratio(&raw.max_both_rejected, base.max_both_rejected, "max_both_rejected")?,
        cohort: raw.cohort.clone(),
        lateness: raw.lateness.unwrap_or(base.lateness),
        fallback: raw.fallback.unwrap_or(base.fallback),
        calendar: raw.calendar.unwrap_or(base.calendar),
        confirmation_days: raw.confirmation_days.unwrap_or(base.confirmation_days),
        ..base
    };
    if let Some(sampling) = &raw.sampling {
        plan.sampling.rate = ratio(&sampling.rate, plan.sampling.rate, "sampling.rate")?;
        plan.sampling.by = sampling.by.unwrap_or(plan.sampling.by);
    }
    if let Some(required) = &raw.required {
        let dates = required.dates.iter().map(|text| match Day::parse(text) {
            Some(day) => Ok(day),
            None => judge.refuse(
                None::<&Spanned<u32>>,
                format!("`required.dates`: `{text}` is not a day such as 2026-06-01"),
            ),
        });
        plan.required = Required {
            agents: required.agents.clone(),
            cohorts: required.cohorts.clone(),
            dates: dates.collect::<Result<_, _>>()?,
        };
    }
    if let Some(set) = in_flight {
        let tier = plan.in_flight;
        plan.in_flight = InFlight {
            longest_retry_delay: set.longest_retry_delay.unwrap_or(tier.longest_retry_delay),
            oldest_supported_snapshot: set
                .oldest_supported_snapshot
                .unwrap_or(tier.oldest_supported_snapshot),
            rollback_window: set.rollback_window.unwrap_or(tier.rollback_window),
        };
    }
    cross_checks(&plan, raw, &judge)?;
    Ok(plan)
}

fn cross_checks(plan: &Plan, raw: &RawPlan, judge: &Judge<'_>) -> Result<(), PlanError> {
    if plan.counted_days > plan.max_scored_days {
        let at = raw.counted_days.as_ref().or(raw.max_scored_days.as_ref());
        return judge.refuse(
            at,
            format!(
                "`counted_days` is {} and `max_scored_days` {}: the counted days could never be reached; \
                 raise `max_scored_days`",
                plan.counted_days, plan.max_scored_days
            ),
        );
    }
    if plan.decay.days > plan.counted_days {
        return judge.refuse(
            raw.decay.as_ref().and_then(|d| d.days.as_ref()).or(raw.counted_days.as_ref()),
            format!(
                "`decay.days` is {} and `counted_days` {}: decay looks at the last of the counted days; lower `decay.days`",
                plan.decay.days, plan.counted_days
            ),
        );
    }
    Ok(())
}

/// serde-saphyr's error with the file's name, its place, and the nearest known key where a key is unknown.
fn yaml_error(error: &serde_saphyr::Error, file: &str) -> PlanError {
    let error = error.without_snippet();
    let place = match error.location() {
        Some(at) if at.line() > 0 => format!("{file}:{}:{}", at.line(), at.column()),
        _ => file.to_owned(),
    };
    let message = match error {
        serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => unknown(field, expected, "key"),
        serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => {
            unknown(variant, expected, "value")
        }
        other => {
            // The library appends the place, which already stands in front.
            let text = other.to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.split(" at line ").next().unwrap_or(text);
            text.trim_start_matches("error: ").to_owned()
        }
    };
    PlanError { place, message }
}

fn unknown(name: &str, expected: &[&str], what: &str) -> String {
    let hint = match nearest(name, expected.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            format!("known are {}", expected.iter().map(|e| format!("`{e}`")).collect::<Vec<_>>().join(", "))
        }
    };
    let name: String = name.chars().take(60).collect();
    format!("unknown {what} `{name}`; {hint}")
}
