//! `egress`.

use super::Takes::{List, One, Section, Sections};
use super::Unsaid::{Means, Required, Stands};
use super::inference::{CREDENTIAL, PATH};
use super::{BOOLEAN, Member, USER};

const NAME: &str = "1 to 64 letters, digits, `-` and `_`";
const HOSTS: &str = "a name, *.NAME, **.NAME or an address";

pub(super) const EGRESS: &[Member] = &[
    Member {
        name: "rules",
        takes: Sections(RULE),
        unsaid: Required(""),
        meaning: "what one of them allows is allowed, and nothing else",
    },
    Member {
        name: "credentials",
        takes: Sections(HELD),
        unsaid: Means("none", ""),
        meaning: "what is filled in for placeholders",
    },
    Member {
        name: "aws_keys",
        takes: Sections(AWS_KEY),
        unsaid: Means("none", ""),
        meaning: "what requests are signed with that a placeholder has signed",
    },
    Member {
        name: "authorities",
        takes: One(PATH),
        unsaid: Means("the system's alone", "/etc/house/ca.pem"),
        meaning: "who is believed besides the system's authorities, where connections are looked into (PEM)",
    },
    Member {
        name: "proxy",
        takes: Section(PROXY),
        unsaid: Means("none", ""),
        meaning: "another proxy, through which all goes",
    },
    Member {
        name: "connections",
        takes: Sections(CONNECTION),
        unsaid: Means("none", ""),
        meaning: "interfaces that the host calls with a credential of its own",
    },
    Member {
        name: "search",
        takes: Section(SEARCH),
        unsaid: Means("agents can't search", ""),
        meaning: "where agents search the web",
    },
    Member {
        name: "audit_bytes",
        takes: One("a size from 1048576 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("512m"),
        meaning: "records in the audit log that one run may cause; beyond it nothing is let through",
    },
    Member {
        name: "audit_bytes_per_second",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("32k"),
        meaning: "how fast one run may cause them, once it has caused 32 MiB, or a sixteenth of `audit_bytes` where that is less",
    },
];

const SEARCH: &[Member] = &[
    Member {
        name: "kind",
        takes: One("one of: brave, searxng"),
        unsaid: Required("searxng"),
        meaning: "what is spoken there",
    },
    Member {
        name: "connection",
        takes: One("the name of one of `connections`"),
        unsaid: Required("searches"),
        meaning: "how it is called: `/search` below it for searxng, `/web/search` for brave",
    },
];

const OPERATION: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("list_issues"),
        meaning: "what calls name it; each name once",
    },
    Member {
        name: "method",
        takes: One("a method in upper case, such as GET"),
        unsaid: Required("GET"),
        meaning: "one of the connection's",
    },
    Member {
        name: "path",
        takes: One("a path that begins with a slash, with parameters as {NAME}"),
        unsaid: Required("'/projects/{project}/issues'"),
        meaning: "below the connection's; other parameters are its query, or its JSON if it writes",
    },
];

const HELD: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("house"),
        meaning: "inside it is `belljar:cred:NAME`; each name once",
    },
    Member {
        name: "from",
        takes: Section(CREDENTIAL),
        unsaid: Required("{env: HOUSE_TOKEN}"),
        meaning: "where it comes from: exactly one of these members",
    },
    Member {
        name: "headers",
        takes: List("the name of a header in lower case, of none that the host writes"),
        unsaid: Means("authorization, where there is no `query` either", "[authorization]"),
        meaning: "headers in which the placeholder may stand",
    },
    Member {
        name: "query",
        takes: List("the name of a parameter: letters, digits, `-`, `_` and `.`"),
        unsaid: Means("none", "[key]"),
        meaning: "parameters in which it may",
    },
];

const AWS_KEY: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("bucket"),
        meaning: "inside the id of the key is `belljar:cred:NAME`; each name once",
    },
    Member {
        name: "access_key_id",
        takes: Section(CREDENTIAL),
        unsaid: Required("{env: BUCKET_ID}"),
        meaning: "where it comes from: exactly one of these members",
    },
    Member {
        name: "secret_access_key",
        takes: Section(CREDENTIAL),
        unsaid: Required("{env: BUCKET_KEY}"),
        meaning: "where it comes from: exactly one of these members",
    },
    Member {
        name: "session_token",
        takes: Section(CREDENTIAL),
        unsaid: Means("none", "{env: BUCKET_TOKEN}"),
        meaning: "where it comes from: exactly one of these members",
    },
    Member {
        name: "services",
        takes: List("letters, digits and `-`, such as s3 or eu-west-1"),
        unsaid: Required("[s3]"),
        meaning: "services that it signs for",
    },
    Member {
        name: "regions",
        takes: List("letters, digits and `-`, such as s3 or eu-west-1"),
        unsaid: Means("all", "[eu-west-1]"),
        meaning: "regions that it signs for",
    },
];

const PROXY: &[Member] = &[
    Member {
        name: "url",
        takes: One("http://HOST:PORT, without a path"),
        unsaid: Required("http://proxy.house:3128"),
        meaning: "where it is",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine is shown the credential by plain http",
    },
    Member {
        name: "credential",
        takes: Section(CREDENTIAL),
        unsaid: Means("none is shown", "{env: PROXY_USER}"),
        meaning: "USER:PASSWORD, where it comes from: exactly one of these members",
    },
    Member {
        name: "names",
        takes: One("one of: here, there"),
        unsaid: Stands("here"),
        meaning: "who says where names lead: this host, which asks it for addresses that were looked at, or the proxy",
    },
    Member {
        name: "identity",
        takes: One("`true` or `false`"),
        unsaid: Stands("false"),
        meaning: "whether it is told for which task and job of a node something is asked (`X-CyNode-Task-Id`, `X-CyNode-Job-Id`)",
    },
    Member {
        name: "except",
        takes: List(HOSTS),
        unsaid: Means("none", "[\"*.house.example\"]"),
        meaning: "who is reached without it",
    },
];

const CONNECTION: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("forge"),
        meaning: "what calls name it; each name once",
    },
    Member {
        name: "url",
        takes: One("https://HOST[:PORT][/PATH], or http:// without a credential"),
        unsaid: Required("https://forge.example/api/v1"),
        meaning: "where it is; calls stay below it",
    },
    Member {
        name: "credential",
        takes: Section(CREDENTIAL),
        unsaid: Means("none is shown", "{env: FORGE_TOKEN}"),
        meaning: "what it is shown: exactly one of these members",
    },
    Member {
        name: "as",
        takes: One("bearer, basic, `header NAME` or `query NAME`"),
        unsaid: Stands("bearer"),
        meaning: "how it is shown; `basic` is of USER:PASSWORD",
    },
    Member {
        name: "methods",
        takes: List("a method in upper case, such as GET"),
        unsaid: Means("GET and HEAD", "[GET, POST]"),
        meaning: "methods of calls",
    },
    Member {
        name: "writes",
        takes: One("one of: allow, ask"),
        unsaid: Stands("ask"),
        meaning: "whether calls that change something take an approval",
    },
    Member {
        name: "calls_a_minute",
        takes: One("a whole number from 1 to 60000"),
        unsaid: Stands("60"),
        meaning: "how often it may be called, all runs together",
    },
    Member {
        name: "networks",
        takes: List("a network, such as 10.0.0.0/8, that names its first address"),
        unsaid: Means("none", "[10.0.0.0/8]"),
        meaning: "where its host may lead besides the open internet",
    },
    Member {
        name: "authorities",
        takes: One(PATH),
        unsaid: Means("the system's alone", "/etc/house/ca.pem"),
        meaning: "who is believed besides the system's authorities (PEM)",
    },
    Member {
        name: "operations",
        takes: Sections(OPERATION),
        unsaid: Means("none: it is the host's alone", ""),
        meaning: "what agents may call of it by `api.call`",
    },
];

const RULE: &[Member] = &[
    Member {
        name: "host",
        takes: One(HOSTS),
        unsaid: Required("'*.pkgs.example'"),
        meaning: "the hosts that it is for",
    },
    Member {
        name: "ports",
        takes: List("a whole number from 1 to 65535"),
        unsaid: Means("80 and 443", "[443]"),
        meaning: "ports of TCP",
    },
    Member {
        name: "methods",
        takes: List("a method in upper case, such as GET"),
        unsaid: Means("all", "[GET]"),
        meaning: "methods of requests",
    },
    Member {
        name: "paths",
        takes: List("a path that begins with a slash"),
        unsaid: Means("all", "[/v1/]"),
        meaning: "places of URLs, each with what is below it",
    },
    Member {
        name: "networks",
        takes: List("a network, such as 10.0.0.0/8, that names its first address"),
        unsaid: Means("none", "[10.0.0.0/8]"),
        meaning: "where its names may lead besides the open internet",
    },
    Member {
        name: "inspect",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether tunnels are to be looked into",
    },
    Member {
        name: "credentials",
        takes: List(NAME),
        unsaid: Means("none", "[house]"),
        meaning: "whose placeholders are filled in there; names of `credentials` and `aws_keys`",
    },
    Member {
        name: "names",
        takes: Section(NAMES),
        unsaid: Means("what its members are without it", ""),
        meaning: "of a `*.` or `**.`: which names it lets in that no rule names",
    },
    Member {
        name: "tls",
        takes: One("one of: optional, required"),
        unsaid: Means("required at port 443, optional at other ports", "optional"),
        meaning: "whether tunnels carry TLS alone, or another protocol as well",
    },
    Member {
        name: "sni",
        takes: One("one of: optional, required"),
        unsaid: Stands("required"),
        meaning: "whether the ClientHello of TLS in a tunnel to a named host must contain its server name",
    },
];

const NAMES: &[Member] = &[
    Member {
        name: "at_once",
        takes: One("a whole number from 1 to 1000000"),
        unsaid: Stands("512"),
        meaning: "different names that one run may ask for at once",
    },
    Member {
        name: "an_hour",
        takes: One("a whole number from 1 to 1000000"),
        unsaid: Stands("512"),
        meaning: "how many more each hour, one by one",
    },
    Member {
        name: "characters",
        takes: One("a whole number from 1 to 253"),
        unsaid: Stands("64"),
        meaning: "how long it may be what stands before the rule's own name, with its dots",
    },
    Member {
        name: "bits",
        takes: One("a whole number from 1 to 1328"),
        unsaid: Stands("264"),
        meaning: "how much that may say, by how often each character stands in it (Shannon's entropy, of all of it)",
    },
];
