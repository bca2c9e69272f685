//! `mcp`.

use super::AcceptedValues::{ByName, List, One, Section, Sections};
use super::MemberDefault::{Described, Members, Required, Value};
use super::Scalar::{Any, Boolean, OneOf, Seconds, Size, Text, Whole};
use super::{Member, Scalar, USER};

const PATH: Scalar = Text("an absolute path without `.` and `..` that is not the root");
const TOOL: Scalar = Text("the name of a tool, as its server calls it");

pub(super) const MCP: &[Member] = &[
    Member::new(
        "hosts",
        List(Text("a host such as node.example, or node.example:12090")),
        Value("[]"),
        "additional host names by which remote agents reach the node's tools",
    ),
    Member::new(
        "disabled_tools",
        List(Text("a tool's name such as web.fetch")),
        Value("[]"),
        "tools that are disabled for all callers",
    ),
    Member::new(
        "tool_scopes",
        ByName(OneOf(&["both", "pm", "sandbox"])),
        Value("{}"),
        "audience of a tool, by name such as web.fetch or mcp_files_read, instead of its own; it can only narrow the audience of built-in tools",
    ),
    Member::new(
        "planners_may_add_images",
        One(Boolean),
        Value("false"),
        "whether planners may add images to this node's allowlist, through `sandbox.allowed_images.add`",
    ),
    Member::new(
        "servers",
        Sections(SERVER),
        Described("none", ""),
        "additional MCP servers; no name may equal another one or extend it after `_`",
    ),
];

const SERVER: &[Member] = &[
    Member::new(
        "name",
        One(Text("1 to 32 of a-z, 0-9, `_` and `-`")),
        Required("files"),
        "unique name; its tools are called `mcp_NAME_TOOL`",
    ),
    Member::new(
        "transport",
        One(OneOf(&["stdio", "streamable_http"])),
        Required("stdio"),
        "transport: a local program, or HTTP",
    ),
    Member::new(
        "command",
        One(Text("a name without slashes, or the absolute path of a program")),
        Required("mcp-server-filesystem"),
        "program to start; only with `stdio`",
    ),
    Member::new("args", List(Text("an argument")), Value("[]"), "arguments of the program").secret(),
    Member::new(
        "env",
        ByName(Text("a text")),
        Described("only the variables of every sandbox", "{LEVEL: debug}"),
        "environment variables; not safe for secrets",
    )
    .secret(),
    Member::new(
        "lend",
        List(PATH),
        Value("[]"),
        "host paths that are bind-mounted read-only at the same path",
    ),
    Member::new(
        "workspace",
        Section(WORKSPACE),
        Described("empty, and in memory", ""),
        "directory at its `/workspace`",
    ),
    Member::new("memory_limit", One(Size(1048576)), Value("1g"), "memory limit of its sandbox"),
    Member::new(
        "pids_limit",
        One(Whole(1, 100000)),
        Value("128"),
        "maximum processes and threads in its sandbox",
    ),
    Member::new(
        "unsealed",
        One(Boolean),
        Value("false"),
        "whether it runs on the host without a sandbox, with the node's own access",
    ),
    Member::new(
        "url",
        One(Text("a URL such as https://tools.example/mcp")),
        Described("required with `streamable_http`, and only there", "https://tools.example/mcp"),
        "URL of the server",
    )
    .alternative(),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive secrets over plain http",
    )
    .alternative(),
    Member::new(
        "headers",
        ByName(Any("`value`, or `secret` and perhaps `prefix`")),
        Described("none", "{authorization: {prefix: 'Bearer ', secret: {file: /run/keys/tools}}}"),
        "headers of its requests; a `secret` comes from one of `env`, `file`, `command`",
    )
    .alternative()
    .secret(),
    Member::new(
        "enabled_tools",
        List(TOOL),
        Described("all of its tools", "[read_text_file]"),
        "tools to offer",
    ),
    Member::new("disabled_tools", List(TOOL), Value("[]"), "tools to leave out"),
    Member::new(
        "scope",
        One(OneOf(&["both", "pm", "sandbox"])),
        Value("pm"),
        "agents that its tools are for",
    ),
    Member::new("timeout_seconds", One(Seconds(1000, 600000)), Value("30"), "time limit of a call"),
    Member::new(
        "connect_timeout_seconds",
        One(Seconds(1000, 120000)),
        Value("10"),
        "time limit for connecting and listing its tools",
    ),
    Member::new(
        "cache_ttl_seconds",
        One(Seconds(0, 86400000)),
        Value("60"),
        "how long answers of read-only tools are cached, per task",
    ),
    Member::new("cache_size", One(Whole(0, 10000)), Value("256"), "maximum number of cached answers"),
    Member::new("enabled", One(Boolean), Value("true"), "whether the server is used"),
    Member::new("limits", Section(LIMITS), Members, "limits of the server"),
];

const WORKSPACE: &[Member] = &[
    Member::new("path", One(PATH), Required("/srv/docs"), "directory of the host"),
    Member::new(
        "mode",
        One(OneOf(&["copy", "direct"])),
        Value("copy"),
        "whether writes go to an overlay that is discarded with the sandbox (`copy`), or to the directory itself (`direct`)",
    ),
];

const LIMITS: &[Member] = &[
    Member::new(
        "calls",
        One(Whole(1, 64)),
        Value("4"),
        "maximum concurrent calls; sixteen times as many may wait",
    ),
    Member::new("answer", One(Size(1024)), Value("4m"), "maximum size of a message, up to 64m"),
    Member::new("tools", One(Whole(1, 1000)), Value("128"), "maximum number of tools"),
];
