-- The files that tasks keep. What is in them lies elsewhere, by its digest, and may be several tasks'. The key of a task is its id
-- in lower case.
CREATE TABLE IF NOT EXISTS task_artifacts (
    task_key      TEXT    NOT NULL,
    path          TEXT    NOT NULL,
    sha256        TEXT    NOT NULL,
    size_bytes    INTEGER NOT NULL,
    content_type  TEXT,
    job_id        TEXT,
    run_id        TEXT,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (task_key, path)
) STRICT;

CREATE INDEX IF NOT EXISTS task_artifacts_by_content ON task_artifacts (sha256);
CREATE INDEX IF NOT EXISTS task_artifacts_by_age ON task_artifacts (updated_at_ms);
