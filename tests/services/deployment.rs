//! What is handed to people for deployment says what is so: the files of settings are read, and the compose file names services,
//! commands and places that are there. Its services themselves are started, without Docker, by the tests beside this one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use lastcall_tests::{answer, binary};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn service() -> Command {
    built_service("lastcall-record")
}

fn built_service(name: &str) -> Command {
    Command::new(binary().with_file_name(name))
}

#[test]
fn the_files_of_settings_are_read_and_their_settings_reach_librdkafka() {
    for (name, wanted) in [
        ("kafka.toml", ["bootstrap.servers=localhost:9092", "client.id=lastcall"]),
        ("s3.toml", ["security.protocol=SSL", "enable.ssl.certificate.verification=true"]),
    ] {
        let file = root().join("pipelines").join(name);
        let said = answer(service().arg("--config").arg(&file).arg("--print-config"));
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        for setting in wanted {
            assert!(said.out.lines().any(|line| line == setting), "{name}: {setting}: {}", said.out);
        }
    }
    let folder = tempfile::TempDir::new().unwrap();
    let odd = folder.path().join("odd.toml");
    for (text, what) in [
        ("ledgr = \"x\"", "unknown field `ledgr`"),
        ("from = \"noon\"", "has to be earliest, latest, or an offset"),
        ("memory = 1", "`memory` is 1, and has to lie in 8..=65536"),
        ("ledger = \"l\"", "name Kafka's brokers"),
        (
            "brokers = \"b\"\n[librdkafka]\n\"enable.auto.commit\" = true",
            "the ledger says where reading goes on",
        ),
    ] {
        std::fs::write(&odd, text).unwrap();
        let said = answer(service().arg("--config").arg(&odd).arg("--print-config"));
        assert!(said.code == 2 && said.err.contains(what), "{text}: {}", said.err);
    }
}

#[test]
fn the_compose_file_names_what_is_there() {
    let text = std::fs::read_to_string(root().join("docker/compose.yaml")).unwrap();
    let compose: Value = serde_saphyr::from_str(&text).unwrap();
    let services: BTreeMap<String, Value> = serde_json::from_value(compose["services"].clone()).unwrap();
    let built = |service: &Value| service["build"]["dockerfile"].as_str().map(|at| root().join(at));
    for (name, service) in &services {
        assert!(service["image"].is_string(), "{name} has no image");
        if let Some(dockerfile) = built(service) {
            assert!(dockerfile.is_file(), "{name}: {}", dockerfile.display());
        }
        for (other, needs) in service["depends_on"].as_object().into_iter().flatten() {
            let there = services
                .get(other)
                .unwrap_or_else(|| panic!("{name} waits for {other}, which is no service"));
            match needs["condition"].as_str().unwrap() {
                "service_healthy" => assert!(there["healthcheck"].is_object(), "{other} has no health check"),
                "service_completed_successfully" => {
                    assert!(there["restart"].is_null(), "{other} never completes");
                }
                condition => panic!("{name}: {condition}"),
            }
        }
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port} is open to everybody");
        }
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let volume = volume.as_str().unwrap().split(':').next().unwrap().to_owned();
            assert!(compose["volumes"].get(&volume).is_some(), "{name}: no volume {volume}");
        }
    }
    let dockerfile = std::fs::read_to_string(root().join("docker/Dockerfile")).unwrap();
    for binary in ["lastcall", "lastcall-record", "lastcall-mirror"] {
        assert!(dockerfile.contains(&format!("/src/target/release/{binary}")), "{binary}");
    }
    // Each service's command is one that it takes, and its health check asks where it listens.
    for (name, binary) in [("record", "lastcall-record"), ("mirror", "lastcall-mirror")] {
        let command: Vec<String> = serde_json::from_value(services[name]["command"].clone()).unwrap();
        let here: Vec<String> = command[1..].iter().map(|arg| here(arg, &compose)).collect();
        let said = answer(built_service(binary).args(here).arg("--print-config"));
        assert_eq!((command[0].as_str(), said.code), (binary, 0), "{}", said.err);
        let check = services[name]["healthcheck"]["test"].to_string();
        let port = command.iter().find_map(|arg| arg.strip_prefix("0.0.0.0:")).unwrap();
        assert!(check.contains(&format!(":{port}/health/live")), "{check}");
        assert!(
            check.contains("curl") && dockerfile.contains(" curl "),
            "the check's command is in the image"
        );
    }
}

/// What a place in a container is outside: a config is a file beside the compose file.
fn here(arg: &str, compose: &Value) -> String {
    let mut configs = compose["services"]["mirror"]["configs"].as_array().into_iter().flatten();
    let Some(config) = configs.find(|config| config["target"] == *arg) else { return arg.to_owned() };
    let file = compose["configs"][config["source"].as_str().unwrap()]["file"].as_str().unwrap();
    root().join("docker").join(file).to_str().unwrap().to_owned()
}

/// The mirror's own settings fit the registry that goes into the image, and those of the pipeline the examples'.
#[test]
fn the_files_of_the_mirror_fit_their_registry() {
    for name in ["docker/mirror.toml", "pipelines/mirror.toml"] {
        let said = answer(
            built_service("lastcall-mirror")
                .arg("--config")
                .arg(root().join(name))
                .arg("--registry")
                .arg(root().join("examples/agent-tools"))
                .arg("--dry-run"),
        );
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        for tool in ["orders.lookup@2.0.0", "refund.create_request@2.0.0", "sms.send@2.0.0: never executed"] {
            assert!(said.out.contains(tool), "{name}: {tool}: {}", said.out);
        }
    }
}
