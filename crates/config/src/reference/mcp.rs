//! `mcp`.

use super::AcceptedValues::{ByName, List, One, Section, Sections};
use super::MemberDefault::{Means, Members, Required, Stands};
use super::{BOOLEAN, Member, USER};

const PATH: &str = "an absolute path without `.` and `..` that is not the root";
const TOOL: &str = "the name of a tool, as its server calls it";

pub(super) const MCP: &[Member] = &[
    Member {
        name: "hosts",
        takes: List("a host such as node.example, or node.example:12090"),
        unsaid: Stands("[]"),
        meaning: "additional host names by which remote agents reach the node's tools",
    },
    Member {
        name: "disabled_tools",
        takes: List("a tool's name such as web.fetch"),
        unsaid: Stands("[]"),
        meaning: "tools that are disabled for all callers",
    },
    Member {
        name: "tool_scopes",
        takes: ByName("one of: both, pm, sandbox"),
        unsaid: Stands("{}"),
        meaning: "audience of a tool, by name such as web.fetch or mcp_files_read, instead of its own; \
    it can only narrow the audience of built-in tools",
    },
    Member {
        name: "planners_may_add_images",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether planners may add images to this node's allowlist, through \
    `sandbox.allowed_images.add`",
    },
    Member {
        name: "servers",
        takes: Sections(SERVER),
        unsaid: Means("none", ""),
        meaning: "additional MCP servers; no name may equal another one or extend it after `_`",
    },
];

const SERVER: &[Member] = &[
    Member {
        name: "name",
        takes: One("1 to 32 of a-z, 0-9, `_` and `-`"),
        unsaid: Required("files"),
        meaning: "unique name; its tools are called `mcp_NAME_TOOL`",
    },
    Member {
        name: "transport",
        takes: One("one of: stdio, streamable_http"),
        unsaid: Required("stdio"),
        meaning: "transport: a local program, or HTTP",
    },
    Member {
        name: "command",
        takes: One("a name without slashes, or the absolute path of a program"),
        unsaid: Required("mcp-server-filesystem"),
        meaning: "program to start; only with `stdio`",
    },
    Member {
        name: "args",
        takes: List("an argument"),
        unsaid: Stands("[]"),
        meaning: "arguments of the program",
    },
    Member {
        name: "env",
        takes: ByName("a text"),
        unsaid: Means("only the variables of every sandbox", "{LEVEL: debug}"),
        meaning: "environment variables; not safe for secrets",
    },
    Member {
        name: "lend",
        takes: List(PATH),
        unsaid: Stands("[]"),
        meaning: "host paths that are bind-mounted read-only at the same path",
    },
    Member {
        name: "workspace",
        takes: Section(WORKSPACE),
        unsaid: Means("empty, and in memory", ""),
        meaning: "directory at its `/workspace`",
    },
    Member {
        name: "memory_limit",
        takes: One("a size from 1048576 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("1g"),
        meaning: "memory limit of its sandbox",
    },
    Member {
        name: "pids_limit",
        takes: One("a whole number from 1 to 100000"),
        unsaid: Stands("128"),
        meaning: "maximum processes and threads in its sandbox",
    },
    Member {
        name: "unsealed",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether it runs on the host without a sandbox, with the node's own access",
    },
    Member {
        name: "url",
        takes: One("a URL such as https://tools.example/mcp"),
        unsaid: Means("required with `streamable_http`, and only there", "https://tools.example/mcp"),
        meaning: "URL of the server",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive secrets over plain http",
    },
    Member {
        name: "headers",
        takes: ByName("`value`, or `secret` and perhaps `prefix`"),
        unsaid: Means("none", "{authorization: {prefix: 'Bearer ', secret: {file: /run/keys/tools}}}"),
        meaning: "headers of its requests; a `secret` comes from one of `env`, `file`, `command`",
    },
    Member {
        name: "enabled_tools",
        takes: List(TOOL),
        unsaid: Means("all of its tools", "[read_text_file]"),
        meaning: "tools to offer",
    },
    Member {
        name: "disabled_tools",
        takes: List(TOOL),
        unsaid: Stands("[]"),
        meaning: "tools to leave \
    out",
    },
    Member {
        name: "scope",
        takes: One("one of: both, pm, sandbox"),
        unsaid: Stands("pm"),
        meaning: "agents that its tools are for",
    },
    Member {
        name: "timeout_seconds",
        takes: One("a number of seconds from 1 to 600, with up to three places"),
        unsaid: Stands("30"),
        meaning: "time limit of a call",
    },
    Member {
        name: "connect_timeout_seconds",
        takes: One("a number of seconds from 1 to 120, with up to three places"),
        unsaid: Stands("10"),
        meaning: "time limit for connecting and listing its tools",
    },
    Member {
        name: "cache_ttl_seconds",
        takes: One("a number of seconds from 0 to 86400, with up to three places"),
        unsaid: Stands("60"),
        meaning: "how long answers of read-only tools are cached, per task",
    },
    Member {
        name: "cache_size",
        takes: One("a whole number from 0 to 10000"),
        unsaid: Stands("256"),
        meaning: "maximum number of cached answers",
    },
    Member { name: "enabled", takes: BOOLEAN, unsaid: Stands("true"), meaning: "whether the server is used" },
    Member { name: "limits", takes: Section(LIMITS), unsaid: Members, meaning: "limits of the server" },
];

const WORKSPACE: &[Member] = &[
    Member {
        name: "path",
        takes: One(PATH),
        unsaid: Required("/srv/docs"),
        meaning: "directory of the \
    host",
    },
    Member {
        name: "mode",
        takes: One("one of: copy, direct"),
        unsaid: Stands("copy"),
        meaning: "whether writes go to an overlay that is discarded with the sandbox (`copy`), or to the \
    directory itself (`direct`)",
    },
];

const LIMITS: &[Member] = &[
    Member {
        name: "calls",
        takes: One("a whole number from 1 to 64"),
        unsaid: Stands("4"),
        meaning: "maximum concurrent calls; sixteen times as many may wait",
    },
    Member {
        name: "answer",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("4m"),
        meaning: "maximum size of a message, up to 64m",
    },
    Member {
        name: "tools",
        takes: One("a whole number from 1 to 1000"),
        unsaid: Stands("128"),
        meaning: "maximum number of tools",
    },
];
