//! Aim of the agent, fixed before anything of the job has run that could change it.

use super::material::Material;
use super::todo::{TodoFile, TodoList};
use crate::log::Log;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::result::Failure;
use std::path::Path;

/// Material for the agent, its todo file, and the todo list of an earlier run.
pub(crate) struct Brief {
    pub(super) material: Material,
    pub(super) file: TodoFile,
    pub(super) earlier: Option<TodoList>,
}

const NOTHING_TO_ACHIEVE: &str = "the agent has no goal: the job has `inference`, no steps, and no `requirements`, \
     `acceptance_criteria` or `task_context`, neither in `context` nor in files in /job/context; add one of them, or steps";

// === impl Brief ===

impl Brief {
    /// Reads the brief of a job from its document and from files in its directory, if it came in one. Returns `None` if
    /// the job has only steps.
    ///
    /// A job that names models and gives them nothing to achieve is refused: its success would mean nothing.
    pub(crate) fn of(job: &Job, directory: Option<&Path>, log: &Log<'_>) -> Result<Option<Self>, Failure> {
        let context = directory.map(|directory| directory.join("context"));
        let material = Material::gather(job, context.as_deref(), log)
            .map_err(|error| Failure::new(FailureCode::SchemaValidation, error.to_string()))?;
        let has_steps = !job.steps.is_empty();
        let has_aim = match job.inference {
            Some(_) => material.has_an_aim(has_steps),
            // In a job without models, the steps fulfil the requirements; acceptance criteria are verified in any case.
            None => !material.criteria.is_empty() || (!has_steps && material.has_an_aim(has_steps)),
        };
        if !has_aim {
            return match job.inference {
                Some(_) if !has_steps => Err(Failure::new(FailureCode::SchemaValidation, NOTHING_TO_ACHIEVE)),
                _ => Ok(None),
            };
        }
        let file = TodoFile::in_directory(directory, job.job_id.as_str()).unwrap_or_else(|error| {
            log.warn(format!("cannot write todo.json: {error}"));
            TodoFile::nowhere()
        });
        let earlier = file.earlier().unwrap_or_else(|error| {
            log.warn(format!("cannot read todo.json, a new one is created: {error}"));
            None
        });
        Ok(Some(Self { material, file, earlier }))
    }
}
