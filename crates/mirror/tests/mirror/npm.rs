//! Real MCP servers, installed from npm under `target/tmp`: the servers that the protocol's authors publish.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use lastcall_contract::{Registry, RegistryFiles};
use lastcall_mirror::{Mirror, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::common::{call, record, told};

const PACKAGES: [&str; 2] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

/// The folder of the packages; without node or the registry a message, or where they are required a failure.
fn servers(without: &str) -> Option<PathBuf> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match INSTALLED.get_or_init(install) {
        Ok(folder) => Some(folder.join("node_modules/@modelcontextprotocol")),
        Err(why) if std::env::var("LASTCALL_SERVICES").is_ok_and(|v| v == "required") => panic!("{why}"),
        Err(why) => {
            eprintln!("SKIPPED: {without}: {why}");
            None
        }
    }
}

fn install() -> Result<PathBuf, String> {
    // target/<profile>/deps/<test> → target/tmp
    let test = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = test.ancestors().nth(3).ok_or("the test lies in no target folder")?;
    let folder = target.join("tmp").join("mcp-servers-2026.8.31");
    let done = folder.join("installed");
    if done.is_file() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"])
        .arg(&folder);
    let output = npm.args(PACKAGES).stdin(Stdio::null()).output().map_err(|e| format!("npm: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("npm install failed: {}", said.lines().last().unwrap_or_default()));
    }
    std::fs::write(done, PACKAGES.join("\n")).map_err(|e| e.to_string())?;
    Ok(folder)
}

/// A registry of tools: id, side effect, definition.
fn registry(tools: &[(&str, &str, Value)]) -> Registry {
    let mut files = RegistryFiles::new();
    for (id, effect, definition) in tools {
        files.insert(format!("{id}/schemas/v1.json"), definition.to_string());
        files.insert(
            format!("{id}/tool.yaml"),
            format!(
                "tool_id: {id}\nrisk_level: low\nside_effect: {effect}\nversions:\n  - {{version: \"1\", schema: schemas/v1.json, source: mcp}}\n"
            ),
        );
    }
    Registry::read(&files).expect("the registry reads")
}

fn definition(name: &str, properties: &Value) -> Value {
    json!({"name": name, "description": "A tool.", "inputSchema": {"type": "object", "properties": properties}})
}

fn sum() -> Value {
    json!({"name": "get-sum", "description": "A tool.", "inputSchema": {"type": "object", "properties": {
        "a": {"type": "number", "description": "First number"},
        "b": {"type": "number", "description": "Second number"}},
        "required": ["a", "b"], "$schema": "http://json-schema.org/draft-07/schema#"}})
}

async fn answered(mirror: &Mirror, tool: &str, arguments: Value) -> (String, String) {
    let text = record(tool, "c1", &json!({"arguments": arguments}));
    let answer = mirror.replay(&call(&text)).await.candidates.remove(0);
    (told(&answer), answer.result.unwrap_or_default())
}

fn everything() -> Registry {
    registry(&[
        ("e.sum", "read", sum()),
        ("e.weather", "read", definition("get-structured-content", &json!({"location": {"type": "string"}}))),
        ("e.gone", "read", definition("no-such-tool", &json!({}))),
        ("e.long", "read", definition("trigger-long-running-operation", &json!({}))),
        ("e.write", "write", definition("echo", &json!({}))),
    ])
}

fn all(endpoint: &str) -> String {
    let of = |tool: &str, suppression: &str| {
        format!(
            "[tools.\"{tool}\"]\ncandidates = [{{contract = \"{tool}@1\", suppression = \"{suppression}\", {endpoint}}}]\n"
        )
    };
    format!(
        "[defaults]\ntimeout = \"60s\"\n{}{}{}{}timeout = \"1500ms\"\n{}",
        of("e.sum", "replica"),
        of("e.weather", "replica"),
        of("e.gone", "replica"),
        of("e.long", "replica"),
        of("e.write", "dry_run")
    )
}

async fn asked_everything(mirror: &Mirror) {
    for _ in 0..20 {
        let (told, result) = answered(mirror, "e.sum", json!({"a": 1.5, "b": 2})).await;
        assert_eq!(told, "ok - replica");
        assert!(result.contains("The sum of 1.5 and 2 is 3.5."), "{result}");
    }
    let (told, _) = answered(mirror, "e.sum", json!({"a": "x"})).await;
    assert_eq!(told, "invalid_arguments - replica");
    let (told, result) = answered(mirror, "e.weather", json!({"location": "Chicago"})).await;
    assert_eq!(told, "ok - replica");
    assert!(result.contains("structuredContent"), "{result}");
    assert_eq!(answered(mirror, "e.gone", json!({})).await.0, "unavailable unknown_tool replica");
    // the server does not know the mode, so nothing is sent
    assert_eq!(
        answered(mirror, "e.write", json!({"message": "x"})).await.0,
        "unavailable dry_run_not_offered not_executed"
    );
    let (told, _) = answered(mirror, "e.long", json!({"duration": 30, "steps": 30})).await;
    assert_eq!(told, "timed_out timed_out replica");
    assert_eq!(answered(mirror, "e.sum", json!({"a": 1, "b": 2})).await.0, "ok - replica");
    let probed = mirror.probe().await;
    let of = |tool: &str| probed.iter().find(|p| p.tool == tool).unwrap();
    assert!(of("e.sum").fits && of("e.sum").notes.is_empty(), "{:?}", of("e.sum"));
    assert!(of("e.weather").fits && of("e.weather").notes[0].starts_with("its inputSchema is not that"));
    assert!(!of("e.gone").fits && !of("e.write").fits);
}

#[tokio::test]
async fn the_everything_server_over_stdio() {
    let Some(folder) = servers("the everything server over stdio") else { return };
    let argv = json!(["node", folder.join("server-everything/dist/index.js"), "stdio"]);
    let settings = Settings::parse(&all(&format!("mcp_command = {argv}")), "mirror.toml").unwrap();
    asked_everything(&Mirror::new(&everything(), &settings).unwrap()).await;
}

#[tokio::test]
async fn the_everything_server_over_http() {
    let Some(folder) = servers("the everything server over HTTP") else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = tokio::process::Command::new("node");
    server
        .arg(folder.join("server-everything/dist/index.js"))
        .arg("streamableHttp")
        .env("PORT", port.to_string());
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("listening") {
            break;
        }
    }
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let settings =
        Settings::parse(&all(&format!("mcp = \"http://127.0.0.1:{port}/mcp\"")), "mirror.toml").unwrap();
    asked_everything(&Mirror::new(&everything(), &settings).unwrap()).await;
    server.kill().await.unwrap();
}

#[tokio::test]
async fn the_filesystem_server_writes_nothing() {
    let Some(servers) = servers("the filesystem server") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("there.txt"), "hello").unwrap();
    let argv = json!(["node", servers.join("server-filesystem/dist/index.js"), root]);
    let tools = registry(&[
        ("f.read", "read", definition("read_text_file", &json!({"path": {"type": "string"}}))),
        ("f.write", "write", definition("write_file", &json!({"path": {}, "content": {}}))),
        ("f.send", "send", definition("write_file", &json!({"path": {}, "content": {}}))),
    ]);
    let of = |tool: &str, rest: &str| {
        format!("[tools.\"{tool}\"]\ncandidates = [{{contract = \"{tool}@1\"{rest}}}]\n")
    };
    let parsed = |text: &str| Settings::parse(text, "mirror.toml").unwrap();
    let text = format!(
        "[defaults]\ntimeout = \"60s\"\n{}{}{}",
        of("f.read", &format!(", suppression = \"snapshot\", mcp_command = {argv}")),
        of("f.write", &format!(", suppression = \"dry_run\", mcp_command = {argv}")),
        of("f.send", "")
    );
    let mirror = Mirror::new(&tools, &parsed(&text)).unwrap();
    let (told, result) = answered(&mirror, "f.read", json!({"path": root.join("there.txt")})).await;
    assert_eq!(told, "ok - snapshot");
    assert!(result.contains("hello"), "{result}");
    assert_eq!(answered(&mirror, "f.read", json!({"path": "/nowhere"})).await.0, "business_error - snapshot");
    let write = json!({"path": root.join("new.txt"), "content": "x"});
    for _ in 0..10 {
        let (told, _) = answered(&mirror, "f.write", write.clone()).await;
        assert_eq!(told, "unavailable dry_run_not_offered not_executed");
        assert_eq!(answered(&mirror, "f.send", write.clone()).await.0, "not_run - not_executed");
    }
    for rest in ["suppression = \"replica\", ", "suppression = \"sandbox\", ", ""] {
        let text = of("f.send", &format!(", {rest}mcp_command = {argv}"));
        assert!(Mirror::new(&tools, &parsed(&text)).is_err());
    }
    let stub = Mirror::new(&tools, &parsed(&of("f.write", ", stub = true"))).unwrap();
    assert_eq!(answered(&stub, "f.write", write.clone()).await.0, "ok - stub");
    let names: Vec<_> = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["there.txt"]);
    // the same call does write where a sandbox is stated: the count above is no accident
    let text = format!(
        "[defaults]\ntimeout = \"60s\"\n{}",
        of("f.write", &format!(", suppression = \"sandbox\", mcp_command = {argv}"))
    );
    let sandbox = Mirror::new(&tools, &parsed(&text)).unwrap();
    assert_eq!(answered(&sandbox, "f.write", write).await.0, "ok - sandbox");
    assert!(root.join("new.txt").is_file());
}
