//! `egress`.

use super::AcceptedValues::{List, One, Section, Sections};
use super::MemberDefault::{Described, Required, Value};
use super::Scalar::{Boolean, OneOf, Size, Text, Whole};
use super::inference::{CREDENTIAL, PATH};
use super::{Member, Scalar, USER};

const NAME: Scalar = Text("1 to 64 letters, digits, `-` and `_`");
const HOSTS: Scalar = Text("a name, *.NAME, **.NAME or an address");

pub(super) const EGRESS: &[Member] = &[
    Member::new(
        "rules",
        Sections(RULE),
        Required(""),
        "allow rules; requests that no rule allows are denied",
    ),
    Member::new(
        "credentials",
        Sections(HELD),
        Described("none", ""),
        "credentials that replace placeholders in requests",
    ),
    Member::new(
        "aws_keys",
        Sections(AWS_KEY),
        Described("none", ""),
        "keys that sign requests in place of a placeholder key",
    ),
    Member::new(
        "authorities",
        One(PATH),
        Described("the system's only", "/etc/house/ca.pem"),
        "additional trusted CA certificates for TLS interception (PEM)",
    ),
    Member::new("proxy", Section(PROXY), Described("none", ""), "upstream proxy for all requests"),
    Member::new(
        "connections",
        Sections(CONNECTION),
        Described("none", ""),
        "APIs that the host calls with its own credentials",
    ),
    Member::new("search", Section(SEARCH), Described("no web search", ""), "provider of web search"),
    Member::new(
        "audit_bytes",
        One(Size(1048576)),
        Value("512m"),
        "maximum size of a run's audit records; beyond it all requests are denied",
    ),
    Member::new(
        "audit_bytes_per_second",
        One(Size(1024)),
        Value("32k"),
        "rate limit of a run's audit records, once it has caused 32 MiB, or a sixteenth of `audit_bytes` if that is less",
    ),
];

const SEARCH: &[Member] = &[
    Member::new("kind", One(OneOf(&["brave", "searxng"])), Required("searxng"), "API of the provider"),
    Member::new(
        "connection",
        One(Text("the name of one of `connections`")),
        Required("house"),
        "connection used for searches: `/search` below it for searxng, `/web/search` for brave",
    ),
];

const OPERATION: &[Member] = &[
    Member::new("name", One(NAME), Required("list_issues"), "unique name that calls use"),
    Member::new(
        "method",
        One(Text("a method in upper case, such as GET")),
        Required("GET"),
        "HTTP method, one of the connection's `methods`",
    ),
    Member::new(
        "path",
        One(Text("a path that begins with a slash, with parameters as {NAME}")),
        Required("'/projects/{project}/issues'"),
        "path below the connection's; other parameters become the query, or the JSON body of a writing method",
    ),
];

const HELD: &[Member] = &[
    Member::new(
        "name",
        One(NAME),
        Required("house"),
        "unique name; its placeholder in the sandbox is `belljar:cred:NAME`",
    ),
    Member::new(
        "from",
        Section(CREDENTIAL),
        Required("{env: HOUSE_TOKEN}"),
        "source: exactly one of these members",
    ),
    Member::new(
        "headers",
        List(Text("the name of a header in lower case, of none that the host writes")),
        Described("authorization, where there is no `query` either", "[authorization]"),
        "headers in which the placeholder is replaced",
    ),
    Member::new(
        "query",
        List(Text("the name of a parameter: letters, digits, `-`, `_` and `.`")),
        Described("none", "[key]"),
        "query parameters in which the placeholder is replaced",
    ),
];

const AWS_KEY: &[Member] = &[
    Member::new(
        "name",
        One(NAME),
        Required("bucket"),
        "unique name; its access key id in the sandbox is `belljar:cred:NAME`",
    ),
    Member::new(
        "access_key_id",
        Section(CREDENTIAL),
        Required("{env: BUCKET_ID}"),
        "source: exactly one of these members",
    ),
    Member::new(
        "secret_access_key",
        Section(CREDENTIAL),
        Required("{env: BUCKET_KEY}"),
        "source: exactly one of these members",
    ),
    Member::new(
        "session_token",
        Section(CREDENTIAL),
        Described("none", "{env: BUCKET_TOKEN}"),
        "source: exactly one of these members",
    ),
    Member::new(
        "services",
        List(Text("letters, digits and `-`, such as s3 or eu-west-1")),
        Required("[s3]"),
        "services that it signs for",
    ),
    Member::new(
        "regions",
        List(Text("letters, digits and `-`, such as s3 or eu-west-1")),
        Described("all", "[eu-west-1]"),
        "regions that it signs for",
    ),
];

const PROXY: &[Member] = &[
    Member::new(
        "url",
        One(Text("http://HOST:PORT, without a path")),
        Required("http://proxy.house:3128"),
        "URL",
    ),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive the credential over plain http",
    )
    .alternative(),
    Member::new(
        "credential",
        Section(CREDENTIAL),
        Described("no credential", "{env: PROXY_USER}"),
        "source of USER:PASSWORD: exactly one of these members",
    ),
    Member::new(
        "names",
        One(OneOf(&["here", "there"])),
        Value("here"),
        "name resolution: by this host (`here`), which checks addresses and connects to them through the proxy, or by the proxy (`there`)",
    ),
    Member::new(
        "identity",
        One(Boolean),
        Value("false"),
        "whether requests tell the proxy the node's task and job (`X-CyNode-Task-Id`, `X-CyNode-Job-Id`)",
    ),
    Member::new(
        "except",
        List(HOSTS),
        Described("none", "[\"*.house.example\"]"),
        "hosts that are reached without the proxy",
    ),
];

const CONNECTION: &[Member] = &[
    Member::new("name", One(NAME), Required("house"), "unique name that calls use"),
    Member::new(
        "url",
        One(Text("https://HOST[:PORT][/PATH], or http:// without a credential")),
        Required("https://forge.example/api/v1"),
        "base URL; calls stay below it",
    ),
    Member::new(
        "credential",
        Section(CREDENTIAL),
        Described("no credential", "{env: FORGE_TOKEN}"),
        "source of the credential: exactly one of these members",
    ),
    Member::new(
        "as",
        One(Text("bearer, basic, `header NAME` or `query NAME`")),
        Value("bearer"),
        "how the credential is sent; `basic` takes USER:PASSWORD",
    ),
    Member::new(
        "methods",
        List(Text("a method in upper case, such as GET")),
        Described("GET and HEAD", "[GET, POST]"),
        "allowed HTTP methods",
    ),
    Member::new(
        "writes",
        One(OneOf(&["allow", "ask"])),
        Value("ask"),
        "whether writing calls require an approval (`ask`)",
    ),
    Member::new(
        "calls_a_minute",
        One(Whole(1, 60000)),
        Value("60"),
        "maximum calls per minute, over all runs",
    ),
    Member::new(
        "networks",
        List(Text("a network, such as 10.0.0.0/8, that names its first address")),
        Described("none", "[10.0.0.0/8]"),
        "private networks to which its host may resolve",
    ),
    Member::new(
        "authorities",
        One(PATH),
        Described("the system's only", "/etc/house/ca.pem"),
        "additional trusted CA certificates (PEM)",
    ),
    Member::new(
        "operations",
        Sections(OPERATION),
        Described("none: only the host uses it", ""),
        "operations that agents may call through `api.call`",
    ),
];

const RULE: &[Member] = &[
    Member::new("host", One(HOSTS), Required("'*.pkgs.example'"), "hosts that the rule allows"),
    Member::new("ports", List(Whole(1, 65535)), Described("80 and 443", "[443]"), "TCP ports"),
    Member::new(
        "methods",
        List(Text("a method in upper case, such as GET")),
        Described("all", "[GET]"),
        "allowed HTTP methods",
    ),
    Member::new(
        "paths",
        List(Text("a path that begins with a slash")),
        Described("all", "[/v1/]"),
        "URL paths, each including the paths below it",
    ),
    Member::new(
        "networks",
        List(Text("a network, such as 10.0.0.0/8, that names its first address")),
        Described("none", "[10.0.0.0/8]"),
        "private networks to which its hosts may resolve",
    ),
    Member::new("inspect", One(Boolean), Value("false"), "whether TLS in tunnels is intercepted"),
    Member::new(
        "credentials",
        List(NAME),
        Described("none", "[house]"),
        "credentials injected for these hosts; names of `credentials` and `aws_keys`",
    ),
    Member::new(
        "names",
        Section(NAMES),
        Described("the defaults of its members", ""),
        "limits for names that only a `*.` or `**.` pattern matches",
    ),
    Member::new(
        "tls",
        One(OneOf(&["optional", "required"])),
        Described("required at port 443, optional at other ports", "optional"),
        "whether tunnels must carry TLS",
    ),
    Member::new(
        "sni",
        One(OneOf(&["optional", "required"])),
        Value("required"),
        "whether the ClientHello of TLS in a tunnel to a named host must contain its server name",
    ),
];

const NAMES: &[Member] = &[
    Member::new(
        "at_once",
        One(Whole(1, 1000000)),
        Value("512"),
        "maximum burst of different names for a run",
    ),
    Member::new("an_hour", One(Whole(1, 1000000)), Value("512"), "additional names per hour"),
    Member::new(
        "characters",
        One(Whole(1, 253)),
        Value("64"),
        "maximum length of the part before the rule's own name, dots included",
    )
    .in_unit("characters"),
    Member::new(
        "bits",
        One(Whole(1, 1328)),
        Value("264"),
        "maximum information in that part, in bits (Shannon entropy over its characters)",
    )
    .in_unit("bits"),
];
