//! Telemetry records of the daemon about itself.

use crate::job::NodeState;
use crate::machine;
use belljar_store::database::DatabaseError;
use belljar_store::telemetry::{FILE, NodeBoot, ServiceLogEvent, Telemetry};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;

/// The service for sandboxes and jobs, and the service for the API.
const MANAGER: &str = "node_manager";
const API: &str = "worker_api";

/// Opens the telemetry. It is not essential: a database that can't be read is put aside, and a new one begun.
pub(super) async fn open(state: &Path) -> Result<Telemetry, DatabaseError> {
    let error = match Telemetry::open(state).await {
        Ok(telemetry) => return Ok(telemetry),
        Err(error) => error,
    };
    tracing::error!(error = crate::chain(&error), "the telemetry is put aside");
    let file = state.join(FILE);
    for suffix in ["", "-wal", "-shm"] {
        let name = |end: &str| file.with_file_name(format!("telemetry.db{end}{suffix}"));
        // A file that can't be moved makes the second attempt fail.
        let _ = std::fs::rename(name(""), name(".damaged"));
    }
    Telemetry::open(state).await
}

/// Records that the node starts.
pub(super) fn begun(workplace: &NodeState) {
    let platform = machine::platform();
    workplace.telemetry.booted(NodeBoot {
        at: workplace.now(),
        boot_id: workplace.owner.instance.clone(),
        node_slug: workplace.settings.node_slug.clone(),
        build_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel_version: platform.kernel_version,
    });
    say(workplace, MANAGER, "started", &json!({ "instance": workplace.owner.instance }));
}

/// Records that the API is served.
pub(super) fn serves(workplace: &NodeState, address: SocketAddr) {
    say(workplace, API, "started", &json!({ "address": address.to_string() }));
}

/// Records that the node stops accepting work, and ends running jobs.
pub(super) fn stops(workplace: &NodeState) {
    say(workplace, MANAGER, "stopping", &json!({}));
}

/// Records that nothing runs any more.
pub(super) fn stopped(workplace: &NodeState) {
    say(workplace, API, "stopped", &json!({}));
    say(workplace, MANAGER, "stopped", &json!({ "outcome": "everything that ran has ended" }));
}

fn say(workplace: &NodeState, service: &'static str, message: &str, fields: &serde_json::Value) {
    let (message, fields) = (message.to_owned(), fields.clone());
    workplace.telemetry.log(ServiceLogEvent { at: workplace.now(), service, level: "info", message, fields });
}
