//! A witness outside of the node: a model provider that every job of one kind calls first, and that counts its callers.
//! The node doesn't write this record.

use super::client::{FollowUp, WantedJob};
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// The witness.
pub(super) struct CallbackWitness(ModelServer);

/// Sends the job's id to the only model.
const CALL: &str = r#"
import json, os, urllib.request
body = {"model": "witness", "messages": [{"role": "user", "content": os.environ["CYNODE_JOB_ID"]}]}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())))
print("seen")
"#;

// === impl CallbackWitness ===

impl CallbackWitness {
    pub(super) fn start() -> Self {
        Self(ModelServer::start(Script::always(Answer::text("seen"))))
    }

    /// Returns the provider's part of a node's configuration.
    pub(super) fn configuration(&self, world: &World) -> Value {
        world.write("key", "a-key-for-models-0123456789");
        let key = world.path().join("key");
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let provider = json!({
            "name": "house", "kind": "litellm", "url": self.0.url(), "credential": { "file": key.display().to_string() },
        });
        json!({ "providers": [provider], "models": [{ "name": "witness", "provider": "house" }] })
    }

    /// Returns a job that calls it.
    pub(super) fn job() -> WantedJob {
        let mut job = node::command(&["python3", "-c", CALL]);
        job["sandbox"]["use_inference"] = json!(true);
        WantedJob::new(job, FollowUp::Nothing)
    }

    /// Returns the number of times that a job has called it.
    pub(super) fn has_seen(&self, job_id: &str) -> usize {
        let requests = self.0.requests();
        requests.iter().filter(|request| String::from_utf8_lossy(&request.body).contains(job_id)).count()
    }
}
