//! What the daemon tells of itself in the telemetry.

use crate::job::Workplace;
use crate::machine;
use belljar_store::database::DatabaseError;
use belljar_store::telemetry::{Boot, FILE, Said, Telemetry};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;

/// The part that looks after sandboxes and jobs, and the part that answers.
const MANAGER: &str = "node_manager";
const API: &str = "worker_api";

/// Opens the telemetry. Nothing depends on it: what can't be read any more is put aside, and it begins anew.
pub(super) async fn open(state: &Path) -> Result<Telemetry, DatabaseError> {
    let error = match Telemetry::open(state).await {
        Ok(telemetry) => return Ok(telemetry),
        Err(error) => error,
    };
    tracing::error!(error = crate::chain(&error), "the telemetry is put aside");
    let file = state.join(FILE);
    for suffix in ["", "-wal", "-shm"] {
        let name = |end: &str| file.with_file_name(format!("telemetry.db{end}{suffix}"));
        // What can't be moved is found by the next attempt.
        let _ = std::fs::rename(name(""), name(".damaged"));
    }
    Telemetry::open(state).await
}

/// The node comes up.
pub(super) fn begun(workplace: &Workplace) {
    let platform = machine::platform();
    workplace.telemetry.booted(Boot {
        at: workplace.now(),
        boot_id: workplace.owner.instance.clone(),
        node_slug: workplace.settings.node_slug.clone(),
        build_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel_version: platform.kernel_version,
    });
    say(workplace, MANAGER, "started", &json!({ "instance": workplace.owner.instance }));
}

/// It answers.
pub(super) fn serves(workplace: &Workplace, address: SocketAddr) {
    say(workplace, API, "started", &json!({ "address": address.to_string() }));
}

/// It takes nothing more, and ends what runs.
pub(super) fn stops(workplace: &Workplace) {
    say(workplace, MANAGER, "stopping", &json!({}));
}

/// Nothing runs any more.
pub(super) fn stopped(workplace: &Workplace) {
    say(workplace, API, "stopped", &json!({}));
    say(workplace, MANAGER, "stopped", &json!({ "outcome": "everything that ran has ended" }));
}

fn say(workplace: &Workplace, service: &'static str, message: &str, fields: &serde_json::Value) {
    let (message, fields) = (message.to_owned(), fields.clone());
    workplace.telemetry.log(Said { at: workplace.now(), service, level: "info", message, fields });
}
