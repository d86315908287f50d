//! How a pair is compared, as files say it: a configuration given by hand, or the registry's `normalization.yaml`.

use std::path::Path;

use anyhow::bail;
use lastcall_compare::{Normalization, PairConfig};
use lastcall_contract::Registry;
use serde::de::DeserializeOwned;
use serde_saphyr::Error;

use super::plan::read_text;

/// A configuration file: renames, normalization, severity map, adapter, as YAML or JSON.
///
/// # Errors
/// It cannot be read, or does not hold together: with the place, and what to do.
pub fn from_file(path: &Path) -> anyhow::Result<PairConfig> {
    let shown = path.display().to_string();
    let config: PairConfig = read(&shown, &read_text(path)?)?;
    refuse(&shown, config.problems())?;
    Ok(config)
}

/// What the registry declares for a tool; nothing where it declares nothing.
///
/// # Errors
/// Its `normalization.yaml` does not hold together.
pub fn from_registry(registry: &Registry, dir: &Path, tool_id: &str) -> anyhow::Result<PairConfig> {
    let declared = registry.tool(tool_id).and_then(|t| t.normalization.as_ref());
    let Some(text) = declared else { return Ok(PairConfig::default()) };
    let shown = dir.join(tool_id).join("normalization.yaml").display().to_string();
    let normalization: Normalization = read(&shown, text)?;
    refuse(&shown, normalization.problems())?;
    Ok(PairConfig { normalization, ..PairConfig::default() })
}

fn read<T: DeserializeOwned>(shown: &str, text: &str) -> anyhow::Result<T> {
    serde_saphyr::from_str(text).map_err(|error| {
        let place = match error.location() {
            Some(at) => format!("{shown}:{}:{}", at.line(), at.column()),
            None => shown.to_owned(),
        };
        let what = match error.without_snippet() {
            Error::SerdeUnknownField { field, expected, .. } => {
                let near = lastcall_decision::nearest(field, expected.iter().copied());
                let near = near.map_or(String::new(), |near| format!("Perhaps `{near}` was meant; "));
                format!("unknown key `{field}`. {near}known are {}", expected.join(", "))
            }
            other => {
                let text = other.to_string();
                format!("{}. Correct that line", text.lines().next().unwrap_or_default())
            }
        };
        anyhow::anyhow!("{place}: {what}")
    })
}

fn refuse(shown: &str, problems: Vec<(String, String)>) -> anyhow::Result<()> {
    let lines: Vec<String> = problems.iter().map(|(at, what)| format!("{shown}, {at}: {what}")).collect();
    if lines.is_empty() { Ok(()) } else { bail!("{}", lines.join("\n")) }
}
