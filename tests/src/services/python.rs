//! Python environments with packages that tests need: installed by the tests from the package index, kept under `target/`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Packages that stand together in one environment.
#[derive(Clone, Copy)]
pub struct Environment {
    /// Its folder's name; another set of versions has another name.
    pub name: &'static str,
    /// What `pip install` is given.
    pub packages: &'static [&'static str],
}

/// The environment's Python, installed at the first call of a process. Without Python or the package index a message
/// that says what is not tested, and `None`; `LASTCALL_SERVICES=required` makes that a failure.
pub fn environment(environment: Environment, without: &str) -> Option<PathBuf> {
    static INSTALLED: Mutex<BTreeMap<&str, Result<PathBuf, String>>> = Mutex::new(BTreeMap::new());
    let installed =
        INSTALLED.lock().unwrap().entry(environment.name).or_insert_with(|| install(environment)).clone();
    match installed {
        Ok(python) => Some(python),
        Err(why) if std::env::var("LASTCALL_SERVICES").is_ok_and(|v| v == "required") => panic!("{why}"),
        Err(why) => {
            eprintln!("SKIPPED: {without}: {why}");
            None
        }
    }
}

fn install(Environment { name, packages }: Environment) -> Result<PathBuf, String> {
    // target/<profile>/deps/<test> → target/tmp
    let test = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = test.ancestors().nth(3).ok_or("the test lies in no target folder")?;
    let folder = target.join("tmp").join(name);
    std::fs::create_dir_all(target.join("tmp")).map_err(|e| e.to_string())?;
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let done = folder.join("installed");
    if done.is_file() {
        return Ok(python);
    }
    let _ = std::fs::remove_dir_all(&folder);
    let run = |command: &mut Command, what: &str| match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{what} failed: {}", said.lines().last().unwrap_or_default()))
        }
        Err(error) => Err(format!("{what}: {error}")),
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder), "python3 -m venv")?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    run(&mut pip, &format!("pip install {}", packages.join(" ")))?;
    std::fs::write(done, packages.join("\n")).map_err(|e| e.to_string())?;
    Ok(python)
}
