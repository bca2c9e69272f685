-- Jobs, what happens to them, and who carries them out. Times are milliseconds since 1970 (UTC) and order nothing.

-- One row for each process that carries out jobs. `beat` grows as long as it lives.
CREATE TABLE IF NOT EXISTS instances (
    instance    TEXT    PRIMARY KEY NOT NULL,
    node        TEXT    NOT NULL,
    beat        BIGINT  NOT NULL,
    begun_at_ms BIGINT  NOT NULL
);

CREATE TABLE IF NOT EXISTS jobs (
    number             BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- As whoever submitted it wrote it; the key is the same in lower case.
    job_id             TEXT    NOT NULL,
    job_key            TEXT    NOT NULL UNIQUE,
    task_id            TEXT    NOT NULL,
    idempotency_key    TEXT,
    assignment         TEXT    NOT NULL,
    assignment_sha256  TEXT    NOT NULL,
    state              TEXT    NOT NULL,
    attempt            BIGINT  NOT NULL,
    max_attempts       BIGINT  NOT NULL,
    owner              TEXT,
    fence              BIGINT  NOT NULL,
    cancel_requested   BIGINT  NOT NULL,
    turn               BIGINT  NOT NULL,
    events             BIGINT  NOT NULL,
    run_id             TEXT,
    accepted_at_ms     BIGINT  NOT NULL,
    started_at_ms      BIGINT,
    ended_at_ms        BIGINT,
    deadline_ms        BIGINT,
    outcome            TEXT,
    outcome_sha256     TEXT,
    acknowledged_at_ms BIGINT
);

-- Each index is one more page that every job has written to the disk: there is none but for what is asked often.
CREATE UNIQUE INDEX IF NOT EXISTS jobs_by_request ON jobs (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_waiting ON jobs (turn, number) WHERE state = 'accepted' AND owner IS NULL;
CREATE INDEX IF NOT EXISTS jobs_owned ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_of_task ON jobs (task_id, number);
CREATE INDEX IF NOT EXISTS jobs_in_state ON jobs (state, number);

CREATE TABLE IF NOT EXISTS job_events (
    job    BIGINT  NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
    id     BIGINT  NOT NULL,
    at_ms  BIGINT  NOT NULL,
    kind   TEXT    NOT NULL,
    event  TEXT    NOT NULL,
    PRIMARY KEY (job, id)
);

-- Tasks take turns, however many jobs each of them has: this is the turn of each task's last job. The row without a task
-- is the turn that is on.
CREATE TABLE IF NOT EXISTS turns (
    task_id TEXT    PRIMARY KEY NOT NULL,
    turn    BIGINT  NOT NULL
);

CREATE INDEX IF NOT EXISTS jobs_acknowledged ON jobs (acknowledged_at_ms) WHERE acknowledged_at_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_ended ON jobs (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

-- The files that jobs have left. What is in them lies elsewhere, by its digest, and may be several jobs'.
CREATE TABLE IF NOT EXISTS artifacts (
    job        BIGINT  NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
    place      BIGINT  NOT NULL,
    path       TEXT    NOT NULL,
    sha256     TEXT    NOT NULL,
    size_bytes BIGINT  NOT NULL,
    PRIMARY KEY (job, place)
);

CREATE INDEX IF NOT EXISTS artifacts_by_content ON artifacts (sha256);

-- Whom status and result are sent to, and how far that is: `told` is the last event that they have acknowledged.
CREATE TABLE IF NOT EXISTS callbacks (
    job      BIGINT  PRIMARY KEY NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
    url      TEXT    NOT NULL,
    told     BIGINT  NOT NULL,
    attempts BIGINT  NOT NULL,
    owner    TEXT,
    state    TEXT    NOT NULL
);

CREATE INDEX IF NOT EXISTS callbacks_pending ON callbacks (owner) WHERE state = 'pending';
