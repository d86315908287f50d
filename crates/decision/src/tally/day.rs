//! What one day's calls come to, in a form that adds up: days, or disjoint sets of calls of one day.

use std::collections::BTreeMap;

use lastcall_compare::{Category, Discrepancy, Severity};
use lastcall_event::Day;
use serde::{Deserialize, Serialize};

use super::{CategoryFacts, DayCounts, Example, FieldCount, Place};

/// The counts, categories and rules of one day after duplicates are removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayTally {
    /// The counts.
    pub counts: DayCounts,
    /// What was found, by category.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) categories: BTreeMap<Category, Found>,
    /// Normalization rules: calls on which each turned a difference into agreement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) rules: BTreeMap<String, u64>,
}

/// One category while its calls are gathered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    by_severity: BTreeMap<Severity, u64>,
    refused: u64,
    first: Day,
    last: Day,
    fields: BTreeMap<String, u64>,
    severity: Severity,
    example_refused: bool,
    example: Example,
}

impl Found {
    /// Worse (a refused one before one that is not), or as bad and earlier.
    fn is_worse(&self, severity: Severity, refused: bool, day: Day, place: &Place, pointer: &str) -> bool {
        (self.severity, self.example_refused, (day, place, pointer))
            > (severity, refused, (self.example.day, &self.example.place, self.example.pointer.as_str()))
    }
}

impl DayTally {
    /// Adds another's counts, categories and rules. The calls of the two must be different ones.
    pub fn add(&mut self, more: &Self) {
        self.counts.add(&more.counts);
        self.add_findings(more);
    }

    /// Adds categories and rules alone.
    pub(super) fn add_findings(&mut self, more: &Self) {
        for (rule, n) in &more.rules {
            *self.rules.entry(rule.clone()).or_default() += n;
        }
        for (category, theirs) in &more.categories {
            let Some(mine) = self.categories.get_mut(category) else {
                self.categories.insert(*category, theirs.clone());
                continue;
            };
            for (severity, n) in &theirs.by_severity {
                *mine.by_severity.entry(*severity).or_default() += n;
            }
            mine.refused += theirs.refused;
            (mine.first, mine.last) = (mine.first.min(theirs.first), mine.last.max(theirs.last));
            for (field, n) in &theirs.fields {
                *mine.fields.entry(field.clone()).or_default() += n;
            }
            let e = &mine.example;
            if theirs.is_worse(mine.severity, mine.example_refused, e.day, &e.place, &e.pointer) {
                (mine.severity, mine.example_refused) = (theirs.severity, theirs.example_refused);
                mine.example = theirs.example.clone();
            }
        }
    }

    /// Adds what one call, counted once, was found to differ in.
    pub(super) fn gather(&mut self, day: Day, place: &Place, discrepancies: &[Discrepancy]) {
        let mut worst: BTreeMap<Category, (Severity, bool)> = BTreeMap::new();
        let mut fields: Vec<(Category, &str)> = Vec::new();
        for d in discrepancies {
            let entry = worst.entry(d.category).or_insert((d.severity, d.refused));
            *entry = (entry.0.max(d.severity), entry.1 | d.refused);
            fields.push((d.category, d.field.as_str()));
            self.example(day, place, d);
        }
        fields.sort_unstable();
        fields.dedup();
        for (category, field) in fields {
            if let Some(found) = self.categories.get_mut(&category) {
                *found.fields.entry(field.to_owned()).or_default() += 1;
            }
        }
        for (category, (severity, refused)) in worst {
            if let Some(found) = self.categories.get_mut(&category) {
                *found.by_severity.entry(severity).or_default() += 1;
                found.refused += u64::from(refused);
                (found.first, found.last) = (found.first.min(day), found.last.max(day));
            }
        }
    }

    fn example(&mut self, day: Day, place: &Place, d: &Discrepancy) {
        let example = || Example {
            pointer: d.field.clone(),
            keyword: d.keyword.clone(),
            location: d.location.clone(),
            note: d.note.clone(),
            day,
            place: place.clone(),
            value: None,
        };
        let Some(found) = self.categories.get_mut(&d.category) else {
            let found = Found {
                by_severity: BTreeMap::new(),
                refused: 0,
                first: day,
                last: day,
                fields: BTreeMap::new(),
                severity: d.severity,
                example_refused: d.refused,
                example: example(),
            };
            self.categories.insert(d.category, found);
            return;
        };
        let better =
            (d.severity, d.refused, (found.example.day, &found.example.place, &found.example.pointer))
                > (found.severity, found.example_refused, (day, place, &d.field));
        if better {
            (found.severity, found.example_refused, found.example) = (d.severity, d.refused, example());
        }
    }

    /// The categories as a verdict shows them, most blocks first.
    pub fn category_facts(&self) -> Vec<CategoryFacts> {
        let mut facts: Vec<(Category, CategoryFacts)> =
            self.categories.iter().map(|(category, found)| (*category, found.facts(*category))).collect();
        facts.sort_by(|(a, x), (b, y)| {
            (y.block, y.warn, y.info).cmp(&(x.block, x.warn, x.info)).then_with(|| {
                let (a, b) = (a.as_str(), b.as_str());
                a.cmp(b)
            })
        });
        facts.into_iter().map(|(_, facts)| facts).collect()
    }

    /// Calls by `category/severity`, each at its worst there.
    pub fn by_category(&self) -> BTreeMap<String, u64> {
        let each = |(category, found): (&Category, &Found)| {
            let category = *category;
            let name = move |(severity, n): (&Severity, &u64)| (format!("{category}/{severity}"), *n);
            found.by_severity.iter().map(name).collect::<Vec<_>>()
        };
        self.categories.iter().flat_map(each).collect()
    }
}

impl Found {
    fn facts(&self, category: Category) -> CategoryFacts {
        let field =
            |(pointer, calls): (&String, &u64)| FieldCount { pointer: pointer.clone(), calls: *calls };
        let mut fields: Vec<FieldCount> = self.fields.iter().map(field).collect();
        fields.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.pointer.cmp(&b.pointer)));
        fields.truncate(5);
        let of = |s: Severity| self.by_severity.get(&s).copied().unwrap_or_default();
        CategoryFacts {
            category: category.as_str().to_owned(),
            block: of(Severity::Block),
            warn: of(Severity::Warn),
            info: of(Severity::Info),
            refused: self.refused,
            first_seen: self.first,
            last_seen: self.last,
            distinct_fields: self.fields.len() as u64,
            fields,
            example: self.example.clone(),
        }
    }
}
