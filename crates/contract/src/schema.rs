//! The published JSON Schemas (draft 2020-12), made from the types.

use crate::job::Job;
use crate::result::JobResult;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The schema of `job.json`.
pub fn job() -> Schema {
    schema_of::<Job>("Belljar job", "urn:belljar:schema:job:1.0")
}

/// The schema of `result.json`.
pub fn result() -> Schema {
    schema_of::<JobResult>("Belljar result", "urn:belljar:schema:result:1.0")
}

fn schema_of<T: JsonSchema>(title: &str, id: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.insert("$id".to_owned(), id.into());
    schema.insert("title".to_owned(), title.into());
    schema
}
