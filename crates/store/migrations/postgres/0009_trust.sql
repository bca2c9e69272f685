-- What is recorded of agents and counts for the trust in them. Nothing is ever changed or removed.
CREATE TABLE IF NOT EXISTS trust_events (
    agent_id TEXT   COLLATE "C" NOT NULL,
    event_id TEXT   COLLATE "C" NOT NULL,
    at_ms    BIGINT NOT NULL,
    event    TEXT   NOT NULL,
    PRIMARY KEY (agent_id, event_id)
);
