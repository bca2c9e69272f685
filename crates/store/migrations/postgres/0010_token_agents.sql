-- As which agent whoever shows a token calls; nothing for those who call as nobody by name.
CREATE TABLE IF NOT EXISTS agent_token_agents (
    sha256   TEXT PRIMARY KEY NOT NULL REFERENCES agent_tokens (sha256) ON DELETE CASCADE,
    agent_id TEXT NOT NULL
);
