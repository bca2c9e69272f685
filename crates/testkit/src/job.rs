//! Jobs for tests.

use serde_json::{Value, json};

/// Returns a job with these steps, and generous limits.
pub fn job(steps: &Value) -> Value {
    json!({
        "protocol_version": "1.0",
        "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 1_048_576 },
        "steps": steps,
    })
}

/// A step that runs a shell script.
pub fn shell(script: &str) -> Value {
    json!({ "type": "run_command", "args": { "argv": ["/bin/sh", "-c", script] } })
}
