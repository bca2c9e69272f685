-- What operators set for the whole system, and the images that they let be run besides those of the configuration.
CREATE TABLE IF NOT EXISTS settings (
    key           TEXT    COLLATE "C" PRIMARY KEY NOT NULL,
    value         TEXT    NOT NULL,
    version       BIGINT  NOT NULL,
    updated_at_ms BIGINT  NOT NULL,
    updated_by    TEXT    NOT NULL
);

CREATE TABLE IF NOT EXISTS allowed_images (
    image_ref   TEXT    COLLATE "C" PRIMARY KEY NOT NULL,
    name        TEXT,
    added_at_ms BIGINT  NOT NULL,
    added_by    TEXT    NOT NULL
);
