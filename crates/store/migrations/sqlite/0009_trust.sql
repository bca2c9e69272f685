-- What is recorded of agents and counts for the trust in them. Nothing is ever changed or removed.
CREATE TABLE IF NOT EXISTS trust_events (
    agent_id TEXT    NOT NULL,
    event_id TEXT    NOT NULL,
    at_ms    INTEGER NOT NULL,
    event    TEXT    NOT NULL,
    PRIMARY KEY (agent_id, event_id)
) STRICT, WITHOUT ROWID;
