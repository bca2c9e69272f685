//! The mounts of a sandbox and their attributes.

use super::ComparedProperties;
use crate::way::StartMethod;
use serde_json::{Value, json};

/// Maximum size of a sandbox's files in memory, in bytes.
const SCRATCH_BYTES: u64 = 1 << 30;

/// The kind of a bind mount from the host, whatever its file system.
const OF_HOST: &str = "the host's";

/// Returns for each place the found and the required mount.
pub(super) fn compare(told: &Value, way: StartMethod) -> ComparedProperties {
    let places = expected(way).into_iter().map(|(place, expected)| {
        let mut found = told[place].clone();
        if expected["kind"] == OF_HOST && !found.is_null() {
            found = of_host(&found);
        }
        (format!("mount at {place}"), found, expected)
    });
    places.collect()
}

/// Returns those properties of a bind mount that the sandbox decides: not its kind, and not `noexec`.
fn of_host(found: &Value) -> Value {
    let mut attributes = found["attributes"].as_array().unwrap().clone();
    attributes.retain(|attribute| attribute != "noexec");
    json!({ "kind": OF_HOST, "attributes": attributes, "bytes": null })
}

fn expected(way: StartMethod) -> Vec<(&'static str, Value)> {
    let mount = |kind: &str, attributes: &[&str], bytes: Option<u64>| json!({ "kind": kind, "attributes": attributes, "bytes": bytes });
    let (closed, open) = (["read-only", "nosuid", "nodev"], ["nosuid", "nodev"]);
    let root = mount("tmpfs", &closed, Some(SCRATCH_BYTES));
    let scratch = mount("tmpfs", &open, Some(SCRATCH_BYTES));
    let workspace = match way {
        StartMethod::Empty | StartMethod::Web => scratch.clone(),
        StartMethod::Direct => mount(OF_HOST, &open, None),
        StartMethod::Copy | StartMethod::Job | StartMethod::Session => mount("overlay", &open, None),
    };
    let job = if way == StartMethod::Job { mount(OF_HOST, &open, None) } else { Value::Null };
    vec![
        ("/", root.clone()),
        ("/dev", root.clone()),
        ("/etc", root),
        ("/dev/pts", mount("devpts", &["nosuid", "noexec"], None)),
        ("/dev/shm", scratch.clone()),
        ("/home/agent", scratch.clone()),
        ("/tmp", scratch),
        ("/lent", mount("overlay", &closed, None)),
        ("/proc", mount("proc", &["read-only", "nosuid", "nodev", "noexec"], None)),
        ("/usr", mount(OF_HOST, &closed, None)),
        ("/workspace", workspace),
        ("/job", job),
    ]
}
