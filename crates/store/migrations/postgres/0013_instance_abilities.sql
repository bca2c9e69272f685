-- What each instance can run (images, models), as JSON of its own: by that instances decide whether a job waits for another one.
CREATE TABLE IF NOT EXISTS instance_abilities (
    instance  TEXT PRIMARY KEY NOT NULL REFERENCES instances (instance) ON DELETE CASCADE,
    abilities TEXT NOT NULL
);
