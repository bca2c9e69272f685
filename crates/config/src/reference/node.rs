//! `node`.

use super::AcceptedValues::{List, One, Section, Sections};
use super::MemberDefault::{Means, Members, Required, Stands};
use super::{BOOLEAN, Member, USER};

const NAME: &str = "1 to 64 letters, digits, `-` and `_`";
const URL: &str = "a URL such as https://orchestrator.example/status";
const JOB_TIME: &str = "a number of seconds from 1 to 2592000, with up to three places";
const KEPT_TIME: &str = "a number of seconds from 0 to 315360000, with up to three places";

pub(super) const NODE: &[Member] = &[
    Member {
        name: "id",
        takes: One("1 to 256 visible characters of ASCII"),
        unsaid: Means("the machine's name", "worker-7"),
        meaning: "name by which orchestrators know the node",
    },
    Member {
        name: "max_concurrency",
        takes: One("a whole number from 1 to 4096"),
        unsaid: Means("two for each processor", "4"),
        meaning: "maximum concurrent jobs",
    },
    Member {
        name: "max_waiting",
        takes: One("a whole number from 1 to 1000000"),
        unsaid: Stands("1000"),
        meaning: "maximum queued jobs",
    },
    Member {
        name: "max_request_bytes",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("10m"),
        meaning: "maximum size of a request body",
    },
    Member { name: "timeouts", takes: Section(TIMEOUTS), unsaid: Members, meaning: "time limits of jobs" },
    Member { name: "sessions", takes: Section(SESSIONS), unsaid: Members, meaning: "limits of sessions" },
    Member { name: "retention", takes: Section(RETENTION), unsaid: Members, meaning: "retention of results" },
    Member {
        name: "callback",
        takes: Section(CALLBACK),
        unsaid: Means("no callbacks", ""),
        meaning: "destination of callbacks about jobs",
    },
    Member {
        name: "billing_account",
        takes: One("1 to 256 visible characters of ASCII"),
        unsaid: Stands("local"),
        meaning: "account that pays for the model calls of jobs",
    },
    Member {
        name: "managed_services",
        takes: Sections(SERVICES),
        unsaid: Means("none", ""),
        meaning: "services to which the node forwards requests",
    },
    Member {
        name: "managed_proxy_timeout_seconds",
        takes: One("a number of seconds from 1 to 3600, with up to three places"),
        unsaid: Stands("30"),
        meaning: "time limit for a response of such a service",
    },
    Member {
        name: "traces",
        takes: Section(TRACES),
        unsaid: Means("no collector", ""),
        meaning: "collector of traces",
    },
    Member { name: "sandbox", takes: Section(SANDBOX), unsaid: Members, meaning: "allowed images" },
];

const TRACES: &[Member] = &[
    Member {
        name: "endpoint",
        takes: One("a URL such as http://127.0.0.1:4318"),
        unsaid: Required("http://127.0.0.1:4318"),
        meaning: "URL of an OTLP collector over HTTP; `/v1/traces` is appended",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local collectors may receive \
    `OTEL_EXPORTER_OTLP_HEADERS` over plain http",
    },
    Member {
        name: "timeout_seconds",
        takes: One("a number of seconds from 1 to 60, with up to three places"),
        unsaid: Stands("10"),
        meaning: "time limit for a response",
    },
];

const SERVICES: &[Member] = &[
    Member {
        name: "id",
        takes: One(NAME),
        unsaid: Required("pma-main"),
        meaning: "unique name on this \
    node",
    },
    Member { name: "type", takes: One(NAME), unsaid: Required("pma"), meaning: "description" },
    Member {
        name: "url",
        takes: One("a URL such as http://127.0.0.1:8090"),
        unsaid: Required("http://127.0.0.1:8090"),
        meaning: "base URL; its path precedes every requested path",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive requests over plain \
    http",
    },
];

const SANDBOX: &[Member] = &[
    Member {
        name: "allowed_images",
        takes: List("an image such as debian:12, debian:* or registry.example/team/*"),
        unsaid: Means("none: only the node's own programs", "[\"debian:*\"]"),
        meaning: "images that jobs and sessions may run",
    },
    Member {
        name: "default_image",
        takes: One("an image such as debian:12, or native"),
        unsaid: Means("native: the node's own programs", "native"),
        meaning: "default image of jobs and sessions",
    },
    Member {
        name: "require_digest_pinning",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether an image must be named by its digest",
    },
];

const TIMEOUTS: &[Member] = &[
    Member {
        name: "default_seconds",
        takes: One(JOB_TIME),
        unsaid: Stands("3600"),
        meaning: "default time limit of a job",
    },
    Member {
        name: "max_seconds",
        takes: One(JOB_TIME),
        unsaid: Stands("10800"),
        meaning: "maximum time limit of a job, extensions included",
    },
    Member {
        name: "may_extend",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether running jobs may get extensions",
    },
];

const SESSIONS: &[Member] = &[
    Member {
        name: "max",
        takes: One("a whole number from 0 to 100000"),
        unsaid: Stands("100"),
        meaning: "maximum concurrent sessions",
    },
    Member {
        name: "max_lifetime_seconds",
        takes: One(JOB_TIME),
        unsaid: Stands("10800"),
        meaning: "maximum lifetime of a session",
    },
    Member {
        name: "idle_timeout_seconds",
        takes: One(JOB_TIME),
        unsaid: Stands("900"),
        meaning: "default idle timeout of a session",
    },
];

const RETENTION: &[Member] = &[
    Member {
        name: "acknowledged_seconds",
        takes: One(KEPT_TIME),
        unsaid: Stands("86400"),
        meaning: "retention after the acknowledgement",
    },
    Member {
        name: "unacknowledged_seconds",
        takes: One(KEPT_TIME),
        unsaid: Stands("2592000"),
        meaning: "retention after the end of a job that is not acknowledged",
    },
];

const CALLBACK: &[Member] = &[
    Member {
        name: "url",
        takes: One(URL),
        unsaid: Means("callbacks only for jobs with a `callback_url`", "https://orchestrator.example/status"),
        meaning: "URL of callbacks",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive messages over plain \
    http",
    },
    Member {
        name: "secret_file",
        takes: One("a file"),
        unsaid: Required("/etc/belljar/callback-secret"),
        meaning: "file with the key that signs messages",
    },
    Member {
        name: "allowed_origins",
        takes: List(URL),
        unsaid: Stands("[]"),
        meaning: "additional callback URLs that jobs may name",
    },
];
