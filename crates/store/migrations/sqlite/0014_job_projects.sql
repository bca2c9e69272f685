-- The project of each job, by which callers that are bound to a project see theirs, and the time that a job which is asked to stop has
-- left to end by itself: nothing stands for none.
ALTER TABLE jobs ADD COLUMN project_id TEXT;
ALTER TABLE jobs ADD COLUMN grace_ms INTEGER;
UPDATE jobs SET project_id = assignment ->> '$.project_id';

-- Ids of tasks are the same in either case.
DROP INDEX IF EXISTS jobs_of_task;
CREATE INDEX IF NOT EXISTS jobs_by_task ON jobs (lower(task_id), number);
