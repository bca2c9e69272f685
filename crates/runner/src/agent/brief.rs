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

const NOTHING_TO_ACHIEVE: &str = "nothing to achieve: the job has `inference`, no steps, and no `requirements`, \
     `acceptance_criteria` or `task_context`, neither in `context` nor in files in /job/context; add one of them, or steps";

// === impl Brief ===

impl Brief {
    /// Of a job whose file is in that directory, if it came in one; nothing where steps are all that there is to do.
    ///
    /// A job that names models and gives them nothing to achieve is refused: its success would say nothing.
    pub(crate) fn of(job: &Job, directory: Option<&Path>, log: &Log<'_>) -> Result<Option<Self>, Failure> {
        let context = directory.map(|directory| directory.join("context"));
        let material = Material::gather(job, context.as_deref(), log)
            .map_err(|error| Failure::new(FailureCode::SchemaValidation, error.to_string()))?;
        let has_steps = !job.steps.is_empty();
        let has_aim = match job.inference {
            Some(_) => material.has_an_aim(has_steps),
            // Steps carry out what is required of them; what is to be verified is verified with and without them.
            None => !material.criteria.is_empty() || (!has_steps && material.has_an_aim(has_steps)),
        };
        if !has_aim {
            return match job.inference {
                Some(_) if !has_steps => Err(Failure::new(FailureCode::SchemaValidation, NOTHING_TO_ACHIEVE)),
                _ => Ok(None),
            };
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
