//! `--preset` and `--map`: how the messages of a source are read.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::ValueEnum;
use lastcall_event::Preset;
use lastcall_event::source::{Decoder, Map};
use lastcall_record::map_text;

/// Presets of sources, as arguments.
#[derive(Clone, Copy, ValueEnum)]
pub enum PresetArg {
    /// Lastcall's own records.
    Native,
    /// The interceptor's record.
    Interceptor,
    /// OTLP traces in JSON, as the OpenTelemetry Collector writes them: a batch a line.
    OtlpJson,
    /// OTLP traces in protobuf; in a file each batch has its length before it, as the Collector's file exporter writes it.
    OtlpProto,
    /// CloudEvents, one a line.
    Cloudevents,
    /// Any JSON, by the map that --map names.
    Map,
}

impl From<PresetArg> for Preset {
    fn from(preset: PresetArg) -> Self {
        match preset {
            PresetArg::Native => Self::Native,
            PresetArg::Interceptor => Self::Interceptor,
            PresetArg::OtlpJson => Self::OtlpJson,
            PresetArg::OtlpProto => Self::OtlpProto,
            PresetArg::Cloudevents => Self::CloudEvents,
            PresetArg::Map => Self::Map,
        }
    }
}

/// A user's map.
#[derive(Clone, Default, clap::Args)]
pub struct MapArgs {
    /// Where your own records hold a tool call: a map in TOML (schemas/map.schema.json). Means --preset map.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
}

impl MapArgs {
    /// The preset and the text of its map, where it has one: the user's, or that of this build.
    ///
    /// # Errors
    /// The file cannot be read or is no map, or preset and map do not go together.
    pub fn resolve(&self, preset: Option<Preset>) -> anyhow::Result<(Option<Preset>, Option<String>)> {
        let preset = preset.or(self.map.as_ref().map(|_| Preset::Map));
        let Some(path) = &self.map else {
            map_text(preset.unwrap_or_default(), None)?;
            return Ok((preset, None));
        };
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the map {shown}"))?;
        map_text(preset.unwrap_or_default(), Some(&text)).with_context(|| format!("{shown}"))?;
        Ok((preset, Some(text)))
    }
}

/// The decoder of a preset, by the user's map or by that of this build; `None`: it has no map.
///
/// # Errors
/// Preset and map do not go together.
pub fn decoder(preset: Preset, map: Option<&str>) -> anyhow::Result<Option<Decoder>> {
    match map_text(preset, map)? {
        Some(text) => Ok(Some(Decoder::new(Map::parse(&text)?))),
        None => Ok(None),
    }
}
