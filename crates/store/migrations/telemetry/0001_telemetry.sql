-- What a node tells of itself. Times are texts, `2026-01-02T03:04:05.678Z`, so that they sort as they are.

CREATE TABLE IF NOT EXISTS schema_version (
    id         INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    version    INTEGER NOT NULL,
    applied_at TEXT    NOT NULL
) STRICT;

INSERT OR IGNORE INTO schema_version (id, version, applied_at) VALUES (1, 1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));

CREATE TABLE IF NOT EXISTS node_boot (
    boot_id        TEXT PRIMARY KEY NOT NULL,
    booted_at      TEXT NOT NULL,
    node_slug      TEXT NOT NULL,
    build_version  TEXT NOT NULL,
    platform_os    TEXT NOT NULL,
    platform_arch  TEXT NOT NULL,
    kernel_version TEXT NOT NULL
) STRICT;

-- Sandboxes, as the Worker API calls them: containers.
CREATE TABLE IF NOT EXISTS container_inventory (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    container_id   TEXT NOT NULL UNIQUE,
    container_name TEXT NOT NULL,
    kind           TEXT NOT NULL,
    runtime        TEXT NOT NULL,
    image_ref      TEXT NOT NULL,
    created_at     TEXT NOT NULL,
    last_seen_at   TEXT NOT NULL,
    status         TEXT NOT NULL,
    exit_code      INTEGER,
    task_id        TEXT,
    job_id         TEXT,
    labels_json    TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS container_inventory_of_job ON container_inventory (task_id, job_id);
CREATE INDEX IF NOT EXISTS container_inventory_in_status ON container_inventory (kind, status);
CREATE INDEX IF NOT EXISTS container_inventory_seen ON container_inventory (last_seen_at);

CREATE TABLE IF NOT EXISTS container_event (
    event_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    occurred_at  TEXT NOT NULL,
    container_id TEXT NOT NULL,
    action       TEXT NOT NULL,
    status       TEXT NOT NULL,
    exit_code    INTEGER,
    task_id      TEXT,
    job_id       TEXT,
    details_json TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS container_event_of_container ON container_event (container_id, occurred_at);
CREATE INDEX IF NOT EXISTS container_event_old ON container_event (occurred_at);

CREATE TABLE IF NOT EXISTS log_event (
    log_id       INTEGER PRIMARY KEY AUTOINCREMENT,
    occurred_at  TEXT NOT NULL,
    source_kind  TEXT NOT NULL,
    source_name  TEXT NOT NULL,
    container_id TEXT,
    stream       TEXT,
    level        TEXT,
    message      TEXT NOT NULL,
    fields_json  TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS log_event_of_source ON log_event (source_kind, source_name, log_id);
CREATE INDEX IF NOT EXISTS log_event_of_container ON log_event (container_id, log_id) WHERE container_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS log_event_old ON log_event (occurred_at);
