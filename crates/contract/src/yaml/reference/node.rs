//! `node`.

use super::Takes::{List, One, Section, Sections};
use super::Unsaid::{Means, Members, Required, Stands};
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
        meaning: "the name that orchestrators know it by",
    },
    Member {
        name: "max_concurrency",
        takes: One("a whole number from 1 to 4096"),
        unsaid: Means("two for each processor", "4"),
        meaning: "jobs at once",
    },
    Member {
        name: "max_waiting",
        takes: One("a whole number from 1 to 1000000"),
        unsaid: Stands("1000"),
        meaning: "jobs that may wait",
    },
    Member {
        name: "max_request_bytes",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("10m"),
        meaning: "the largest body of a request",
    },
    Member { name: "timeouts", takes: Section(TIMEOUTS), unsaid: Members, meaning: "how long jobs may last" },
    Member {
        name: "sessions",
        takes: Section(SESSIONS),
        unsaid: Members,
        meaning: "how many sessions there may be, and for how long",
    },
    Member {
        name: "retention",
        takes: Section(RETENTION),
        unsaid: Members,
        meaning: "how long results are kept",
    },
    Member {
        name: "callback",
        takes: Section(CALLBACK),
        unsaid: Means("nobody is told", ""),
        meaning: "who is told of jobs",
    },
    Member {
        name: "billing_account",
        takes: One("1 to 256 visible characters of ASCII"),
        unsaid: Stands("local"),
        meaning: "who pays for what jobs call of models",
    },
    Member {
        name: "managed_services",
        takes: Sections(SERVICES),
        unsaid: Means("none", ""),
        meaning: "services that requests are passed on to",
    },
    Member {
        name: "managed_proxy_timeout_seconds",
        takes: One("a number of seconds from 1 to 3600, with up to three places"),
        unsaid: Stands("30"),
        meaning: "how long such a service may take to answer",
    },
    Member {
        name: "traces",
        takes: Section(TRACES),
        unsaid: Means("nobody", ""),
        meaning: "who collects traces",
    },
    Member { name: "sandbox", takes: Section(SANDBOX), unsaid: Members, meaning: "which images may be run" },
];

const TRACES: &[Member] = &[
    Member {
        name: "endpoint",
        takes: One("a URL such as http://127.0.0.1:4318"),
        unsaid: Required("http://127.0.0.1:4318"),
        meaning: "where a collector takes OTLP by HTTP; `/v1/traces` is put behind it",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose collector on this machine is shown `OTEL_EXPORTER_OTLP_HEADERS` by plain http",
    },
    Member {
        name: "timeout_seconds",
        takes: One("a number of seconds from 1 to 60, with up to three places"),
        unsaid: Stands("10"),
        meaning: "how long it may take to answer",
    },
];

const SERVICES: &[Member] = &[
    Member { name: "id", takes: One(NAME), unsaid: Required("pma-main"), meaning: "its name on this node" },
    Member { name: "type", takes: One(NAME), unsaid: Required("pma"), meaning: "what it is" },
    Member {
        name: "url",
        takes: One("a URL such as http://127.0.0.1:8090"),
        unsaid: Required("http://127.0.0.1:8090"),
        meaning: "where it is; a path stands before every path",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine gets requests by plain http",
    },
];

const SANDBOX: &[Member] = &[
    Member {
        name: "allowed_images",
        takes: List("an image such as debian:12, debian:* or registry.example/team/*"),
        unsaid: Means("none: only the node's own programs", "[\"debian:*\"]"),
        meaning: "the images that jobs and sessions may run",
    },
    Member {
        name: "default_image",
        takes: One("an image such as debian:12, or native"),
        unsaid: Means("native: the node's own programs", "native"),
        meaning: "what runs where a job or a session says nothing",
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
        meaning: "how long a job may last that says nothing of it",
    },
    Member {
        name: "max_seconds",
        takes: One(JOB_TIME),
        unsaid: Stands("10800"),
        meaning: "how long any may, extensions included",
    },
    Member {
        name: "may_extend",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether a job that runs may be given more time",
    },
];

const SESSIONS: &[Member] = &[
    Member {
        name: "max",
        takes: One("a whole number from 0 to 100000"),
        unsaid: Stands("100"),
        meaning: "sessions at once",
    },
    Member {
        name: "max_lifetime_seconds",
        takes: One(JOB_TIME),
        unsaid: Stands("10800"),
        meaning: "how long one may last",
    },
    Member {
        name: "idle_timeout_seconds",
        takes: One(JOB_TIME),
        unsaid: Stands("900"),
        meaning: "how long nothing may be done in one that says nothing of it",
    },
];

const RETENTION: &[Member] = &[
    Member {
        name: "acknowledged_seconds",
        takes: One(KEPT_TIME),
        unsaid: Stands("86400"),
        meaning: "how long from the acknowledgement",
    },
    Member {
        name: "unacknowledged_seconds",
        takes: One(KEPT_TIME),
        unsaid: Stands("2592000"),
        meaning: "how long from the job's end where nobody has acknowledged",
    },
];

const CALLBACK: &[Member] = &[
    Member {
        name: "url",
        takes: One(URL),
        unsaid: Means("only jobs with a `callback_url` are told of", "https://orchestrator.example/status"),
        meaning: "where messages go",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine gets messages by plain http",
    },
    Member {
        name: "secret_file",
        takes: One("a file"),
        unsaid: Required("/etc/belljar/callback-secret"),
        meaning: "the file with the key that messages are signed with",
    },
    Member {
        name: "allowed_origins",
        takes: List(URL),
        unsaid: Stands("[]"),
        meaning: "where jobs may say that messages go, besides",
    },
];
