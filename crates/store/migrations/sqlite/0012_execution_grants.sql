-- Grants by which graphs are executed in sandboxes: what each allows, as a JSON document without its revocation, and the SHA-256 of
-- the secret that shows it.
CREATE TABLE IF NOT EXISTS execution_grants (
    id            TEXT PRIMARY KEY NOT NULL,
    secret_sha256 TEXT    NOT NULL,
    document      TEXT    NOT NULL,
    issued_at_ms  INTEGER NOT NULL,
    revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;
