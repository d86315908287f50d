//! Running a production call against a candidate, with its effect suppressed.
//!
//! What may be run is decided by types: a tool that reads is run on a replica or a snapshot, a tool that writes in a dry
//! run, a sandbox or against a stub, and for a tool that sends there is no executor.

use lastcall_contract::Registry;
use lastcall_event::{CallRecord, Timestamp};

/// What `mirror.toml` says of tools and their candidates.
#[derive(Clone, Debug, Default)]
pub struct Settings {}

/// Why settings are refused: names the file, the place in it and the next step; one line a problem.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

impl Settings {
    /// Reads the tables `[tools."TOOL"]` and `[defaults]` of a `mirror.toml`.
    ///
    /// # Errors
    /// It is no TOML, or says something that no setting is.
    pub fn parse(_text: &str, _place: &str) -> Result<Self, SettingsError> {
        Ok(Self {})
    }
}

/// Candidates of every tool, ready to be run. Shared by all partitions.
pub struct Mirror {}

impl Mirror {
    /// Decides how the effect of every tool is suppressed. Reads no file and opens no connection.
    ///
    /// # Errors
    /// A tool or contract that the registry lacks, or a suppression that the tool's side effect does not allow.
    pub fn new(_registry: &Registry, _settings: &Settings) -> Result<Self, SettingsError> {
        Ok(Self {})
    }

    /// Takes new switches, rates and limits over, while calls are under way.
    ///
    /// # Errors
    /// Candidates, endpoints or suppressions changed: those need a restart. Nothing is taken over then.
    pub fn update(&self, _settings: &Settings) -> Result<(), SettingsError> {
        Ok(())
    }

    /// Runs a call against its tool's candidates. Never fails and always ends: what went wrong is what the answer says.
    pub async fn replay(&self, _call: &CallRecord<'_>) -> Replayed {
        Replayed {}
    }
}

/// What the candidates made of one call.
#[derive(Clone, Debug, Default)]
pub struct Replayed {}

/// Which upstream positions a row stands for: `[from, to)`, and how far in time the upstream is known complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stand {
    /// First upstream position.
    pub from: i64,
    /// One past the last.
    pub to: i64,
    /// Everything up to this moment was mirrored.
    pub through: Option<Timestamp>,
}

/// The mirrored row of a call. `record` is the call's own text: of preset native it is kept, field by field, as it came
/// (but for `type`, `upstream`, `candidates` and `current_rerun`); else the row is written from `call`.
pub fn row(_record: Option<&str>, _call: &CallRecord<'_>, _stand: Stand, _replayed: &Replayed) -> String {
    String::new()
}

/// The row of a partition without a call: how far it was mirrored.
pub fn coverage(_stand: Stand) -> String {
    String::new()
}
