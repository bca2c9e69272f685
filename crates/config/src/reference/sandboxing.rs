//! `sandboxing` and `log`.

use super::AcceptedValues::{ByCategory, Layers, List, One, Section};
use super::MemberDefault::{Described, Members, Value};
use super::Scalar::{Any, Boolean, Fixed, OneOf, Seconds, Size, Text, Whole};
use super::{Member, Override, Scalar};

const BACKEND: Scalar = OneOf(&["docker", "native", "subprocess"]);
const NETWORK: Scalar = OneOf(&["bridge", "none"]);
const RUNTIME: Scalar = Text("the name of a runtime, such as runsc");
const TIMEOUT: Scalar = Seconds(1, 600000);
const UP_TO_A_DAY: Scalar = Seconds(0, 86400000);
const MEMORY: Scalar = Size(6291456);
const SCRATCH: Scalar = Size(4096);
const PIDS: Scalar = Whole(1, 1024);
const PROCESSORS: Scalar = Any("a number of processors above 0 up to 16, such as 1.5");
const VARIABLES: Scalar = Text("a variable name pattern, with `*` for any characters, such as LC_*");

/// An option of the commands that create a sandbox.
const fn of_sandbox(name: &'static str) -> Override {
    Override::Flag { name, commands: "commands that create sandboxes" }
}

const REQUIRED: Member =
    Member::new("required", Layers, Value("[]"), "isolation layers that sandboxes of this backend must have");

pub(super) const SANDBOXING: &[Member] = &[
    Member::new(
        "default_backend",
        One(BACKEND),
        Value("subprocess"),
        "the backend of every category without an override; where it is written, that of `exec` and `session create` too, unless `overrides.terminal` is",
    ).overridden_by(&[of_sandbox("--backend")]),
    Member::new(
        "overrides",
        ByCategory(BACKEND),
        Described(
            "with `subprocess` as the default: `subprocess` for file_system and version_control, `docker` for web, \
             code_execution, terminal, database, browser and desktop; else none",
            "{terminal: native}",
        ),
        "the backend of a category; written ones are added to those that stand anyway",
    ),
    REQUIRED.meaning("isolation layers that every sandbox must have"),
    Member::new("subprocess", Section(SUBPROCESS), Members, "programs of the host with reduced isolation"),
    Member::new("docker", Section(DOCKER), Members, "containers of a Docker engine"),
    Member::new(
        "native",
        Section(NATIVE),
        Members,
        "sandboxes made with kernel features only; used for a node's jobs",
    ),
    Member::new("k8s", Section(K8S), Members, "Kubernetes pods; not supported in this version"),
];

const SUBPROCESS: &[Member] = &[
    Member::new("timeout_seconds", One(TIMEOUT), Value("30"), "time limit of a call"),
    Member::new(
        "workspace_only",
        One(Boolean),
        Value("true"),
        "whether access to files outside the workspace is blocked",
    ),
    Member::new(
        "restricted_path",
        One(Boolean),
        Value("true"),
        "whether `PATH` contains only safe directories",
    ),
    Member::new(
        "env_allowlist",
        List(VARIABLES),
        Described("the backend's own list", "[HOME, LC_*]"),
        "environment variables of the host that are passed to programs",
    ),
    Member::new(
        "env_denylist_patterns",
        List(VARIABLES),
        Described("the backend's own list", "['*KEY*']"),
        "environment variables that are never passed",
    ),
    Member::new(
        "extra_safe_path_prefixes",
        List(Text("an absolute path without `.` and `..` that is not the root, such as /opt/tools/bin")),
        Value("[]"),
        "additional safe directories",
    ),
    REQUIRED,
];

const DOCKER: &[Member] = &[
    Member::new(
        "image",
        One(Text("the name of an image, such as synthorg-sandbox:latest")),
        Value("synthorg-sandbox:latest"),
        "the image of its containers; the engine must have it",
    ),
    Member::new("network", One(NETWORK), Value("none"), "network of containers"),
    Member::new(
        "network_overrides",
        ByCategory(NETWORK),
        Value("{database: bridge, web: bridge}"),
        "network for each category; if present, it replaces the whole default",
    ),
    Member::new(
        "allowed_hosts",
        One(Fixed(
            "[]",
            "containers reach the web by the rules of `egress` alone, which name hosts and ports",
        )),
        Value("[]"),
        "hosts past the rules of `egress`: none",
    ),
    Member::new(
        "dns_allowed",
        One(Fixed("true", "containers have no resolver; the proxy resolves the hosts that rules allow")),
        Value("true"),
        "whether containers can resolve names",
    ),
    Member::new(
        "loopback_allowed",
        One(Fixed(
            "true",
            "a container has a loopback interface of its own, and nothing of the host is on it",
        )),
        Value("true"),
        "whether containers have a loopback interface",
    ),
    Member::new("memory_limit", One(MEMORY), Value("512m"), "memory")
        .overridden_by(&[of_sandbox("--memory")]),
    Member::new("cpu_limit", One(PROCESSORS), Value("\"1.0\""), "processor time")
        .overridden_by(&[of_sandbox("--cpus")]),
    Member::new("timeout_seconds", One(TIMEOUT), Value("120"), "time limit of a call"),
    Member::new("pids_limit", One(PIDS), Value("64"), "maximum processes and threads")
        .overridden_by(&[of_sandbox("--pids")]),
    Member::new("disk_limit", One(SCRATCH), Value("8g"), "disk quota, if the workspace is on disk")
        .overridden_by(&[of_sandbox("--disk")]),
    Member::new("tmpfs_size", One(SCRATCH), Value("64m"), "size limit of `/tmp`")
        .overridden_by(&[of_sandbox("--scratch")]),
    Member::new(
        "sidecar_pids_limit",
        One(Fixed("32", "containers have no sidecar")),
        Value("32"),
        "maximum processes and threads of a sidecar",
    ),
    Member::new(
        "sidecar_tmpfs_size",
        One(Fixed("8m", "containers have no sidecar")),
        Value("8m"),
        "size limit of a sidecar's `/tmp`",
    ),
    Member::new("mount_mode", One(OneOf(&["ro", "rw"])), Value("ro"), "access mode of the workspace"),
    Member::new(
        "auto_remove",
        One(Fixed("true", "containers are always removed")),
        Value("true"),
        "whether a container is removed when its session ends it",
    ),
    Member::new("runtime", One(RUNTIME), Described("the engine's own", "runsc"), "the runtime"),
    Member::new("runtime_overrides", ByCategory(RUNTIME), Value("{}"), "runtime for each category"),
    Member::new("lifecycle", Section(LIFECYCLE), Members, "lifetime of containers"),
    REQUIRED,
];

const NATIVE: &[Member] = &[
    Member::new(
        "timeout_seconds",
        One(TIMEOUT),
        Value("120"),
        "time limit of a call; for a node's jobs, see `node.timeouts`",
    ),
    Member::new("memory_limit", One(MEMORY), Value("4g"), "memory").overridden_by(&[of_sandbox("--memory")]),
    Member::new("pids_limit", One(Whole(1, 32768)), Value("1024"), "maximum processes and threads")
        .overridden_by(&[of_sandbox("--pids")]),
    Member::new("cpu_limit", One(PROCESSORS), Described("no limit", "\"1.5\""), "processor time")
        .overridden_by(&[of_sandbox("--cpus")]),
    Member::new(
        "open_files_limit",
        One(Whole(64, 1048576)),
        Value("65536"),
        "maximum open files per process",
    )
    .overridden_by(&[of_sandbox("--open-files")]),
    Member::new("disk_limit", One(SCRATCH), Value("8g"), "disk quota").overridden_by(&[of_sandbox("--disk")]),
    Member::new(
        "tmpfs_size",
        One(Size(1048576)),
        Value("1g"),
        "size limit of in-memory file systems, `/tmp` included",
    )
    .overridden_by(&[of_sandbox("--scratch")]),
    Member::new("ptys_limit", One(Whole(1, 1024)), Value("64"), "pseudo-terminals")
        .overridden_by(&[of_sandbox("--ptys")]),
    Member::new(
        "seccomp_filters_limit",
        One(Whole(0, 4096)),
        Value("64"),
        "maximum seccomp filters installed by programs",
    )
    .overridden_by(&[of_sandbox("--seccomp-filters")]),
    Member::new("lifecycle", Section(LIFECYCLE), Members, "lifetime of sandboxes"),
    REQUIRED,
];

const LIFECYCLE: &[Member] = &[
    Member::new(
        "strategy",
        One(OneOf(&["per-agent", "per-call"])),
        Value("per-agent"),
        "`per-agent`: a sandbox stays with the session of its agent; `per-call`: each call has its own",
    ),
    Member::new(
        "grace_period_seconds",
        One(Fixed("30", "an agent's sandboxes end with its session, which `--idle` and `--keep` govern")),
        Value("30"),
        "how long the sandbox of a stopped agent is kept",
    ),
    Member::new(
        "health_check_interval_seconds",
        One(Fixed(
            "10",
            "a sandbox that has ended is replaced at the next call, and not looked at meanwhile",
        )),
        Value("10"),
        "interval of health checks of kept sandboxes",
    ),
    Member::new(
        "max_idle_seconds",
        One(UP_TO_A_DAY),
        Value("300"),
        "idle time after which a kept sandbox is destroyed; 0: never",
    ),
];

const K8S: &[Member] = &[
    Member::new(
        "namespace",
        One(Fixed("synthorg-agents", "this version makes no pods")),
        Value("synthorg-agents"),
        "namespace of pods",
    ),
    Member::new("resource_requests", Section(REQUESTS), Members, "resource requests of pods"),
    Member::new("resource_limits", Section(LIMITS), Members, "resource limits of pods"),
    Member::new(
        "network_policy",
        One(Fixed("deny-all", "this version makes no pods")),
        Value("deny-all"),
        "network policy of pods",
    ),
];

const CPU: Member =
    Member::new("cpu", One(Fixed("250m", "this version makes no pods")), Value("250m"), "processor time");
const POD_MEMORY: Member =
    Member::new("memory", One(Fixed("256Mi", "this version makes no pods")), Value("256Mi"), "memory");
const REQUESTS: &[Member] = &[CPU, POD_MEMORY];
const LIMITS: &[Member] = &[
    Member::new("cpu", One(Fixed("1", "this version makes no pods")), Value("1"), "processor time"),
    Member::new("memory", One(Fixed("1Gi", "this version makes no pods")), Value("1Gi"), "memory"),
];

pub(super) const LOG: &[Member] = &[Member::new(
    "container_log_shipping",
    Section(SHIPPING),
    Members,
    "a line for each program, at `--log-level info`",
)];

const SHIPPING: &[Member] = &[
    Member::new("enabled", One(Boolean), Value("true"), "whether programs are logged"),
    Member::new(
        "collection_timeout_seconds",
        One(Seconds(100, 30000)),
        Value("5"),
        "time limit for scanning output for secrets; output that is not scanned in time is omitted",
    ),
    Member::new(
        "max_log_bytes",
        One(Whole(1, 1073741824)),
        Value("10485760"),
        "maximum logged output, all streams together",
    )
    .in_unit("bytes"),
    Member::new(
        "ship_raw_logs",
        One(Boolean),
        Value("false"),
        "whether output is logged, and not only its size",
    ),
];
