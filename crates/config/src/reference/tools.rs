//! `tools`.

use super::AcceptedValues::{ByName, List, One, Section, Sections};
use super::MemberDefault::{Means, Members, Required, Stands};
use super::inference::CREDENTIAL;
use super::{BOOLEAN, Member, USER};

const NAME: &str = "1 to 32 of a-z, 0-9, `_` and `-`";
const PATH: &str = "an absolute path without `.` and `..` that is not the root";
const URL: &str = "a URL such as https://hooks.example/team";
const SOURCE: &str = "source: exactly one of these members";

pub(super) const TOOLS: &[Member] = &[
    Member {
        name: "databases",
        takes: Section(DATABASES),
        unsaid: Members,
        meaning: "databases that agents may query; names are unique across kinds",
    },
    Member {
        name: "channels",
        takes: Section(CHANNELS),
        unsaid: Members,
        meaning: "channels for agents' messages; names are unique across kinds",
    },
    Member {
        name: "metrics",
        takes: Sections(METRICS),
        unsaid: Means("none", ""),
        meaning: "metrics servers with the Prometheus API; names are unique",
    },
];

const DATABASES: &[Member] = &[
    Member {
        name: "sqlite",
        takes: Sections(SQLITE),
        unsaid: Means("none", ""),
        meaning: "SQLite files on this host",
    },
    Member {
        name: "postgres",
        takes: Sections(POSTGRES),
        unsaid: Means("none", ""),
        meaning: "PostgreSQL databases",
    },
];

const DATABASE_NAME: Member = Member {
    name: "name",
    takes: One(NAME),
    unsaid: Required("house"),
    meaning: "unique name that agents use",
};

const WRITABLE: Member = Member {
    name: "writable",
    takes: BOOLEAN,
    unsaid: Stands("false"),
    meaning: "whether `sql_execute` and `sql_migrate` may change it",
};

const SQLITE: &[Member] = &[
    DATABASE_NAME,
    Member { name: "path", takes: One(PATH), unsaid: Required("/srv/house.db"), meaning: "the file" },
    WRITABLE,
];

const POSTGRES: &[Member] = &[
    DATABASE_NAME,
    Member {
        name: "host",
        takes: One("a name, an address, or the absolute path of a socket's directory"),
        unsaid: Required("db.example"),
        meaning: "the server",
    },
    Member {
        name: "port",
        takes: One("a whole number from 1 to 65535"),
        unsaid: Stands("5432"),
        meaning: "its port",
    },
    Member {
        name: "database",
        takes: One("a name"),
        unsaid: Required("books"),
        meaning: "name of the database",
    },
    Member {
        name: "user",
        takes: One("a name"),
        unsaid: Required("reader"),
        meaning: "role; roles with access to the server's files or programs, such as superusers, are \
    rejected",
    },
    Member {
        name: "password",
        takes: Section(CREDENTIAL),
        unsaid: Means("none", "{file: /run/keys/books}"),
        meaning: SOURCE,
    },
    Member {
        name: "tls",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether TLS with a valid certificate is required; not used for sockets",
    },
    Member {
        name: "ca",
        takes: One(PATH),
        unsaid: Means("the public CA certificates", "/etc/belljar/house-ca.pem"),
        meaning: "file with the trusted CA certificates",
    },
    WRITABLE,
];

const CHANNELS: &[Member] = &[
    Member {
        name: "webhooks",
        takes: Sections(WEBHOOK),
        unsaid: Means("none", ""),
        meaning: "webhooks that accept JSON: `id`, `type`, `subject`, `message`",
    },
    Member {
        name: "slack",
        takes: Sections(SLACK),
        unsaid: Means("none", ""),
        meaning: "webhooks that accept Slack's JSON: `text`",
    },
    Member { name: "mail", takes: Sections(MAIL), unsaid: Means("none", ""), meaning: "mail recipients" },
];

const CHANNEL_NAME: Member = Member {
    name: "name",
    takes: One(NAME),
    unsaid: Required("team"),
    meaning: "unique name that agents use",
};

const AUDIENCE: Member = Member {
    name: "audience",
    takes: One("one of: external, internal"),
    unsaid: Stands("external"),
    meaning: "audience, which determines the tool: `send_external_message` or `send_notification`",
};

const WEBHOOK: &[Member] = &[
    CHANNEL_NAME,
    Member {
        name: "url",
        takes: One(URL),
        unsaid: Required("https://hooks.example/team"),
        meaning: "URL of the webhook",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive messages over plain \
    http",
    },
    Member {
        name: "secret",
        takes: Section(CREDENTIAL),
        unsaid: Means("messages are not signed", "{env: TEAM_KEY}"),
        meaning: "key that signs messages (Standard Webhooks); source: exactly one of these members",
    },
    AUDIENCE,
];

const SLACK: &[Member] = &[
    CHANNEL_NAME,
    Member {
        name: "url",
        takes: One(URL),
        unsaid: Required("https://hooks.slack.example/services/x"),
        meaning: "URL of the webhook; it is a secret, as its knowledge allows sending",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive messages over plain \
    http",
    },
    AUDIENCE,
];

const MAIL: &[Member] = &[
    CHANNEL_NAME,
    Member {
        name: "host",
        takes: One("a name or an address"),
        unsaid: Required("mail.example"),
        meaning: "mail server",
    },
    Member {
        name: "tls",
        takes: One("one of: implicit, starttls"),
        unsaid: Stands("starttls"),
        meaning: "whether TLS starts with the connection or by STARTTLS; mail is never sent without TLS",
    },
    Member {
        name: "port",
        takes: One("a whole number from 1 to 65535"),
        unsaid: Means("587, or 465 with `tls: implicit`", "2525"),
        meaning: "its port",
    },
    Member {
        name: "ca",
        takes: One("the absolute path of a file"),
        unsaid: Means("the system's CA certificates", "/etc/belljar/house-ca.pem"),
        meaning: "file with the trusted CA certificates",
    },
    Member {
        name: "login",
        takes: Section(LOGIN),
        unsaid: Means("none", ""),
        meaning: "login at the server",
    },
    Member {
        name: "from",
        takes: One(ADDRESS),
        unsaid: Required("bell@house.example"),
        meaning: "sender address",
    },
    Member {
        name: "to",
        takes: List(ADDRESS),
        unsaid: Required("[owner@house.example]"),
        meaning: "recipient addresses",
    },
    AUDIENCE,
];

const ADDRESS: &str = "an address such as owner@house.example";

const LOGIN: &[Member] = &[
    Member { name: "user", takes: One("a name"), unsaid: Required("bell"), meaning: "the user" },
    Member {
        name: "password",
        takes: Section(CREDENTIAL),
        unsaid: Required("{file: /run/keys/mail}"),
        meaning: SOURCE,
    },
];

const METRICS: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("house"),
        meaning: "unique name that agents use",
    },
    Member {
        name: "url",
        takes: One("a URL such as https://tools.example/mcp"),
        unsaid: Required("https://metrics.example"),
        meaning: "base URL: the part before `/api/v1`",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive secrets over plain http",
    },
    Member {
        name: "headers",
        takes: ByName("`value`, or `secret` and perhaps `prefix`"),
        unsaid: Means("none", "{authorization: {prefix: 'Bearer ', secret: {file: /run/keys/metrics}}}"),
        meaning: "headers of its requests; a `secret` comes from one of `env`, `file`, `command`",
    },
];
