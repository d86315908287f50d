//! That a tool which sends has no executor is a fact of the types: a program that makes one does not compile.

use std::path::{Path, PathBuf};
use std::process::Command;

const EFFECTS: [&str; 3] = ["Read", "Write", "Send"];
const MODES: [&str; 4] = ["Replica", "Snapshot", "DryRun", "Sandbox"];
/// The pairs that have an executor, and no others.
const RUN: [(&str, &str); 4] =
    [("Read", "Replica"), ("Read", "Snapshot"), ("Write", "DryRun"), ("Write", "Sandbox")];

/// The library that this test was linked with: the newest beside it.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let entries = std::fs::read_dir(deps).unwrap().map(|entry| entry.unwrap().path());
    let ours = entries.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("liblastcall_mirror-") && name.ends_with(".rlib")
    });
    ours.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).expect("the library")
}

/// What the compiler says of a program; `None`: it compiles.
fn refused(library: &Path, program: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.rs");
    std::fs::write(&file, program).unwrap();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never", "--out-dir"]);
    rustc.arg(folder.path()).arg("-L").arg(format!("dependency={}", library.parent().unwrap().display()));
    rustc.arg("--extern").arg(format!("lastcall_mirror={}", library.display())).arg(&file);
    let output = rustc.output().expect("rustc");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_tool_that_sends_has_no_executor() {
    let library = library();
    for effect in EFFECTS {
        for mode in MODES {
            let program = format!(
                "use lastcall_mirror::suppress::{{Executor, effect, mode}};\n\
                 pub fn executor() -> Option<Executor<effect::{effect}, mode::{mode}>> {{ None }}\n"
            );
            let said = refused(&library, &program);
            if RUN.contains(&(effect, mode)) {
                assert_eq!(said, None, "{effect} under {mode}");
                continue;
            }
            let said = said.unwrap_or_else(|| panic!("{effect} has an executor under {mode}"));
            assert!(said.contains("error[E0277]: no executor: a tool of side effect"), "{said}");
            assert!(said.contains(&format!("effect::{effect}` is never run under `{mode}`")), "{said}");
        }
    }
    // nobody else can say that it runs
    let program = "use lastcall_mirror::suppress::{RunsUnder, effect, mode};\n\
                   impl RunsUnder<mode::Replica> for effect::Send {}\n";
    assert!(refused(&library, program).is_some_and(|said| said.contains("error[E0117]")));
    let program = "use lastcall_mirror::suppress::{RunsUnder, mode};\npub struct Mine;\n\
                   impl RunsUnder<mode::Replica> for Mine {}\n";
    assert!(refused(&library, program).is_some_and(|said| said.contains("Sealed` is not satisfied")));
}
