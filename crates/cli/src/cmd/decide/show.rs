//! How an answer is given: to standard output, into a file, or as a folder of pages.

use std::path::Path;

use anyhow::{Context as _, bail};
use lastcall_decision::{History, Verdict};
use lastcall_report::{
    BoardPage, Style, board, fleet_markdown, fleet_page, fleet_text, to_json, verdict_markdown, verdict_page,
    verdict_text, verdicts_junit,
};

use super::{Args, Format, here};
use crate::ui::{append_step_summary, style};

/// The title of a page of several tools.
const TITLE: &str = "Tools and their candidates";

/// Refuses, before anything is recorded, a folder where a file is wanted.
pub(super) fn check(args: &Args) -> anyhow::Result<()> {
    match args.out.as_deref().filter(|path| is_folder(path)) {
        Some(folder) if !(args.all && args.format == Format::Html) => {
            bail!("--out {} is a folder: name a file, or ask for `--all --format html`", folder.display())
        }
        _ => Ok(()),
    }
}

/// Answers.
pub(super) fn show(args: &Args, verdicts: &[Verdict], histories: &[History]) -> anyhow::Result<()> {
    if let Some(folder) = args.out.as_deref().filter(|path| is_folder(path)) {
        write_board(folder, &board(TITLE, verdicts, histories))?;
        print!("{}", text(args, verdicts, style()));
        tell!("written: {}", folder.join("index.html").display());
        return Ok(());
    }
    let document = document(args, verdicts, histories)?;
    if args.format == Format::Markdown {
        append_step_summary(document.as_deref().unwrap_or_default())?;
    }
    let Some(path) = &args.out else {
        print!("{}", document.unwrap_or_else(|| text(args, verdicts, style())));
        return Ok(());
    };
    let document = document.unwrap_or_else(|| text(args, verdicts, Style::default()));
    std::fs::write(path, document).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{}", text(args, verdicts, style()));
    tell!("written: {}", path.display());
    Ok(())
}

/// What is answered in full on one tool; `None`: several.
fn one<'a>(args: &Args, verdicts: &'a [Verdict]) -> Option<&'a Verdict> {
    if args.all { None } else { verdicts.first() }
}

fn text(args: &Args, verdicts: &[Verdict], style: Style) -> String {
    let text = match one(args, verdicts) {
        Some(v) => verdict_text(v, args.explain, style),
        None if args.explain => {
            let each: Vec<String> = verdicts.iter().map(|v| verdict_text(v, true, style)).collect();
            format!("{}\n{}", fleet_text(verdicts, style), each.join("\n\n"))
        }
        None => fleet_text(verdicts, style),
    };
    here(&text, &args.ledger.display().to_string())
}

/// The answer in the format that is asked for; `None`: as text.
fn document(args: &Args, verdicts: &[Verdict], histories: &[History]) -> anyhow::Result<Option<String>> {
    let one = one(args, verdicts);
    Ok(Some(match args.format {
        Format::Text => return Ok(None),
        Format::Json => match one {
            Some(v) => to_json(v)?,
            None => to_json(&verdicts)?,
        },
        Format::Html => match one {
            Some(v) => verdict_page(v, histories.first().unwrap_or(&History::default())),
            None => fleet_page(TITLE, verdicts, histories),
        },
        Format::Markdown => match one {
            Some(v) => verdict_markdown(v),
            None => fleet_markdown(verdicts),
        },
        Format::Junit => verdicts_junit(verdicts).map_err(anyhow::Error::msg)?,
    }))
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with(['/', std::path::MAIN_SEPARATOR])
}

/// Writes the pages. Each is put in the place of an older one in one step, so that whoever serves the folder never serves
/// half a page; pages that no tool has any more are left alone.
fn write_board(folder: &Path, pages: &[BoardPage]) -> anyhow::Result<()> {
    for page in pages {
        let path = folder.join(&page.path);
        let failed = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(failed)?;
        }
        let half = path.with_extension("html.part");
        std::fs::write(&half, &page.html).with_context(failed)?;
        std::fs::rename(&half, &path).with_context(failed)?;
    }
    Ok(())
}
