//! Messages of programs that could not reach a host: a pattern and an example each.

/// A message.
pub(super) struct NetworkErrorPattern {
    /// Program that prints it; others may print the same.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and tests"))]
    pub(super) tool: &'static str,
    /// A regular expression; its group `host` is what was not reached.
    pub(super) pattern: &'static str,
    /// A line as the tool really prints it.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and tests"))]
    pub(super) example: &'static str,
    /// The host in the example.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and tests"))]
    pub(super) host: Option<&'static str>,
}

/// Messages that name a host first, then those that don't.
pub(super) const COMPLAINTS: &[NetworkErrorPattern] = &[
    NetworkErrorPattern {
        tool: "curl, git, dnf",
        pattern: r"Could(?: not|n't) resolve host: (?<host>[\w.-]+)",
        example: "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
        host: Some("github.com"),
    },
    NetworkErrorPattern {
        tool: "cargo",
        pattern: r"Could(?: not|n't) resolve hostname \(Could not resolve host: (?<host>[\w.-]+)",
        example: "  [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
        host: Some("index.crates.io"),
    },
    NetworkErrorPattern {
        tool: "curl",
        pattern: r"Failed to connect to (?<host>[\w.:-]+) port \d+",
        example: "curl: (7) Failed to connect to example.com port 443 after 3 ms: Could not connect to server",
        host: Some("example.com"),
    },
    NetworkErrorPattern {
        tool: "wget",
        pattern: "unable to resolve host address (?:‘|'|\")(?<host>[\\w.-]+)",
        example: "wget: unable to resolve host address ‘example.com’",
        host: Some("example.com"),
    },
    NetworkErrorPattern {
        tool: "busybox wget",
        pattern: "bad address '(?<host>[\\w.-]+)'",
        example: "wget: bad address 'example.com'",
        host: Some("example.com"),
    },
    NetworkErrorPattern {
        tool: "wget",
        pattern: r"Connecting to (?<host>[\w.-]+)[^\n]*failed: (?:Network is unreachable|Connection (?:refused|timed out)|No route)",
        example: "Connecting to example.com (example.com)|93.184.216.34|:443... failed: Network is unreachable.",
        host: Some("example.com"),
    },
    NetworkErrorPattern {
        tool: "git",
        pattern: r"unable to (?:look up|connect to) (?<host>[\w.-]+)",
        example: "fatal: unable to look up github.com (port 9418) (Temporary failure in name resolution)",
        host: Some("github.com"),
    },
    NetworkErrorPattern {
        tool: "ssh",
        pattern: r"Could not resolve hostname (?<host>[\w.-]+):",
        example: "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
        host: Some("github.com"),
    },
    NetworkErrorPattern {
        tool: "ssh",
        pattern: r"connect to host (?<host>[\w.:-]+) port \d+: (?:Network is unreachable|No route|Connection (?:refused|timed out))",
        example: "ssh: connect to host example.com port 22: Network is unreachable",
        host: Some("example.com"),
    },
    NetworkErrorPattern {
        tool: "python requests, pip",
        pattern: r"HTTPS?ConnectionPool\(host='(?<host>[\w.:-]+)', port=\d+\): (?:Max retries exceeded|[^\n]*timed out)",
        example: "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='pypi.org', port=443): Max retries \
                  exceeded with url: /simple/ (Caused by NameResolutionError(\"Failed to resolve 'pypi.org'\"))",
        host: Some("pypi.org"),
    },
    NetworkErrorPattern {
        tool: "pip 25",
        pattern: r"Failed to resolve '(?<host>[\w.-]+)'",
        example: "WARNING: Retrying (Retry(total=4)) after connection broken by 'NameResolutionError(\"Failed to \
                  resolve 'pypi.org' ([Errno -3] Temporary failure in name resolution)\")': /simple/attrs/",
        host: Some("pypi.org"),
    },
    NetworkErrorPattern {
        tool: "aiohttp",
        pattern: r"Cannot connect to host (?<host>[\w.-]+):\d+",
        example: "aiohttp.client_exceptions.ClientConnectorDNSError: Cannot connect to host example.com:443 ssl:default",
        host: Some("example.com"),
    },
    NetworkErrorPattern {
        tool: "uv",
        pattern: r"Failed to fetch: `https?://(?<host>[\w.-]+)",
        example: "error: Failed to fetch: `https://pypi.org/simple/attrs/`",
        host: Some("pypi.org"),
    },
    NetworkErrorPattern {
        tool: "node, npm, yarn",
        pattern: r"getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (?<host>[\w.-]+)",
        example: "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org",
        host: Some("registry.npmjs.org"),
    },
    NetworkErrorPattern {
        tool: "node",
        pattern: r"connect (?:ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT) (?<host>[\w.:]+):\d+",
        example: "Error: connect ENETUNREACH 93.184.216.34:443 - Local (0.0.0.0:0)",
        host: Some("93.184.216.34"),
    },
    NetworkErrorPattern {
        tool: "go, docker",
        pattern: r"dial (?:tcp|udp)[46]?:? lookup (?<host>[\w.-]+)(?: on [^\n]*)?: ",
        example: "go: example.com/m@v1.0.0: Get \"https://proxy.golang.org/example.com/m/@v/v1.0.0.mod\": dial tcp: \
                  lookup proxy.golang.org on 127.0.0.53:53: server misbehaving",
        host: Some("proxy.golang.org"),
    },
    NetworkErrorPattern {
        tool: "go",
        pattern: r"dial (?:tcp|udp)[46]? (?<host>\[[0-9a-f:]+\]|[\w.-]+):\d+: (?:connect: (?:network is unreachable|connection refused|no route)|i/o timeout)",
        example: "dial tcp 142.250.1.141:443: connect: network is unreachable",
        host: Some("142.250.1.141"),
    },
    NetworkErrorPattern {
        tool: "apt",
        pattern: r"(?:Temporary failure resolving|Could not resolve) '(?<host>[\w.-]+)'",
        example: "Err:1 http://deb.debian.org/debian trixie InRelease\n  Temporary failure resolving 'deb.debian.org'",
        host: Some("deb.debian.org"),
    },
    NetworkErrorPattern {
        tool: "apt",
        pattern: r"(?:Could not connect to|Cannot initiate the connection to|Unable to connect to) (?<host>[\w.-]+):",
        example: "  Could not connect to deb.debian.org:80 (151.101.1.132). - connect (101: Network is unreachable)",
        host: Some("deb.debian.org"),
    },
    NetworkErrorPattern {
        tool: "apk",
        pattern: r"fetching https?://(?<host>[\w.-]+)[^\n]*: (?:temporary error|network error|DNS)",
        example: "WARNING: fetching https://dl-cdn.alpinelinux.org/alpine/v3.20/main: temporary error (try again later)",
        host: Some("dl-cdn.alpinelinux.org"),
    },
    NetworkErrorPattern {
        tool: "java, gradle",
        pattern: r"UnknownHostException: (?<host>[\w.-]+)",
        example: "Exception in thread \"main\" java.net.UnknownHostException: repo.maven.apache.org",
        host: Some("repo.maven.apache.org"),
    },
    NetworkErrorPattern {
        tool: "maven",
        pattern: r"(?<host>[\w-]+(?:\.[\w-]+)+): (?:Temporary failure in name resolution|Name or service not known|Unknown host|No address associated)",
        example: "Could not transfer artifact a:b:pom:1 from/to central (https://repo.maven.apache.org/maven2): \
                  repo.maven.apache.org: Temporary failure in name resolution",
        host: Some("repo.maven.apache.org"),
    },
    NetworkErrorPattern {
        tool: "dotnet",
        pattern: r"(?:Name or service not known|Temporary failure in name resolution|Resource temporarily unavailable) \((?<host>[\w.-]+):\d+\)",
        example: "error NU1301:   Name or service not known (api.nuget.org:443)",
        host: Some("api.nuget.org"),
    },
    NetworkErrorPattern {
        tool: "ruby, gem",
        pattern: r"Failed to open TCP connection to (?<host>[\w.-]+):\d+",
        example: "SocketError: Failed to open TCP connection to rubygems.org:443 (getaddrinfo: Name or service not known)",
        host: Some("rubygems.org"),
    },
    NetworkErrorPattern {
        tool: "php, composer",
        pattern: r"getaddrinfo for (?<host>[\w.-]+) failed",
        example: "php_network_getaddresses: getaddrinfo for repo.packagist.org failed: Name or service not known",
        host: Some("repo.packagist.org"),
    },
    NetworkErrorPattern {
        tool: "any, behind a proxy that refuses",
        pattern: r"CONNECT tunnel failed, response 403|HTTP code 403 from proxy after CONNECT|Proxy tunneling failed: Forbidden|Tunnel connection failed: 403",
        example: "curl: (56) CONNECT tunnel failed, response 403",
        host: None,
    },
    NetworkErrorPattern {
        tool: "curl",
        pattern: r"curl: \(28\) Connection timed out|curl: \(5\) Could not resolve proxy",
        example: "curl: (28) Connection timed out after 3001 milliseconds",
        host: None,
    },
    NetworkErrorPattern {
        tool: "python",
        pattern: r"gaierror: \[Errno -\d+\]|urlopen error \[Errno (?:-2|-3|-5|101|113)\]|ConnectError: \[Errno (?:-2|-3|-5|101|113)\]",
        example: "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        host: None,
    },
    NetworkErrorPattern {
        tool: "rust",
        pattern: r"dns error: failed to lookup address information",
        example: "error trying to connect: dns error: failed to lookup address information: Name or service not known",
        host: None,
    },
    NetworkErrorPattern {
        tool: "any, by the C library",
        pattern: r"Temporary failure in name resolution|Name or service not known|(?i:network is unreachable)",
        example: "nc: getaddrinfo: Temporary failure in name resolution",
        host: None,
    },
];
