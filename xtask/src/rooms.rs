//! The crates, and what each may import. `ARCHITECTURE.md` shows the same table to people.

/// One crate.
pub(crate) struct Room {
    /// Its folder below `crates/`; the package is `belljar-<name>`.
    pub(crate) name: &'static str,
    /// The rooms it may import outside of tests.
    pub(crate) may_import: &'static [&'static str],
}

/// Every crate, from the bottom up.
pub(crate) const ROOMS: &[Room] = &[
    Room { name: "contract", may_import: &[] },
    Room { name: "policy", may_import: &["contract"] },
    Room { name: "confine", may_import: &[] },
    Room { name: "sandbox", may_import: &["contract", "policy", "confine"] },
    Room { name: "runner", may_import: &["contract", "policy"] },
    Room { name: "cli", may_import: &["contract", "policy", "confine", "sandbox", "runner"] },
    Room { name: "testkit", may_import: &["contract", "policy", "confine", "sandbox", "runner"] },
    Room { name: "bench", may_import: &["confine", "sandbox"] },
    Room { name: "xtask", may_import: &["contract", "confine"] },
];

/// The room that only tests may import.
pub(crate) const ONLY_FOR_TESTS: &str = "testkit";

/// The one room with `unsafe` code.
pub(crate) const UNSAFE: &str = "confine";

/// The rooms without I/O, clock, environment and randomness.
pub(crate) const PURE: &[&str] = &["contract", "policy"];

/// Crates from outside that not every room may import.
pub(crate) struct Outsider {
    /// Their names.
    pub(crate) names: &'static [&'static str],
    /// The rooms that may.
    pub(crate) only_in: &'static [&'static str],
    /// Why no other.
    pub(crate) why: &'static str,
}

/// The rules about them.
pub(crate) const OUTSIDERS: &[Outsider] = &[
    Outsider {
        names: &[
            "attohttpc",
            "curl",
            "hyper",
            "hyper-util",
            "hyper-rustls",
            "isahc",
            "minreq",
            "native-tls",
            "openssl",
            "reqwest",
            "rustls",
            "tokio-rustls",
            "ureq",
        ],
        only_in: &[],
        why: "nothing here speaks HTTP or TLS yet; when something does, one room will",
    },
    Outsider {
        names: &["async-std", "mio", "smol", "tokio"],
        only_in: &["sandbox", "cli", "testkit"],
        why: "the contract and policy do no I/O, the runner and the walls are small and have no runtime",
    },
    Outsider {
        names: &["libc", "nix"],
        only_in: &["confine", "runner"],
        why: "who calls the kernel by hand needs `unsafe`, and that is in one room; the runner takes numbers from it",
    },
];
