//! Projects of tasks: a task belongs to the project of its jobs, or of the first caller bound to a project that wrote to it.

use super::Jobs;
use crate::database::{DatabaseError, values};
use belljar_contract::id::{ProjectId, TaskId};

/// Finds a reason why a task is not of a project: a job of another project or of none, or another project that the task is bound to. Jobs
/// count more than a binding.
const FOREIGN: &str = "SELECT 1 AS found FROM jobs \
    WHERE lower(task_id) = $1 AND (project_id IS NULL OR project_id <> $2) \
    UNION ALL SELECT 1 AS found FROM task_projects WHERE task_id = $1 AND project_id <> $2 \
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE lower(task_id) = $1 AND project_id = $2) LIMIT 1";

/// Binds a task unless it is bound, or has a job of another project or of none.
const BIND: &str = "INSERT INTO task_projects (task_id, project_id) SELECT $1, $2 WHERE NOT EXISTS (\
    SELECT 1 FROM jobs WHERE lower(task_id) = $1 AND (project_id IS NULL OR project_id <> $2)) \
    ON CONFLICT (task_id) DO NOTHING";

/// Finds a binding to the project.
const BOUND: &str = "SELECT project_id FROM task_projects WHERE task_id = $1 AND project_id = $2";

/// Name of the write at failpoints.
const WRITE: &str = "bind_task";

// === impl Jobs ===

impl Jobs {
    /// Returns true if the task is of another project: it has a job that is not of this one, or it is bound to another one.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn is_of_other_project(
        &self,
        task_id: &TaskId,
        project_id: &ProjectId,
    ) -> Result<bool, DatabaseError> {
        let found = self.database.fetch(FOREIGN, values![task_id.key(), project_id.to_string()]).await?;
        Ok(!found.is_empty())
    }

    /// Binds the task to the project, unless it is of another one. Returns true if it is of this project now. Of concurrent calls for
    /// different projects, one returns true.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read or written.
    pub async fn bind_to_project(
        &self,
        task_id: &TaskId,
        project_id: &ProjectId,
    ) -> Result<bool, DatabaseError> {
        let key = || values![task_id.key(), project_id.to_string()];
        if self.database.fetch(BOUND, key()).await?.is_empty() {
            self.database.write(WRITE, BIND, key()).await?;
        }
        Ok(!self.is_of_other_project(task_id, project_id).await?)
    }
}
