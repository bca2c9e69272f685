//! The crates, and the imports that each may have. `ARCHITECTURE.md` shows the same table to people.

/// A crate.
pub(crate) struct CrateRules {
    /// Its folder below `crates/`, `tests/` or the root; the package is `belljar-<name>`.
    pub(crate) name: &'static str,
    /// The rooms it may import outside of tests.
    pub(crate) may_import: &'static [&'static str],
}

/// All crates, from the bottom up.
pub(crate) const ROOMS: &[CrateRules] = &[
    CrateRules { name: "contract", may_import: &[] },
    CrateRules { name: "policy", may_import: &["contract"] },
    CrateRules { name: "files", may_import: &[] },
    CrateRules { name: "confine", may_import: &["files"] },
    CrateRules { name: "failpoint", may_import: &[] },
    CrateRules { name: "trusted", may_import: &["contract", "confine"] },
    CrateRules {
        name: "sandbox",
        may_import: &["contract", "policy", "files", "confine", "failpoint", "trusted"],
    },
    CrateRules { name: "egress", may_import: &["contract", "policy", "trusted"] },
    CrateRules { name: "store", may_import: &["contract", "policy", "failpoint", "trusted"] },
    CrateRules { name: "journal", may_import: &["contract", "egress", "store"] },
    CrateRules {
        name: "git",
        may_import: &["contract", "policy", "files", "failpoint", "trusted", "egress", "journal"],
    },
    CrateRules {
        name: "tools",
        may_import: &["contract", "policy", "files", "trusted", "sandbox", "egress", "store", "git"],
    },
    CrateRules {
        name: "gateway",
        may_import: &["contract", "policy", "sandbox", "store", "tools", "trusted"],
    },
    CrateRules {
        name: "execution",
        may_import: &[
            "contract", "policy", "files", "confine", "trusted", "sandbox", "egress", "store", "tools",
            "journal",
        ],
    },
    CrateRules {
        name: "agent",
        may_import: &["contract", "policy", "files", "trusted", "sandbox", "egress", "journal", "execution"],
    },
    CrateRules {
        name: "node",
        may_import: &[
            "contract",
            "policy",
            "files",
            "confine",
            "failpoint",
            "sandbox",
            "trusted",
            "egress",
            "store",
            "tools",
            "gateway",
            "journal",
            "execution",
            "agent",
        ],
    },
    CrateRules {
        name: "config",
        may_import: &[
            "contract", "policy", "files", "sandbox", "trusted", "egress", "store", "tools", "agent", "node",
        ],
    },
    CrateRules { name: "runner", may_import: &["contract", "policy", "files"] },
    CrateRules {
        name: "cli",
        may_import: &[
            "contract",
            "policy",
            "files",
            "confine",
            "trusted",
            "sandbox",
            "egress",
            "store",
            "tools",
            "gateway",
            "journal",
            "git",
            "execution",
            "agent",
            "node",
            "config",
            "runner",
        ],
    },
    CrateRules { name: "testkit", may_import: &["contract", "policy", "confine", "sandbox", "runner"] },
    CrateRules { name: "promises", may_import: &["files", "confine", "failpoint", "sandbox"] },
    CrateRules { name: "vm", may_import: &[] },
    CrateRules { name: "budgets", may_import: &[] },
    CrateRules {
        name: "bench",
        may_import: &[
            "contract", "policy", "confine", "sandbox", "egress", "store", "tools", "gateway", "journal",
            "node", "testkit",
        ],
    },
    CrateRules { name: "xtask", may_import: &["contract", "confine", "config"] },
];

/// The room that only tests may import.
pub(crate) const ONLY_FOR_TESTS: &str = "testkit";

/// The one room with `unsafe` code.
pub(crate) const UNSAFE: &str = "confine";

/// A program outside of that room that needs some all the same.
pub(crate) struct UnsafeException {
    /// Files with exceptions.
    pub(crate) files: &'static [&'static str],
    /// Reason of the exception.
    pub(crate) why: &'static str,
}

/// All exceptions. Adding one requires a review.
pub(crate) const UNSAFE_EXCEPTIONS: &[UnsafeException] = &[
    UnsafeException {
        files: &["tests/promises/src/main.rs", "tests/promises/src/probe/kernel.rs"],
        why: "the probe of the containment suite makes the calls that must be refused, with arguments that no safe \
          library passes on; it is never shipped",
    },
    UnsafeException {
        files: &["bench/src/main.rs", "bench/src/floor.rs"],
        why: "the floor that launches are measured by is a bare call of the kernel, with none of the care of ours",
    },
];

/// A public item that no program reaches, and that is kept nevertheless.
pub(crate) struct ReachException {
    /// Its room.
    pub(crate) room: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// Reason why it is kept.
    pub(crate) why: &'static str,
}

/// All of them.
pub(crate) const UNREACHED: &[ReachException] = &[
    ReachException {
        room: "confine",
        name: "evaluate",
        why: "computes the kernel's result of each call, for tests of the filters in another crate",
    },
    ReachException {
        room: "sandbox",
        name: "asked_for_as",
        why: "the fake backend, by which tests of backends are themselves tried",
    },
    ReachException {
        room: "sandbox",
        name: "FakeNotRequestedError",
        why: "the error of the fake backend for callers that didn't request it by name",
    },
    ReachException {
        room: "sandbox",
        name: "with_walls",
        why: "the report on a kernel that lacks some walls: no test can have another kernel",
    },
    ReachException {
        room: "sandbox",
        name: "start_through",
        why: "the bench measures a launch by a launcher beside one without",
    },
    ReachException {
        room: "sandbox",
        name: "for_many",
        why: "warm pool: the bench measures its gain before a node uses it",
    },
];

/// The rooms without I/O, clock, environment and randomness.
pub(crate) const PURE: &[&str] = &["contract", "policy"];

/// Third-party crates that only some rooms may import.
pub(crate) struct RestrictedCrate {
    /// Their names.
    pub(crate) names: &'static [&'static str],
    /// Rooms that may import them.
    pub(crate) only_in: &'static [&'static str],
    /// Reason for the restriction.
    pub(crate) why: &'static str,
}

/// Client library for container engines, and its allowed features: Unix sockets only, neither TCP nor TLS.
pub(crate) struct LocalEngine {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its features.
    pub(crate) features: &'static [&'static str],
}

/// Client library that is used.
pub(crate) const LOCAL_ENGINE: LocalEngine = LocalEngine { name: "bollard", features: &["pipe"] };

/// Rules for third-party crates.
pub(crate) const OUTSIDERS: &[RestrictedCrate] = &[
    RestrictedCrate {
        names: &[
            "attohttpc",
            "aws-lc-rs",
            "curl",
            "hickory-resolver",
            "hyper-rustls",
            "isahc",
            "minreq",
            "native-tls",
            "openssl",
            "reqwest",
            "tokio-rustls",
            "ureq",
        ],
        only_in: &["egress"],
        why: "only one crate connects to other hosts: no other speaks HTTP or TLS, or resolves names",
    },
    RestrictedCrate {
        names: &["rustls", "rustls-native-certs"],
        only_in: &["egress", "runner"],
        why: "the runner is inside the sandbox, and calls servers that the node names, some by https",
    },
    RestrictedCrate {
        names: &["httparse"],
        only_in: &["egress", "runner"],
        why: "it parses heads and connects to nothing; the runner parses responses of servers that the node names",
    },
    RestrictedCrate {
        names: &["bollard"],
        only_in: &["sandbox"],
        why: "it speaks HTTP with the container engine's local socket only; that one backend is its only use",
    },
    RestrictedCrate {
        names: &["async-std", "mio", "smol", "tokio"],
        only_in: &[
            "sandbox", "egress", "store", "journal", "git", "tools", "gateway", "node", "cli", "testkit",
            "bench",
        ],
        why: "contract and policy do no I/O, and runner and confine are small and have no async runtime",
    },
    RestrictedCrate {
        names: &["axum", "hyper", "hyper-util"],
        only_in: &["gateway", "node"],
        why: "the node serves its orchestrator by HTTP, and the gateway serves agents; neither is a client, and other crates serve hatches only",
    },
    RestrictedCrate {
        names: &["rmcp"],
        only_in: &["gateway", "tools"],
        why: "it changes often: one module serves by it, and one asks other servers",
    },
    RestrictedCrate {
        names: &["opentelemetry", "opentelemetry-proto", "opentelemetry_sdk", "prost"],
        only_in: &["node", "testkit"],
        why: "they change often: one module writes traces in their form, and one reads them for tests",
    },
    RestrictedCrate {
        names: &["object_store", "rusqlite_migration"],
        only_in: &["store", "bench"],
        why: "one crate stores data in databases and buckets, and connects to its own server only; the bench compares it with a bare insert",
    },
    RestrictedCrate {
        names: &["rusqlite", "sqlx"],
        only_in: &["store", "tools", "bench"],
        why: "the store uses the node's own database, and tools query those that the configuration names; no other crate uses a database",
    },
    RestrictedCrate {
        names: &["libc", "nix"],
        only_in: &["confine", "runner", "promises", "bench"],
        why: "raw system calls need `unsafe`, which one crate has; the runner takes numbers from it, the tests' probe makes calls that must be refused, and the bench has a floor to measure by",
    },
];
