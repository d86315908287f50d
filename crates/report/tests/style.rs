//! The style sheet: what is read has the contrast that WCAG 2.2 AA asks for, in light, dark and print.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

const CSS: &str = include_str!("../src/html/page.css");

/// The custom properties of the `:root` rule behind a mark, over those of the first.
fn palette(mark: &str) -> BTreeMap<String, String> {
    let read = |from: &str| -> BTreeMap<String, String> {
        let start = from.find(":root {").unwrap() + 7;
        let body = from[start..].split('}').next().unwrap();
        let pairs = body.split(';').filter_map(|d| d.trim().strip_prefix("--")?.split_once(':'));
        pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
    };
    let mut out = read(CSS);
    if !mark.is_empty() {
        out.extend(read(&CSS[CSS.find(mark).unwrap()..]));
    }
    out
}

/// Relative luminance as WCAG defines it, of `#rgb` or `#rrggbb`.
fn luminance(hex: &str) -> f64 {
    let hex = hex.strip_prefix('#').unwrap_or_else(|| panic!("{hex} is no hexadecimal colour"));
    let full: String =
        if hex.len() == 3 { hex.chars().flat_map(|c| [c, c]).collect() } else { hex.to_owned() };
    let channel = |at: usize| {
        let c = f64::from(u8::from_str_radix(&full[at..at + 2], 16).unwrap()) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The variables that a property is set to anywhere.
fn set_to(property: &str) -> BTreeSet<&'static str> {
    let mut out = BTreeSet::new();
    for rule in CSS.split(['{', ';', '}']) {
        let Some((name, value)) = rule.trim().split_once(':') else { continue };
        if name.trim() == property
            && let Some(at) = value.find("var(--")
        {
            out.insert(value[at + 6..].split(')').next().unwrap());
        }
    }
    out
}

const MODES: [(&str, &str); 3] =
    [("light", ""), ("dark", "@media (prefers-color-scheme: dark)"), ("print", "@media print")];

#[test]
fn the_formula_is_the_published_one() {
    assert!((contrast("#000", "#ffffff") - 21.0).abs() < 1e-9);
    assert!((contrast("#777777", "#ffffff") - 4.478).abs() < 0.001, "the well-known near miss");
    assert!((contrast("#767676", "#ffffff") - 4.542).abs() < 0.001);
}

#[test]
fn text_has_a_contrast_of_four_and_a_half() {
    let texts: BTreeSet<&str> = set_to("color");
    let filled: BTreeSet<&str> = ["soft", "ink"].into(); // `svg text` is filled, not coloured
    assert!(texts.contains("soft") && texts.contains("not-ready") && texts.len() >= 6, "{texts:?}");
    for (mode, mark) in MODES {
        let colors = palette(mark);
        for text in texts.union(&filled) {
            let own = format!("{text}-bg");
            let grounds =
                ["paper", "card", "faint"].into_iter().chain(colors.contains_key(&own).then_some(&*own));
            for ground in grounds {
                let ratio = contrast(&colors[*text], &colors[ground]);
                assert!(ratio >= 4.5, "{mode}: --{text} on --{ground} has {ratio:.2}");
            }
        }
    }
}

#[test]
fn marks_have_a_contrast_of_three() {
    let marks: BTreeSet<&str> = ["fill", "stroke", "outline", "border-top", "border-left", "border-color"]
        .iter()
        .flat_map(|p| set_to(p))
        .collect();
    // Grounds and hairlines carry nothing by themselves; a scored day's bar has its figure in the table and its outline.
    let quiet = ["line", "faint", "card", "bar-soft"];
    for (mode, mark) in MODES {
        let colors = palette(mark);
        for name in marks.iter().filter(|m| !quiet.contains(m)) {
            for ground in ["card", "faint"] {
                let ratio = contrast(&colors[*name], &colors[ground]);
                assert!(ratio >= 3.0, "{mode}: --{name} on --{ground} has {ratio:.2}");
            }
        }
    }
    assert!(marks.contains("block") && marks.contains("bar"), "{marks:?}");
}

#[test]
fn every_colour_is_a_variable_of_every_mode() {
    let names: BTreeSet<String> = palette("").into_keys().collect();
    let dark = &CSS[CSS.find(MODES[1].1).unwrap()..];
    let dark = &dark[..dark.find("\n}").unwrap()];
    for name in &names {
        assert!(dark.contains(&format!("--{name}:")), "--{name} has no colour in the dark");
    }
    // outside of `:root` no colour is written by hand, and nothing fades text
    let mut rest = CSS.to_owned();
    while let Some(start) = rest.find(":root {") {
        let end = start + rest[start..].find('}').unwrap();
        rest.replace_range(start..=end, "");
    }
    for wrong in ["#", "rgb(", "hsl(", "opacity"] {
        assert!(
            !rest.contains(wrong),
            "{wrong} outside of :root: {}",
            &rest[rest.find(wrong).unwrap()..][..60]
        );
    }
    for part in rest.split("var(--").skip(1) {
        let name = part.split(')').next().unwrap();
        assert!(names.contains(name), "--{name} is nowhere defined");
    }
}

#[test]
fn the_sheet_knows_the_dark_paper_and_phones_and_loads_nothing() {
    for needed in [MODES[1].1, MODES[2].1, "@media screen and (max-width: 46rem)", ":focus-visible"] {
        assert!(CSS.contains(needed), "{needed}");
    }
    for wrong in ["url(", "@import", "@font-face", "http", "</"] {
        assert!(!CSS.contains(wrong), "{wrong}");
    }
}
