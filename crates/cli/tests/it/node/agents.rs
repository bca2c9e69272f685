//! Agents of a node's jobs, checked by the rules of its configuration, and the effects of those on their sandboxes.

mod calls;
mod categories;
mod kept;
mod queried;
mod sandboxes;
mod trusted;
mod words;

use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Writes a configuration with these agents and further settings, and returns its path.
fn configure(world: &World, rules: &str) -> String {
    world.write("config.yaml", rules).display().to_string()
}

/// Returns the job with this agent.
fn as_agent(name: &str, mut job: Value) -> Value {
    job["agent_id"] = json!(name);
    job
}
