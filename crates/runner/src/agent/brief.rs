//! What is to be achieved, as it is known before anything of the job has run that could say otherwise.

use super::material::Material;
use super::todo::{TodoFile, TodoList};
use crate::log::Log;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::result::Failure;
use std::path::Path;

/// Such.
pub(crate) struct Brief {
    pub(super) material: Material,
    pub(super) file: TodoFile,
    pub(super) earlier: Option<TodoList>,
}

// === impl Brief ===

impl Brief {
    /// Of a job whose file is in that directory, if it came in one; nothing where steps are all that there is to do.
    pub(crate) fn of(job: &Job, directory: Option<&Path>, log: &Log<'_>) -> Result<Option<Self>, Failure> {
        let context = directory.map(|directory| directory.join("context"));
        let material = Material::gather(job, context.as_deref(), log)
            .map_err(|error| Failure::new(FailureCode::SchemaValidation, error.to_string()))?;
        let has_aim = match job.inference {
            Some(_) => material.has_an_aim(!job.steps.is_empty()),
            None => material.criteria.iter().any(|criterion| criterion.check.is_some()),
        };
        if !has_aim {
            return Ok(None);
        }
        let file = TodoFile::in_directory(directory, job.job_id.as_str()).unwrap_or_else(|error| {
            log.warn(format!("todo.json can't be kept: {error}"));
            TodoFile::nowhere()
        });
        let earlier = file.earlier().unwrap_or_else(|error| {
            log.warn(format!("todo.json can't be read, and is made anew: {error}"));
            None
        });
        Ok(Some(Self { material, file, earlier }))
    }
}
