//! `tools`.

use super::AcceptedValues::{ByName, List, One, Section, Sections};
use super::MemberDefault::{Described, Members, Required, Value};
use super::Scalar::{Any, Boolean, OneOf, Text, Whole};
use super::inference::CREDENTIAL;
use super::{Member, Scalar, USER};

const NAME: Scalar = Text("1 to 32 of a-z, 0-9, `_` and `-`");
const PATH: Scalar = Text("an absolute path without `.` and `..` that is not the root");
const URL: Scalar = Text("a URL such as https://hooks.example/team");
const SOURCE: &str = "source: exactly one of these members";

pub(super) const TOOLS: &[Member] = &[
    Member::new(
        "databases",
        Section(DATABASES),
        Members,
        "databases that agents may query; names are unique across kinds",
    ),
    Member::new(
        "channels",
        Section(CHANNELS),
        Members,
        "channels for agents' messages; names are unique across kinds",
    ),
    Member::new(
        "metrics",
        Sections(METRICS),
        Described("none", ""),
        "metrics servers with the Prometheus API; names are unique",
    ),
];

const DATABASES: &[Member] = &[
    Member::new("sqlite", Sections(SQLITE), Described("none", ""), "SQLite files on this host"),
    Member::new("postgres", Sections(POSTGRES), Described("none", ""), "PostgreSQL databases"),
];

const fn named(sample: &'static str) -> Member {
    Member::new("name", One(NAME), Required(sample), "unique name that agents use")
}

const WRITABLE: Member = Member::new(
    "writable",
    One(Boolean),
    Value("false"),
    "whether `sql_execute` and `sql_migrate` may change it",
);

const SQLITE: &[Member] =
    &[named("house"), Member::new("path", One(PATH), Required("/srv/house.db"), "the file"), WRITABLE];

const POSTGRES: &[Member] = &[
    named("books"),
    Member::new(
        "host",
        One(Text("a name, an address, or the absolute path of a socket's directory")),
        Required("db.example"),
        "the server",
    ),
    Member::new("port", One(Whole(1, 65535)), Value("5432"), "its port"),
    Member::new("database", One(Text("a name")), Required("books"), "name of the database"),
    Member::new(
        "user",
        One(Text("a name")),
        Required("reader"),
        "role; roles with access to the server's files or programs, such as superusers, are rejected",
    ),
    Member::new("password", Section(CREDENTIAL), Described("none", "{file: /run/keys/books}"), SOURCE),
    Member::new(
        "tls",
        One(Boolean),
        Value("true"),
        "whether TLS with a valid certificate is required; not used for sockets",
    ),
    Member::new(
        "ca",
        One(PATH),
        Described("the public CA certificates", "/etc/belljar/house-ca.pem"),
        "file with the trusted CA certificates",
    ),
    WRITABLE,
];

const CHANNELS: &[Member] = &[
    Member::new(
        "webhooks",
        Sections(WEBHOOK),
        Described("none", ""),
        "webhooks that accept JSON: `id`, `type`, `subject`, `message`",
    ),
    Member::new("slack", Sections(SLACK), Described("none", ""), "webhooks that accept Slack's JSON: `text`"),
    Member::new("mail", Sections(MAIL), Described("none", ""), "mail recipients"),
];

const AUDIENCE: Member = Member::new(
    "audience",
    One(OneOf(&["external", "internal"])),
    Value("external"),
    "audience, which determines the tool: `send_external_message` or `send_notification`",
);

const WEBHOOK: &[Member] = &[
    named("team"),
    Member::new("url", One(URL), Required("https://hooks.example/team"), "URL of the webhook").secret(),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive messages over plain http",
    )
    .alternative(),
    Member::new(
        "secret",
        Section(CREDENTIAL),
        Described("messages are not signed", "{env: TEAM_KEY}"),
        "key that signs messages (Standard Webhooks); source: exactly one of these members",
    ),
    AUDIENCE,
];

const SLACK: &[Member] = &[
    named("chat"),
    Member::new(
        "url",
        One(URL),
        Required("https://hooks.slack.example/services/x"),
        "URL of the webhook; it is a secret, as its knowledge allows sending",
    )
    .secret(),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive messages over plain http",
    )
    .alternative(),
    AUDIENCE,
];

const MAIL: &[Member] = &[
    named("owners"),
    Member::new("host", One(Text("a name or an address")), Required("mail.example"), "mail server"),
    Member::new(
        "tls",
        One(OneOf(&["implicit", "starttls"])),
        Value("starttls"),
        "whether TLS starts with the connection or by STARTTLS; mail is never sent without TLS",
    ),
    Member::new(
        "port",
        One(Whole(1, 65535)),
        Described("587, or 465 with `tls: implicit`", "2525"),
        "its port",
    ),
    Member::new(
        "ca",
        One(Text("the absolute path of a file")),
        Described("the system's CA certificates", "/etc/belljar/house-ca.pem"),
        "file with the trusted CA certificates",
    ),
    Member::new("login", Section(LOGIN), Described("none", ""), "login at the server"),
    Member::new("from", One(ADDRESS), Required("bell@house.example"), "sender address"),
    Member::new("to", List(ADDRESS), Required("[owner@house.example]"), "recipient addresses"),
    AUDIENCE,
];

const ADDRESS: Scalar = Text("an address such as owner@house.example");

const LOGIN: &[Member] = &[
    Member::new("user", One(Text("a name")), Required("bell"), "the user"),
    Member::new("password", Section(CREDENTIAL), Required("{file: /run/keys/mail}"), SOURCE),
];

const METRICS: &[Member] = &[
    Member::new("name", One(NAME), Required("house"), "unique name that agents use"),
    Member::new(
        "url",
        One(Text("a URL such as https://tools.example/mcp")),
        Required("https://metrics.example"),
        "base URL: the part before `/api/v1`",
    ),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive secrets over plain http",
    )
    .alternative(),
    Member::new(
        "headers",
        ByName(Any("`value`, or `secret` and perhaps `prefix`")),
        Described("none", "{authorization: {prefix: 'Bearer ', secret: {file: /run/keys/metrics}}}"),
        "headers of its requests; a `secret` comes from one of `env`, `file`, `command`",
    )
    .secret(),
];
