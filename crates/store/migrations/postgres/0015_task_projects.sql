-- The project of each task that a caller bound to a project was the first to write to: it may have no jobs yet. Ids of tasks are in lower case.
CREATE TABLE IF NOT EXISTS task_projects (
    task_id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL
);
