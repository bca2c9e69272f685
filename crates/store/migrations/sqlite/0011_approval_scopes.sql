-- What calls that people are asked about act on besides their arguments, as JSON; nothing for calls without a scope, and for those that
-- were asked about before there were scopes.
CREATE TABLE IF NOT EXISTS approval_scopes (
    approval_id TEXT PRIMARY KEY NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    scope       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
