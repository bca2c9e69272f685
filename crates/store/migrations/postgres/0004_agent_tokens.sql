-- What agents show to be let in, by its digest alone. The key of a job is its id in lower case; it is empty for who has none.
CREATE TABLE IF NOT EXISTS agent_tokens (
    sha256        TEXT    PRIMARY KEY NOT NULL,
    kind          TEXT    NOT NULL,
    task_id       TEXT,
    job_id        TEXT,
    job_key       TEXT    NOT NULL,
    project_id    TEXT,
    session       TEXT,
    user_id       TEXT,
    issued_at_ms  BIGINT  NOT NULL,
    expires_at_ms BIGINT  NOT NULL,
    revoked_at_ms BIGINT 
);

CREATE INDEX IF NOT EXISTS agent_tokens_alive ON agent_tokens (job_key) WHERE revoked_at_ms IS NULL;
CREATE INDEX IF NOT EXISTS agent_tokens_by_end ON agent_tokens (expires_at_ms);
