-- What agents may read on how something is done. A scope is written as `user:ID`, with the id of a task in lower case.
CREATE TABLE IF NOT EXISTS skills (
    id            TEXT    PRIMARY KEY NOT NULL,
    name          TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    size_bytes    INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    updated_by    TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS skills_by_name ON skills (scope, name);
