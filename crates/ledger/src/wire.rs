//! Names of enumerations in columns, and reading them back.

use lastcall_compare::Severity;
use lastcall_event::{Fidelity, Status, Suppression};

const FIDELITIES: [Fidelity; 4] =
    [Fidelity::Raw, Fidelity::Reconstructed, Fidelity::Normalized, Fidelity::NotCaptured];
const SUPPRESSIONS: [Suppression; 6] = [
    Suppression::Replica,
    Suppression::Snapshot,
    Suppression::DryRun,
    Suppression::Sandbox,
    Suppression::Stub,
    Suppression::NotExecuted,
];
const STATUSES: [Status; 13] = [
    Status::Ok,
    Status::InvalidArguments,
    Status::BusinessError,
    Status::PermissionDenied,
    Status::RateLimited,
    Status::Timeout,
    Status::PlatformError,
    Status::Unknown,
    Status::TimedOut,
    Status::Shed,
    Status::Unavailable,
    Status::SampledOut,
    Status::NotRun,
];

/// The name of a fidelity.
pub fn fidelity(value: Fidelity) -> &'static str {
    match value {
        Fidelity::Raw => "raw",
        Fidelity::Reconstructed => "reconstructed",
        Fidelity::Normalized => "normalized",
        Fidelity::NotCaptured => "not_captured",
    }
}

/// The name of a suppression.
pub fn suppression(value: Suppression) -> &'static str {
    match value {
        Suppression::Replica => "replica",
        Suppression::Snapshot => "snapshot",
        Suppression::DryRun => "dry_run",
        Suppression::Sandbox => "sandbox",
        Suppression::Stub => "stub",
        Suppression::NotExecuted => "not_executed",
    }
}

/// Reads a fidelity.
pub fn parse_fidelity(name: &str) -> Option<Fidelity> {
    FIDELITIES.into_iter().find(|v| fidelity(*v) == name)
}

/// Reads a suppression.
pub fn parse_suppression(name: &str) -> Option<Suppression> {
    SUPPRESSIONS.into_iter().find(|v| suppression(*v) == name)
}

/// Reads a status.
pub fn parse_status(name: &str) -> Option<Status> {
    STATUSES.into_iter().find(|v| v.as_str() == name)
}

/// Reads a severity.
pub fn parse_severity(name: &str) -> Option<Severity> {
    [Severity::Info, Severity::Warn, Severity::Block].into_iter().find(|v| v.as_str() == name)
}
