-- What operators set for the whole system, and the images that they let be run besides those of the configuration.
CREATE TABLE IF NOT EXISTS settings (
    key           TEXT    PRIMARY KEY NOT NULL,
    value         TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    updated_by    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS allowed_images (
    image_ref   TEXT    PRIMARY KEY NOT NULL,
    name        TEXT,
    added_at_ms INTEGER NOT NULL,
    added_by    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
