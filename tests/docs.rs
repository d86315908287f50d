//! The guide says what the code says: categories, reasons, reason codes, commands.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use lastcall_compare::{Category, Reason};
use lastcall_decision::ReasonCode;
use lastcall_tests::{answer, lastcall};

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(guide().join(name)).unwrap_or_else(|e| panic!("docs/src/{name}: {e}"))
}

/// The cells of the rows whose first cell is code.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter(|l| l.starts_with("| `"))
        .map(|l| l.trim_matches('|').split('|').map(|c| c.trim().trim_matches('`').to_owned()).collect())
        .collect()
}

#[test]
fn categories_and_reasons_are_all_in_the_guide() {
    let rows = rows(&page("comparison.md"));
    for category in Category::ALL {
        let row = rows.iter().find(|r| r[0] == category.as_str());
        let severity = row.map(|r| r[1].as_str());
        assert_eq!(
            severity,
            Some(category.default_severity().as_str()),
            "{category} in docs/src/comparison.md"
        );
    }
    for reason in Reason::ALL {
        assert!(
            rows.iter().any(|r| r[0] == reason.as_str()),
            "{} in docs/src/comparison.md",
            reason.as_str()
        );
    }
    assert_eq!(rows.len(), Category::ALL.len() + Reason::ALL.len(), "no row is left over");
}

#[test]
fn reason_codes_stand_with_their_text() {
    let rows = rows(&page("reason-codes.md"));
    let stated: Vec<(&str, &str)> = rows.iter().map(|r| (r[0].as_str(), r[1].as_str())).collect();
    let wanted: Vec<(&str, &str)> = ReasonCode::ALL.iter().map(|c| (c.as_str(), c.text())).collect();
    assert_eq!(stated, wanted);
}

/// Every `lastcall …` line of the guide names a command and flags that exist.
#[test]
fn commands_of_the_guide_exist() {
    let mut seen = 0;
    for entry in std::fs::read_dir(guide()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // of pictures
        }
        let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
        for line in text.lines() {
            let Some(at) =
                line.find("lastcall ").filter(|at| *at == 0 || line[..*at].ends_with(['$', ' ', '|']))
            else {
                continue;
            };
            // The first line of what is signed: no command.
            if line == "lastcall ledger head, version 1" {
                continue;
            }
            if !(line.starts_with("lastcall ")
                || line.starts_with("$ lastcall ")
                || line.contains("| lastcall "))
            {
                continue;
            }
            let words: Vec<&str> =
                line[at..].split_whitespace().skip(1).take_while(|w| *w != "#" && *w != ">").collect();
            let command: Vec<&str> = words.iter().copied().take_while(|w| !w.starts_with('-')).collect();
            // The longest prefix that is a command: `plan observe OLD NEW` is `plan observe`.
            let nested = ["contract", "ledger", "plan"].contains(&command[0]);
            let command = &command[..if nested { 2 } else { 1 }];
            let help = answer(lastcall().args(command).arg("--help"));
            assert_eq!(help.code, 0, "{}: `{line}`: no such command", path.display());
            for flag in words.iter().filter(|w| w.starts_with("--")) {
                let flag = flag.split('=').next().unwrap();
                assert!(help.out.contains(flag), "{}: `{line}`: {flag} is no flag of it", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 15, "the guide shows commands, not {seen}");
}

#[test]
fn the_guide_is_whole() {
    let summary = page("SUMMARY.md");
    for entry in std::fs::read_dir(guide()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // of pictures
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "{name} is in no summary");
        let text = std::fs::read_to_string(&path).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            let linked = file.is_empty() || target.contains("://") || guide().join(file).is_file();
            assert!(linked, "{name}: a link to {target}, which is not there");
            if let Some((file, anchor)) = target.split_once('#') {
                let body = if file.is_empty() { text.clone() } else { page(file) };
                let anchors: Vec<String> = body
                    .lines()
                    .filter(|l| l.starts_with('#'))
                    .map(|l| {
                        let kept = l.trim_start_matches('#').trim().to_lowercase();
                        kept.chars()
                            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                            .collect::<String>()
                            .replace(' ', "-")
                    })
                    .collect();
                assert!(anchors.iter().any(|a| a == anchor), "{name}: no heading {anchor} in {anchors:?}");
            }
        }
    }
}

/// The README's story, as it is printed.
#[test]
fn the_whole_story_runs() {
    let root = guide().join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let story = readme.split("## The whole story").nth(1).unwrap().split("```sh\n").nth(1).unwrap();
    let story = story.split("```").next().unwrap();
    let place = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.canonicalize().unwrap().join("examples"), place.path().join("examples"))
        .unwrap();
    let mut commands = 0;
    for line in story.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "cp" => {
                let to = place.path().join(words[2]).join(Path::new(words[1]).file_name().unwrap());
                std::fs::copy(place.path().join(words[1]), to).map(drop).unwrap();
            }
            _ => {
                let said = answer(lastcall().current_dir(place.path()).args(&words[1..]));
                let expected = if words[1] == "decide" { 1 } else { 0 };
                assert_eq!(said.code, expected, "{line}: {}{}", said.out, said.err);
                assert!(words[1] != "decide" || said.out.starts_with("NOT_READY"), "{}", said.out);
            }
        }
        commands += 1;
    }
    assert!(commands > 8, "{commands}");
}

/// A block that begins with `$ lastcall …` shows what that command prints, from the repository's root; a line `…` stands
/// for the rest.
#[test]
fn output_in_the_guide_is_what_is_printed() {
    let root = guide().join("../..");
    let mut seen = 0;
    for name in ["diff.md"] {
        let text = page(name);
        for block in text.split("```text\n$ lastcall ").skip(1) {
            let block = block.split("\n```").next().unwrap();
            let (command, shown) = block.split_once('\n').unwrap();
            let said = answer(lastcall().current_dir(&root).args(command.split_whitespace()));
            let printed = said.out + &said.err;
            match shown.strip_suffix("\n…") {
                Some(head) => assert!(printed.starts_with(head), "{name}: {command} prints\n{printed}"),
                None => assert_eq!(shown, printed.trim_end(), "{name}: {command}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 3, "blocks with output, not {seen}");
}
