-- What an agent has noted down for its job. It goes with the job.
CREATE TABLE IF NOT EXISTS memory (
    job           INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
    key           TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    summary       TEXT,
    size_bytes    INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (job, key)
) STRICT;
