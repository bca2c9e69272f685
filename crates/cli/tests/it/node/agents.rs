//! Agents of a node's jobs, judged by the rules of its configuration, and what their sandboxes have by them.

mod calls;
mod categories;
mod kept;
mod queried;
mod sandboxes;
mod trusted;
mod words;

use belljar_testkit::world::World;
use serde_json::{Value, json};

/// A configuration with these agents and more.
fn configure(world: &World, rules: &str) -> String {
    world.write("config.yaml", rules).display().to_string()
}

/// The same job, done as that agent.
fn as_agent(name: &str, mut job: Value) -> Value {
    job["agent_id"] = json!(name);
    job
}
