//! Helpers that tests across crates share.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod answers;
pub mod chance;
pub mod content;
pub mod forge;
pub mod services;
pub mod stand_in;
pub mod tamper;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The built `lastcall` of the same profile as the running test; built when it is absent. `LASTCALL_BIN` names another.
pub fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("LASTCALL_BIN") {
            return PathBuf::from(path);
        }
        // target/<profile>/deps/<test> → target/<profile>/lastcall
        let mut path = std::env::current_exe().expect("the test knows its own path");
        path.pop();
        if path.ends_with("deps") {
            path.pop();
        }
        let release = path.ends_with("release");
        path.push(format!("lastcall{}", std::env::consts::EXE_SUFFIX));
        if !path.is_file() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.args(["build", "-p", "lastcall-cli"]).current_dir(env!("CARGO_MANIFEST_DIR"));
            if release {
                build.arg("--release");
            }
            assert!(build.status().expect("cargo starts").success(), "lastcall does not build");
        }
        assert!(path.is_file(), "{} is not there after the build", path.display());
        path
    })
}

/// A command of the built `lastcall`, with an environment that changes nothing: no colours, no defaults from outside.
pub fn lastcall() -> Command {
    let mut command = Command::new(binary());
    command.env("NO_COLOR", "1").env_remove("LASTCALL_LEDGER").env_remove("LASTCALL_REGISTRY");
    command
}

/// What a command answered.
pub struct Answer {
    /// Exit code; a signal is -1.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs `lastcall` with these arguments.
pub fn run<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Answer {
    answer(lastcall().args(args))
}

/// Runs a command to its end.
pub fn answer(command: &mut Command) -> Answer {
    let done = command.output().expect("lastcall starts");
    Answer {
        code: done.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&done.stdout).into_owned(),
        err: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// Observes a pair in a ledger, as `lastcall plan observe` does, without a process a pair.
pub fn observe(
    ledger: &lastcall_ledger::Ledger,
    current: &lastcall_contract::Contract,
    candidate: &lastcall_contract::Contract,
    config: &lastcall_compare::PairConfig,
) {
    let object = |contract: &lastcall_contract::Contract| {
        ledger.put_object(contract.definition.verbatim.as_bytes()).expect("the definition is stored")
    };
    let pair = lastcall_ledger::control::Pair {
        tool_id: current.id.split('@').next().unwrap_or_default().to_owned(),
        current: current.id.clone(),
        current_digest: object(current),
        candidate: candidate.id.clone(),
        candidate_digest: object(candidate),
        config_digest: ledger
            .put_object(&lastcall_compare::config_bytes(config))
            .expect("the configuration is stored"),
        epoch: lastcall_compare::epoch_digest(current, candidate, config),
        comparator: lastcall_compare::COMPARATOR_VERSION,
    };
    ledger.append_control(lastcall_ledger::control::Control::Observe { pair }).expect("the pair is observed");
}

/// The lines of a file of the data folder (`LASTCALL_DATA`, else beside the repository); without it a message and `None`.
pub fn data_lines(file: &str) -> Option<Vec<serde_json::Value>> {
    let folder = std::env::var_os("LASTCALL_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(folder.join(file)) else {
        eprintln!("SKIPPED: no data folder; set LASTCALL_DATA to the folder that holds {file}");
        return None;
    };
    Some(
        text.lines()
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_str(l).expect("JSON Lines"))
            .collect(),
    )
}
