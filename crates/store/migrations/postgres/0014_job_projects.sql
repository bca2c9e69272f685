-- The project of each job, by which callers that are bound to a project see theirs, and the time that a job which is asked to stop has
-- left to end by itself: nothing stands for none.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS project_id TEXT;
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS grace_ms BIGINT;
-- PostgreSQL reads no document with an escaped NUL: such jobs have no project.
UPDATE jobs SET project_id = assignment::json ->> 'project_id'
    WHERE position('"project_id"' in assignment) > 0 AND position('\u0000' in assignment) = 0;

-- Ids of tasks are the same in either case.
DROP INDEX IF EXISTS jobs_of_task;
CREATE INDEX IF NOT EXISTS jobs_by_task ON jobs (lower(task_id), number);
