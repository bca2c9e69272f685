-- What people are asked about calls. The key of a call is a digest of who calls, which tool, and the digest of the arguments; of the
-- questions about one call at most one is open.
CREATE TABLE IF NOT EXISTS approvals (
    number           BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id               TEXT    NOT NULL,
    call_key         TEXT    NOT NULL,
    decision_id      TEXT    NOT NULL,
    agent_id         TEXT,
    subject          TEXT    NOT NULL,
    tool             TEXT    NOT NULL,
    action_type      TEXT    NOT NULL,
    risk             TEXT    NOT NULL,
    arguments_sha256 TEXT    NOT NULL,
    arguments        TEXT    NOT NULL,
    reason           TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    created_at_ms    BIGINT  NOT NULL,
    expires_at_ms    BIGINT ,
    decided_at_ms    BIGINT ,
    decided_by       TEXT,
    decision_reason  TEXT,
    used_at_ms       BIGINT 
);

CREATE UNIQUE INDEX IF NOT EXISTS approvals_by_id ON approvals (id);
CREATE UNIQUE INDEX IF NOT EXISTS approvals_open ON approvals (call_key) WHERE status IN ('pending', 'approved');
CREATE INDEX IF NOT EXISTS approvals_by_age ON approvals (created_at_ms) WHERE status NOT IN ('pending', 'approved');
