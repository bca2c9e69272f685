-- Values by keys, each for somebody or something. A scope is written as `user:ID`, with the id of a task in lower case. A number is
-- never given again: the ids of entries tell which of two came first.
CREATE TABLE IF NOT EXISTS preferences (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    scope         TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    value         TEXT    NOT NULL,
    value_type    TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    updated_by    TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS preferences_by_scope ON preferences (scope, key);
