//! `egress`.

use super::AcceptedValues::{List, One, Section, Sections};
use super::MemberDefault::{Means, Required, Stands};
use super::inference::{CREDENTIAL, PATH};
use super::{BOOLEAN, Member, USER};

const NAME: &str = "1 to 64 letters, digits, `-` and `_`";
const HOSTS: &str = "a name, *.NAME, **.NAME or an address";

pub(super) const EGRESS: &[Member] = &[
    Member {
        name: "rules",
        takes: Sections(RULE),
        unsaid: Required(""),
        meaning: "allow rules; requests that no rule allows are denied",
    },
    Member {
        name: "credentials",
        takes: Sections(HELD),
        unsaid: Means("none", ""),
        meaning: "credentials that replace placeholders in requests",
    },
    Member {
        name: "aws_keys",
        takes: Sections(AWS_KEY),
        unsaid: Means("none", ""),
        meaning: "keys that sign requests in place of a placeholder key",
    },
    Member {
        name: "authorities",
        takes: One(PATH),
        unsaid: Means("the system's only", "/etc/house/ca.pem"),
        meaning: "additional trusted CA certificates for TLS interception (PEM)",
    },
    Member {
        name: "proxy",
        takes: Section(PROXY),
        unsaid: Means("none", ""),
        meaning: "upstream proxy for all requests",
    },
    Member {
        name: "connections",
        takes: Sections(CONNECTION),
        unsaid: Means("none", ""),
        meaning: "APIs that the host calls with its own credentials",
    },
    Member {
        name: "search",
        takes: Section(SEARCH),
        unsaid: Means("no web search", ""),
        meaning: "provider of web search",
    },
    Member {
        name: "audit_bytes",
        takes: One("a size from 1048576 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("512m"),
        meaning: "maximum size of a run's audit records; beyond it all requests are denied",
    },
    Member {
        name: "audit_bytes_per_second",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("32k"),
        meaning: "rate limit of a run's audit records, once it has caused 32 MiB, or a sixteenth of \
    `audit_bytes` if that is less",
    },
];

const SEARCH: &[Member] = &[
    Member {
        name: "kind",
        takes: One("one of: brave, searxng"),
        unsaid: Required("searxng"),
        meaning: "API of the provider",
    },
    Member {
        name: "connection",
        takes: One("the name of one of `connections`"),
        unsaid: Required("searches"),
        meaning: "connection used for searches: `/search` below it for searxng, `/web/search` for brave",
    },
];

const OPERATION: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("list_issues"),
        meaning: "unique name that calls use",
    },
    Member {
        name: "method",
        takes: One("a method in upper case, such as GET"),
        unsaid: Required("GET"),
        meaning: "HTTP method, one of the connection's `methods`",
    },
    Member {
        name: "path",
        takes: One("a path that begins with a slash, with parameters as {NAME}"),
        unsaid: Required("'/projects/{project}/issues'"),
        meaning: "path below the connection's; other parameters become the query, or the JSON body of a \
    writing method",
    },
];

const HELD: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("house"),
        meaning: "unique name; its placeholder in the sandbox is `belljar:cred:NAME`",
    },
    Member {
        name: "from",
        takes: Section(CREDENTIAL),
        unsaid: Required("{env: HOUSE_TOKEN}"),
        meaning: "source: exactly one of these members",
    },
    Member {
        name: "headers",
        takes: List("the name of a header in lower case, of none that the host writes"),
        unsaid: Means("authorization, where there is no `query` either", "[authorization]"),
        meaning: "headers in which the placeholder is replaced",
    },
    Member {
        name: "query",
        takes: List("the name of a parameter: letters, digits, `-`, `_` and `.`"),
        unsaid: Means("none", "[key]"),
        meaning: "query parameters in which the placeholder is replaced",
    },
];

const AWS_KEY: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("bucket"),
        meaning: "unique name; its access key id in the sandbox is `belljar:cred:NAME`",
    },
    Member {
        name: "access_key_id",
        takes: Section(CREDENTIAL),
        unsaid: Required("{env: BUCKET_ID}"),
        meaning: "source: exactly one of these members",
    },
    Member {
        name: "secret_access_key",
        takes: Section(CREDENTIAL),
        unsaid: Required("{env: BUCKET_KEY}"),
        meaning: "source: exactly one of these members",
    },
    Member {
        name: "session_token",
        takes: Section(CREDENTIAL),
        unsaid: Means("none", "{env: BUCKET_TOKEN}"),
        meaning: "source: exactly one of these members",
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
        meaning: "URL",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive the credential over \
    plain http",
    },
    Member {
        name: "credential",
        takes: Section(CREDENTIAL),
        unsaid: Means("no credential", "{env: PROXY_USER}"),
        meaning: "source of USER:PASSWORD: exactly one of these members",
    },
    Member {
        name: "names",
        takes: One("one of: here, there"),
        unsaid: Stands("here"),
        meaning: "name resolution: by this host (`here`), which checks addresses and connects to them \
    through the proxy, or by the proxy (`there`)",
    },
    Member {
        name: "identity",
        takes: One("`true` or `false`"),
        unsaid: Stands("false"),
        meaning: "whether requests tell the proxy the node's task and job (`X-CyNode-Task-Id`, \
    `X-CyNode-Job-Id`)",
    },
    Member {
        name: "except",
        takes: List(HOSTS),
        unsaid: Means("none", "[\"*.house.example\"]"),
        meaning: "hosts that are reached without the proxy",
    },
];

const CONNECTION: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("forge"),
        meaning: "unique name that calls use",
    },
    Member {
        name: "url",
        takes: One("https://HOST[:PORT][/PATH], or http:// without a credential"),
        unsaid: Required("https://forge.example/api/v1"),
        meaning: "base URL; calls stay below it",
    },
    Member {
        name: "credential",
        takes: Section(CREDENTIAL),
        unsaid: Means("no credential", "{env: FORGE_TOKEN}"),
        meaning: "source of the credential: exactly one of these members",
    },
    Member {
        name: "as",
        takes: One("bearer, basic, `header NAME` or `query NAME`"),
        unsaid: Stands("bearer"),
        meaning: "how the credential is sent; `basic` takes USER:PASSWORD",
    },
    Member {
        name: "methods",
        takes: List("a method in upper case, such as GET"),
        unsaid: Means("GET and HEAD", "[GET, POST]"),
        meaning: "allowed HTTP methods",
    },
    Member {
        name: "writes",
        takes: One("one of: allow, ask"),
        unsaid: Stands("ask"),
        meaning: "whether writing calls require an approval (`ask`)",
    },
    Member {
        name: "calls_a_minute",
        takes: One("a whole number from 1 to 60000"),
        unsaid: Stands("60"),
        meaning: "maximum calls per minute, over all runs",
    },
    Member {
        name: "networks",
        takes: List("a network, such as 10.0.0.0/8, that names its first address"),
        unsaid: Means("none", "[10.0.0.0/8]"),
        meaning: "private networks to which its host may resolve",
    },
    Member {
        name: "authorities",
        takes: One(PATH),
        unsaid: Means("the system's only", "/etc/house/ca.pem"),
        meaning: "additional trusted CA certificates (PEM)",
    },
    Member {
        name: "operations",
        takes: Sections(OPERATION),
        unsaid: Means("none: only the host uses it", ""),
        meaning: "operations that agents may call through `api.call`",
    },
];

const RULE: &[Member] = &[
    Member {
        name: "host",
        takes: One(HOSTS),
        unsaid: Required("'*.pkgs.example'"),
        meaning: "hosts that the rule allows",
    },
    Member {
        name: "ports",
        takes: List("a whole number from 1 to 65535"),
        unsaid: Means("80 and 443", "[443]"),
        meaning: "TCP ports",
    },
    Member {
        name: "methods",
        takes: List("a method in upper case, such as GET"),
        unsaid: Means("all", "[GET]"),
        meaning: "allowed HTTP methods",
    },
    Member {
        name: "paths",
        takes: List("a path that begins with a slash"),
        unsaid: Means("all", "[/v1/]"),
        meaning: "URL paths, each including the paths below it",
    },
    Member {
        name: "networks",
        takes: List("a network, such as 10.0.0.0/8, that names its first address"),
        unsaid: Means("none", "[10.0.0.0/8]"),
        meaning: "private networks to which its hosts may resolve",
    },
    Member {
        name: "inspect",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether TLS in tunnels is intercepted",
    },
    Member {
        name: "credentials",
        takes: List(NAME),
        unsaid: Means("none", "[house]"),
        meaning: "credentials injected for these hosts; names of `credentials` and `aws_keys`",
    },
    Member {
        name: "names",
        takes: Section(NAMES),
        unsaid: Means("the defaults of its members", ""),
        meaning: "limits for names that only a `*.` or `**.` pattern matches",
    },
    Member {
        name: "tls",
        takes: One("one of: optional, required"),
        unsaid: Means("required at port 443, optional at other ports", "optional"),
        meaning: "whether tunnels must carry TLS",
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
        meaning: "maximum burst of different names for a run",
    },
    Member {
        name: "an_hour",
        takes: One("a whole number from 1 to 1000000"),
        unsaid: Stands("512"),
        meaning: "additional names per hour",
    },
    Member {
        name: "characters",
        takes: One("a whole number from 1 to 253"),
        unsaid: Stands("64"),
        meaning: "maximum length of the part before the rule's own name, dots included",
    },
    Member {
        name: "bits",
        takes: One("a whole number from 1 to 1328"),
        unsaid: Stands("264"),
        meaning: "maximum information in that part, in bits (Shannon entropy over its characters)",
    },
];
