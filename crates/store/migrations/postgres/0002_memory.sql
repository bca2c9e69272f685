-- What an agent has noted down for its job. It goes with the job.
CREATE TABLE IF NOT EXISTS memory (
    job           BIGINT  NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
    key           TEXT    COLLATE "C" NOT NULL,
    content       TEXT    NOT NULL,
    summary       TEXT,
    size_bytes    BIGINT  NOT NULL,
    created_at_ms BIGINT  NOT NULL,
    updated_at_ms BIGINT  NOT NULL,
    PRIMARY KEY (job, key)
);
