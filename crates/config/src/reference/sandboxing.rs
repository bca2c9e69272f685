//! `sandboxing` and `log`.

use super::AcceptedValues::{ByCategory, Layers, List, One, Section};
use super::MemberDefault::{Means, Members, Stands};
use super::{BOOLEAN, Member};

const BACKEND: &str = "one of: docker, native, subprocess";
const NETWORK: &str = "one of: bridge, none";
const RUNTIME: &str = "the name of a runtime, such as runsc";
const TIMEOUT: &str = "a number of seconds from 0.001 to 600, with up to three places";
const UP_TO_A_DAY: &str = "a number of seconds from 0 to 86400, with up to three places";
const MEMORY: &str = "a size from 6291456 bytes on, such as 64m: a whole number and k, m, g or nothing";
const SCRATCH: &str = "a size from 4096 bytes on, such as 64m: a whole number and k, m, g or nothing";
const PIDS: &str = "a whole number from 1 to 1024";
const PROCESSORS: &str = "a number of processors above 0 up to 16, such as 1.5";
const VARIABLES: &str = "a variable name pattern, with `*` for any characters, such as LC_*";

const REQUIRED: Member = Member {
    name: "required",
    takes: Layers,
    unsaid: Stands("[]"),
    meaning: "isolation layers that sandboxes of this backend must have",
};

pub(super) const SANDBOXING: &[Member] = &[
    Member {
        name: "default_backend",
        takes: One(BACKEND),
        unsaid: Stands("subprocess"),
        meaning: "the backend of every category without an override; where it is written, that of `exec` and `session create` too, unless \
                  `overrides.terminal` is",
    },
    Member {
        name: "overrides",
        takes: ByCategory(BACKEND),
        unsaid: Means(
            "with `subprocess` as the default: `subprocess` for file_system and version_control, `docker` for web, \
             code_execution, terminal, database, browser and desktop; else none",
            "{web: native}",
        ),
        meaning: "the backend of a category; written ones are added to those that stand anyway",
    },
    Member { meaning: "isolation layers that every sandbox must have", ..REQUIRED },
    Member {
        name: "subprocess",
        takes: Section(SUBPROCESS),
        unsaid: Members,
        meaning: "programs of the host with reduced isolation",
    },
    Member {
        name: "docker",
        takes: Section(DOCKER),
        unsaid: Members,
        meaning: "containers of a Docker \
    engine",
    },
    Member {
        name: "native",
        takes: Section(NATIVE),
        unsaid: Members,
        meaning: "sandboxes made with kernel features only; used for a node's jobs",
    },
    Member {
        name: "k8s",
        takes: Section(K8S),
        unsaid: Members,
        meaning: "Kubernetes pods; not supported \
    in this version",
    },
];

const SUBPROCESS: &[Member] = &[
    Member {
        name: "timeout_seconds",
        takes: One(TIMEOUT),
        unsaid: Stands("30"),
        meaning: "time limit of a call",
    },
    Member {
        name: "workspace_only",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether access to files outside the workspace is blocked",
    },
    Member {
        name: "restricted_path",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether `PATH` contains only safe directories",
    },
    Member {
        name: "env_allowlist",
        takes: List(VARIABLES),
        unsaid: Means("the backend's own list", "[HOME, LC_*]"),
        meaning: "environment variables of the host that are passed to programs",
    },
    Member {
        name: "env_denylist_patterns",
        takes: List(VARIABLES),
        unsaid: Means("the backend's own list", "['*KEY*']"),
        meaning: "environment variables that are never passed",
    },
    Member {
        name: "extra_safe_path_prefixes",
        takes: List("an absolute path without `.` and `..` that is not the root, such as /opt/tools/bin"),
        unsaid: Stands("[]"),
        meaning: "additional safe directories",
    },
    REQUIRED,
];

const DOCKER: &[Member] = &[
    Member {
        name: "image",
        takes: One("the name of an image, such as synthorg-sandbox:latest"),
        unsaid: Stands("synthorg-sandbox:latest"),
        meaning: "the image of its containers; the engine must have it",
    },
    Member { name: "network", takes: One(NETWORK), unsaid: Stands("none"), meaning: "network of containers" },
    Member {
        name: "network_overrides",
        takes: ByCategory(NETWORK),
        unsaid: Stands("{database: bridge, web: bridge}"),
        meaning: "network for each category; if present, it replaces the whole default",
    },
    Member {
        name: "allowed_hosts",
        takes: One(
            "`[]`: containers reach the web by the rules of `egress` alone, which name hosts and ports",
        ),
        unsaid: Stands("[]"),
        meaning: "hosts past the rules of `egress`: none",
    },
    Member {
        name: "dns_allowed",
        takes: One("`true`: containers have no resolver; the proxy resolves the hosts that rules allow"),
        unsaid: Stands("true"),
        meaning: "whether containers can resolve names",
    },
    Member {
        name: "loopback_allowed",
        takes: One(
            "`true`: a container has a loopback interface of its own, and nothing of the host is on it",
        ),
        unsaid: Stands("true"),
        meaning: "whether containers have a loopback interface",
    },
    Member { name: "memory_limit", takes: One(MEMORY), unsaid: Stands("512m"), meaning: "memory" },
    Member {
        name: "cpu_limit",
        takes: One(PROCESSORS),
        unsaid: Stands("\"1.0\""),
        meaning: "processor time",
    },
    Member {
        name: "timeout_seconds",
        takes: One(TIMEOUT),
        unsaid: Stands("120"),
        meaning: "time limit of a call",
    },
    Member {
        name: "pids_limit",
        takes: One(PIDS),
        unsaid: Stands("64"),
        meaning: "maximum processes and \
    threads",
    },
    Member {
        name: "disk_limit",
        takes: One(SCRATCH),
        unsaid: Stands("8g"),
        meaning: "disk quota, if the workspace is on disk",
    },
    Member {
        name: "tmpfs_size",
        takes: One(SCRATCH),
        unsaid: Stands("64m"),
        meaning: "size limit of `/tmp`",
    },
    Member {
        name: "sidecar_pids_limit",
        takes: One("`32`: containers have no sidecar"),
        unsaid: Stands("32"),
        meaning: "maximum processes and threads of a sidecar",
    },
    Member {
        name: "sidecar_tmpfs_size",
        takes: One("`8m`: containers have no sidecar"),
        unsaid: Stands("8m"),
        meaning: "size limit of a sidecar's `/tmp`",
    },
    Member {
        name: "mount_mode",
        takes: One("one of: ro, rw"),
        unsaid: Stands("ro"),
        meaning: "access mode of the workspace",
    },
    Member {
        name: "auto_remove",
        takes: One("`true`: containers are always removed"),
        unsaid: Stands("true"),
        meaning: "whether a container is removed when its session ends it",
    },
    Member {
        name: "runtime",
        takes: One(RUNTIME),
        unsaid: Means("the engine's own", "runsc"),
        meaning: "the runtime",
    },
    Member {
        name: "runtime_overrides",
        takes: ByCategory(RUNTIME),
        unsaid: Stands("{}"),
        meaning: "runtime for each category",
    },
    Member {
        name: "lifecycle",
        takes: Section(LIFECYCLE),
        unsaid: Members,
        meaning: "lifetime of containers",
    },
    REQUIRED,
];

const NATIVE: &[Member] = &[
    Member {
        name: "timeout_seconds",
        takes: One(TIMEOUT),
        unsaid: Stands("120"),
        meaning: "time limit of a call; for a node's jobs, see `node.timeouts`",
    },
    Member { name: "memory_limit", takes: One(MEMORY), unsaid: Stands("4g"), meaning: "memory" },
    Member {
        name: "pids_limit",
        takes: One("a whole number from 1 to 32768"),
        unsaid: Stands("1024"),
        meaning: "maximum processes and threads",
    },
    Member {
        name: "cpu_limit",
        takes: One(PROCESSORS),
        unsaid: Means("no limit", "\"1.5\""),
        meaning: "processor time",
    },
    Member {
        name: "open_files_limit",
        takes: One("a whole number from 64 to 1048576"),
        unsaid: Stands("65536"),
        meaning: "maximum open files per process",
    },
    Member { name: "disk_limit", takes: One(SCRATCH), unsaid: Stands("8g"), meaning: "disk quota" },
    Member {
        name: "tmpfs_size",
        takes: One("a size from 1048576 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("1g"),
        meaning: "size limit of in-memory file systems, `/tmp` included",
    },
    Member {
        name: "ptys_limit",
        takes: One("a whole number from 1 to 1024"),
        unsaid: Stands("64"),
        meaning: "pseudo-terminals",
    },
    Member {
        name: "seccomp_filters_limit",
        takes: One("a whole number from 0 to 4096"),
        unsaid: Stands("64"),
        meaning: "maximum seccomp filters installed by programs",
    },
    Member {
        name: "lifecycle",
        takes: Section(LIFECYCLE),
        unsaid: Members,
        meaning: "lifetime of sandboxes",
    },
    REQUIRED,
];

const LIFECYCLE: &[Member] = &[
    Member {
        name: "strategy",
        takes: One("one of: per-agent, per-call"),
        unsaid: Stands("per-agent"),
        meaning: "`per-agent`: a sandbox stays with the session of its agent; `per-call`: each call has its own",
    },
    Member {
        name: "grace_period_seconds",
        takes: One("`30`: an agent's sandboxes end with its session, which `--idle` and `--keep` govern"),
        unsaid: Stands("30"),
        meaning: "how long the sandbox of a stopped agent is kept",
    },
    Member {
        name: "health_check_interval_seconds",
        takes: One(
            "`10`: a sandbox that has ended is replaced at the next call, and not looked at meanwhile",
        ),
        unsaid: Stands("10"),
        meaning: "interval of health checks of kept sandboxes",
    },
    Member {
        name: "max_idle_seconds",
        takes: One(UP_TO_A_DAY),
        unsaid: Stands("300"),
        meaning: "idle time after which a kept sandbox is destroyed; 0: never",
    },
];

const K8S: &[Member] = &[
    Member {
        name: "namespace",
        takes: One("`synthorg-agents`: this version makes no pods"),
        unsaid: Stands("synthorg-agents"),
        meaning: "namespace of pods",
    },
    Member {
        name: "resource_requests",
        takes: Section(REQUESTS),
        unsaid: Members,
        meaning: "resource requests of pods",
    },
    Member {
        name: "resource_limits",
        takes: Section(LIMITS),
        unsaid: Members,
        meaning: "resource limits of pods",
    },
    Member {
        name: "network_policy",
        takes: One("`deny-all`: this version makes no pods"),
        unsaid: Stands("deny-all"),
        meaning: "network policy of pods",
    },
];

const CPU: Member = Member {
    name: "cpu",
    takes: One("`250m`: this version makes no pods"),
    unsaid: Stands("250m"),
    meaning: "processor time",
};
const POD_MEMORY: Member = Member {
    name: "memory",
    takes: One("`256Mi`: this version makes no pods"),
    unsaid: Stands("256Mi"),
    meaning: "memory",
};
const REQUESTS: &[Member] = &[CPU, POD_MEMORY];
const LIMITS: &[Member] = &[
    Member { takes: One("`1`: this version makes no pods"), unsaid: Stands("1"), ..CPU },
    Member { takes: One("`1Gi`: this version makes no pods"), unsaid: Stands("1Gi"), ..POD_MEMORY },
];

pub(super) const LOG: &[Member] = &[Member {
    name: "container_log_shipping",
    takes: Section(SHIPPING),
    unsaid: Members,
    meaning: "a line for each program, at `--log-level info`",
}];

const SHIPPING: &[Member] = &[
    Member {
        name: "enabled",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether programs are \
    logged",
    },
    Member {
        name: "collection_timeout_seconds",
        takes: One("a number of seconds from 0.1 to 30, with up to three places"),
        unsaid: Stands("5"),
        meaning: "time limit for scanning output for secrets; output that is not scanned in time is \
    omitted",
    },
    Member {
        name: "max_log_bytes",
        takes: One("a whole number from 1 to 1073741824"),
        unsaid: Stands("10485760"),
        meaning: "maximum logged output, all streams together",
    },
    Member {
        name: "ship_raw_logs",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether output is logged, and not only its size",
    },
];
