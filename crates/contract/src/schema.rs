//! The published JSON Schemas (draft 2020-12), made from the types.

use crate::agent::AgentResult;
use crate::job::Job;
use crate::result::JobResult;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The schema of `job.json`: what may be written.
pub fn job() -> Schema {
    schema_of::<Job>(SchemaSettings::draft2020_12().for_deserialize(), "job")
}

/// The schema of `result.json`: what will be found there.
pub fn result() -> Schema {
    schema_of::<JobResult>(SchemaSettings::draft2020_12().for_serialize(), "result")
}

/// The schema of what `belljar agent --json` prints.
pub fn agent_result() -> Schema {
    schema_of::<AgentResult>(SchemaSettings::draft2020_12().for_serialize(), "agent-result")
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings, name: &str) -> Schema {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("$id".to_owned(), format!("urn:belljar:schema:{name}:1.0").into());
    schema.insert("title".to_owned(), format!("Belljar {name}").into());
    schema
}
