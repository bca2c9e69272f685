//! `node`.

use super::AcceptedValues::{List, One, Section, Sections};
use super::MemberDefault::{Described, Members, Required, Value};
use super::Scalar::{Boolean, Seconds, Size, Text, Whole};
use super::{Member, Override, Scalar, USER};

const NAME: Scalar = Text("1 to 64 letters, digits, `-` and `_`");
const URL: Scalar = Text("a URL such as https://orchestrator.example/status");
const JOB_TIME: Scalar = Seconds(1000, 2592000000);
const KEPT_TIME: Scalar = Seconds(0, 315360000000);

/// Variables of OpenTelemetry that name the collector, the first one that is set.
const COLLECTORS: &[Override] = &[
    Override::Variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
    Override::Variable("OTEL_EXPORTER_OTLP_ENDPOINT"),
];

const fn of_node(name: &'static str) -> Override {
    Override::Flag { name, commands: "`belljar node`" }
}

pub(super) const NODE: &[Member] = &[
    Member::new(
        "id",
        One(Text("1 to 256 visible characters of ASCII")),
        Described("the machine's name", "worker-7"),
        "name by which orchestrators know the node",
    ),
    Member::new(
        "max_concurrency",
        One(Whole(1, 4096)),
        Described("two for each processor", "4"),
        "maximum concurrent jobs",
    )
    .overridden_by(&[of_node("--max-concurrency")]),
    Member::new("max_waiting", One(Whole(1, 1000000)), Value("1000"), "maximum queued jobs")
        .overridden_by(&[of_node("--max-waiting")]),
    Member::new("max_request_bytes", One(Size(1024)), Value("10m"), "maximum size of a request body"),
    Member::new("timeouts", Section(TIMEOUTS), Members, "time limits of jobs"),
    Member::new("sessions", Section(SESSIONS), Members, "limits of sessions"),
    Member::new("retention", Section(RETENTION), Members, "retention of results"),
    Member::new(
        "callback",
        Section(CALLBACK),
        Described("no callbacks", ""),
        "destination of callbacks about jobs",
    ),
    Member::new(
        "billing_account",
        One(Text("1 to 256 visible characters of ASCII")),
        Value("local"),
        "account that pays for the model calls of jobs",
    ),
    Member::new(
        "managed_services",
        Sections(SERVICES),
        Described("none", ""),
        "services to which the node forwards requests",
    ),
    Member::new(
        "managed_proxy_timeout_seconds",
        One(Seconds(1000, 3600000)),
        Value("30"),
        "time limit for a response of such a service",
    ),
    Member::new("traces", Section(TRACES), Described("no collector", ""), "collector of traces"),
    Member::new("sandbox", Section(SANDBOX), Members, "allowed images"),
];

const TRACES: &[Member] = &[
    Member::new(
        "endpoint",
        One(Text("a URL such as http://127.0.0.1:4318")),
        Required("http://127.0.0.1:4318"),
        "URL of an OTLP collector over HTTP; `/v1/traces` is appended",
    ).overridden_by(COLLECTORS),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local collectors may receive `OTEL_EXPORTER_OTLP_HEADERS` over plain http",
    ).alternative(),
    Member::new("timeout_seconds", One(Seconds(1000, 60000)), Value("10"), "time limit for a response"),
];

const SERVICES: &[Member] = &[
    Member::new("id", One(NAME), Required("pma-main"), "unique name on this node"),
    Member::new("type", One(NAME), Required("pma"), "description"),
    Member::new(
        "url",
        One(Text("a URL such as http://127.0.0.1:8090")),
        Required("http://127.0.0.1:8090"),
        "base URL; its path precedes every requested path",
    ),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive requests over plain http",
    )
    .alternative(),
];

const SANDBOX: &[Member] = &[
    Member::new(
        "allowed_images",
        List(Text("an image such as debian:12, debian:* or registry.example/team/*")),
        Described("none: only the node's own programs", "[\"debian:*\"]"),
        "images that jobs and sessions may run",
    ),
    Member::new(
        "default_image",
        One(Text("an image such as debian:12, or native")),
        Described("native: the node's own programs", "native"),
        "default image of jobs and sessions",
    ),
    Member::new(
        "require_digest_pinning",
        One(Boolean),
        Value("false"),
        "whether an image must be named by its digest",
    ),
];

const TIMEOUTS: &[Member] = &[
    Member::new("default_seconds", One(JOB_TIME), Value("3600"), "default time limit of a job"),
    Member::new(
        "max_seconds",
        One(JOB_TIME),
        Value("10800"),
        "maximum time limit of a job, extensions included",
    ),
    Member::new("may_extend", One(Boolean), Value("true"), "whether running jobs may get extensions"),
];

const SESSIONS: &[Member] = &[
    Member::new("max", One(Whole(0, 100000)), Value("100"), "maximum concurrent sessions"),
    Member::new("max_lifetime_seconds", One(JOB_TIME), Value("10800"), "maximum lifetime of a session"),
    Member::new("idle_timeout_seconds", One(JOB_TIME), Value("900"), "default idle timeout of a session"),
];

const RETENTION: &[Member] = &[
    Member::new(
        "acknowledged_seconds",
        One(KEPT_TIME),
        Value("86400"),
        "retention after the acknowledgement",
    ),
    Member::new(
        "unacknowledged_seconds",
        One(KEPT_TIME),
        Value("2592000"),
        "retention after the end of a job that is not acknowledged",
    ),
];

const CALLBACK: &[Member] = &[
    Member::new(
        "url",
        One(URL),
        Described("callbacks only for jobs with a `callback_url`", "https://orchestrator.example/status"),
        "URL of callbacks",
    )
    .secret(),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive messages over plain http",
    )
    .alternative(),
    Member::new(
        "secret_file",
        One(Text("a file")),
        Required("/etc/belljar/callback-secret"),
        "file with the key that signs messages",
    ),
    Member::new("allowed_origins", List(URL), Value("[]"), "additional callback URLs that jobs may name"),
];
