//! `tools`.

use super::Takes::{ByName, List, One, Section, Sections};
use super::Unsaid::{Means, Members, Required, Stands};
use super::inference::CREDENTIAL;
use super::{BOOLEAN, Member, USER};

const NAME: &str = "1 to 32 of a-z, 0-9, `_` and `-`";
const PATH: &str = "an absolute path without `.` and `..` that is not the root";
const URL: &str = "a URL such as https://hooks.example/team";
const SOURCE: &str = "where it comes from: exactly one of these members";

pub(super) const TOOLS: &[Member] = &[
    Member {
        name: "databases",
        takes: Section(DATABASES),
        unsaid: Members,
        meaning: "databases that agents may ask; each name once, whatever the kind",
    },
    Member {
        name: "channels",
        takes: Section(CHANNELS),
        unsaid: Members,
        meaning: "where agents' messages may go; each name once, whatever the kind",
    },
    Member {
        name: "metrics",
        takes: Sections(METRICS),
        unsaid: Means("none", ""),
        meaning: "servers that are asked as Prometheus is; each name once",
    },
];

const DATABASES: &[Member] = &[
    Member {
        name: "sqlite",
        takes: Sections(SQLITE),
        unsaid: Means("none", ""),
        meaning: "files of SQLite on this host",
    },
    Member {
        name: "postgres",
        takes: Sections(POSTGRES),
        unsaid: Means("none", ""),
        meaning: "databases of PostgreSQL",
    },
];

const DATABASE_NAME: Member = Member {
    name: "name",
    takes: One(NAME),
    unsaid: Required("house"),
    meaning: "the name by which agents ask it",
};

const WRITABLE: Member = Member {
    name: "writable",
    takes: BOOLEAN,
    unsaid: Stands("false"),
    meaning: "whether it may be changed, too, by `sql_execute` and `sql_migrate`",
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
        meaning: "which of its databases",
    },
    Member {
        name: "user",
        takes: One("a name"),
        unsaid: Required("reader"),
        meaning: "the role; one that reaches the server's own files or programs, as a superuser does, is not used",
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
        meaning: "whether the server must show by TLS that it is that host; not asked of a socket",
    },
    Member {
        name: "ca",
        takes: One(PATH),
        unsaid: Means("those that everybody trusts", "/etc/belljar/house-ca.pem"),
        meaning: "a file with the authorities that count for that",
    },
    WRITABLE,
];

const CHANNELS: &[Member] = &[
    Member {
        name: "webhooks",
        takes: Sections(WEBHOOK),
        unsaid: Means("none", ""),
        meaning: "those that take JSON: `id`, `type`, `subject`, `message`",
    },
    Member {
        name: "slack",
        takes: Sections(SLACK),
        unsaid: Means("none", ""),
        meaning: "those that take JSON as Slack does: `text`",
    },
    Member { name: "mail", takes: Sections(MAIL), unsaid: Means("none", ""), meaning: "addresses of mail" },
];

const CHANNEL_NAME: Member = Member {
    name: "name",
    takes: One(NAME),
    unsaid: Required("team"),
    meaning: "the name by which agents send there",
};

const AUDIENCE: Member = Member {
    name: "audience",
    takes: One("one of: external, internal"),
    unsaid: Stands("external"),
    meaning: "who reads it, and so by which tool it is sent: `send_external_message` or `send_notification`",
};

const WEBHOOK: &[Member] = &[
    CHANNEL_NAME,
    Member {
        name: "url",
        takes: One(URL),
        unsaid: Required("https://hooks.example/team"),
        meaning: "where it is sent",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine gets messages by plain http",
    },
    Member {
        name: "secret",
        takes: Section(CREDENTIAL),
        unsaid: Means("it is not signed", "{env: TEAM_KEY}"),
        meaning: "the key that it is signed with, as Standard Webhooks says; where it comes from: exactly one of these members",
    },
    AUDIENCE,
];

const SLACK: &[Member] = &[
    CHANNEL_NAME,
    Member {
        name: "url",
        takes: One(URL),
        unsaid: Required("https://hooks.slack.example/services/x"),
        meaning: "where it is sent; anyone who has it may send there",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine gets messages by plain http",
    },
    AUDIENCE,
];

const MAIL: &[Member] = &[
    CHANNEL_NAME,
    Member {
        name: "host",
        takes: One("a name or an address"),
        unsaid: Required("mail.example"),
        meaning: "the server that takes it",
    },
    Member {
        name: "tls",
        takes: One("one of: implicit, starttls"),
        unsaid: Stands("starttls"),
        meaning: "whether TLS begins with the connection, or is asked for first; nothing is said without it",
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
        unsaid: Means("those of the system", "/etc/belljar/house-ca.pem"),
        meaning: "a file with the authorities that count for that",
    },
    Member {
        name: "login",
        takes: Section(LOGIN),
        unsaid: Means("none", ""),
        meaning: "as whom the server is asked",
    },
    Member {
        name: "from",
        takes: One(ADDRESS),
        unsaid: Required("bell@house.example"),
        meaning: "the address that it comes from",
    },
    Member {
        name: "to",
        takes: List(ADDRESS),
        unsaid: Required("[owner@house.example]"),
        meaning: "the addresses that it goes to, and no others",
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
        meaning: "the name by which agents ask it",
    },
    Member {
        name: "url",
        takes: One("a URL such as https://tools.example/mcp"),
        unsaid: Required("https://metrics.example"),
        meaning: "where it is: what stands before `/api/v1`",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine is shown secrets by plain http",
    },
    Member {
        name: "headers",
        takes: ByName("`value`, or `secret` and perhaps `prefix`"),
        unsaid: Means("none", "{authorization: {prefix: 'Bearer ', secret: {file: /run/keys/metrics}}}"),
        meaning: "headers of its requests; a `secret` comes from one of `env`, `file`, `command`",
    },
];
