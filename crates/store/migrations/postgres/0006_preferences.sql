-- Values by keys, each for somebody or something. A scope is written as `user:ID`, with the id of a task in lower case. A number is
-- never given again: the ids of entries tell which of two came first.
CREATE TABLE IF NOT EXISTS preferences (
    number        BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope         TEXT    COLLATE "C" NOT NULL,
    key           TEXT    COLLATE "C" NOT NULL,
    value         TEXT    NOT NULL,
    value_type    TEXT    NOT NULL,
    version       BIGINT  NOT NULL,
    updated_at_ms BIGINT  NOT NULL,
    updated_by    TEXT    NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS preferences_by_scope ON preferences (scope, key);
