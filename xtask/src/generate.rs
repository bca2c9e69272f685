//! Generated files: the published schemas, the reference of the configuration, the index of promises, the compiled
//! seccomp filter, and the policy in the format of container engines.

use crate::{effects, promises};
use belljar_config::reference;
use belljar_confine::seccomp::program::ConstantsSource;
use belljar_confine::seccomp::{profile, programs};
use belljar_contract::schema;
use belljar_contract::worker::openapi;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// The files, by path, with the text they must have.
pub(crate) fn files() -> Result<Vec<(&'static str, String)>, serde_json::Error> {
    let pretty = |schema| serde_json::to_string_pretty(&schema).map(|text| text + "\n");
    Ok(vec![
        ("docs/schema/job.schema.json", pretty(schema::job())?),
        ("docs/reference/configuration.md", reference::page()),
        ("docs/schema/configuration.schema.json", format!("{:#}\n", belljar_config::schema())),
        ("docs/reference/configuration-effects.md", effects::page()),
        (promises::PAGE, promises::page()),
        ("crates/confine/src/seccomp/compiled.rs", ConstantsSource(&programs()).to_string()),
        ("crates/confine/src/seccomp/profile.json", profile().to_string()),
        ("docs/schema/result.schema.json", pretty(schema::result())?),
        ("docs/schema/worker-api.openapi.json", format!("{:#}\n", openapi::document())),
        ("docs/schema/agent-result.schema.json", pretty(schema::agent_result())?),
    ])
}

/// Writes them.
pub(crate) fn write(root: &Path) -> Result<ExitCode, Box<dyn Error>> {
    for (path, text) in files()? {
        fs::write(root.join(path), text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
