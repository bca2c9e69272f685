//! `mcp`.

use super::Takes::{ByName, List, One, Section, Sections};
use super::Unsaid::{Means, Members, Required, Stands};
use super::{BOOLEAN, Member, USER};

const PATH: &str = "an absolute path without `.` and `..` that is not the root";
const TOOL: &str = "the name of a tool, as its server calls it";

pub(super) const MCP: &[Member] = &[
    Member {
        name: "hosts",
        takes: List("a host such as node.example, or node.example:12090"),
        unsaid: Stands("[]"),
        meaning: "names by which agents elsewhere reach the node's tools, besides its address and those of its own machine",
    },
    Member {
        name: "disabled_tools",
        takes: List("a tool's name such as web.fetch"),
        unsaid: Stands("[]"),
        meaning: "tools that nobody may call, whatever else allows them",
    },
    Member {
        name: "tool_scopes",
        takes: ByName("one of: both, pm, sandbox"),
        unsaid: Stands("{}"),
        meaning: "for whose agents a tool is, by its name such as web.fetch or mcp_files_read, in the place of the scope that it has; \
            it takes tools from agents, and gives them those of other servers alone",
    },
    Member {
        name: "planners_may_add_images",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether agents that plan may add to the images that this node runs, by `sandbox.allowed_images.add`",
    },
    Member {
        name: "servers",
        takes: Sections(SERVER),
        unsaid: Means("none", ""),
        meaning: "other servers; none has the name of another, nor that name with `_` behind it and more",
    },
];

const SERVER: &[Member] = &[
    Member {
        name: "name",
        takes: One("1 to 32 of a-z, 0-9, `_` and `-`"),
        unsaid: Required("files"),
        meaning: "its name: its tools are `mcp_NAME_TOOL`",
    },
    Member {
        name: "transport",
        takes: One("one of: stdio, streamable_http"),
        unsaid: Required("stdio"),
        meaning: "whether its program is started, or it is asked by HTTP",
    },
    Member {
        name: "command",
        takes: One("a name without slashes, or the absolute path of a program"),
        unsaid: Required("mcp-server-filesystem"),
        meaning: "with `stdio`, and only there: its program",
    },
    Member {
        name: "args",
        takes: List("an argument"),
        unsaid: Stands("[]"),
        meaning: "what that is started with",
    },
    Member {
        name: "env",
        takes: ByName("a text"),
        unsaid: Means("none besides those of every sandbox", "{LEVEL: debug}"),
        meaning: "its variables; no secret is safe in there",
    },
    Member {
        name: "lend",
        takes: List(PATH),
        unsaid: Stands("[]"),
        meaning: "what of the host is lent to it besides, read-only and at the same place",
    },
    Member {
        name: "workspace",
        takes: Section(WORKSPACE),
        unsaid: Means("empty, and in memory", ""),
        meaning: "what is at its `/workspace`",
    },
    Member {
        name: "memory_limit",
        takes: One("a size from 1048576 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("1g"),
        meaning: "memory that its sandbox may use",
    },
    Member {
        name: "pids_limit",
        takes: One("a whole number from 1 to 100000"),
        unsaid: Stands("128"),
        meaning: "processes and threads in its sandbox",
    },
    Member {
        name: "unsealed",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether it runs on the host itself, without a sandbox and with all that the node may reach",
    },
    Member {
        name: "url",
        takes: One("a URL such as https://tools.example/mcp"),
        unsaid: Means("required with `streamable_http`, and only there", "https://tools.example/mcp"),
        meaning: "where it is asked",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine is shown secrets by plain http",
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
        unsaid: Means("all that it has", "[read_text_file]"),
        meaning: "the tools that are meant",
    },
    Member { name: "disabled_tools", takes: List(TOOL), unsaid: Stands("[]"), meaning: "those that are not" },
    Member {
        name: "scope",
        takes: One("one of: both, pm, sandbox"),
        unsaid: Stands("pm"),
        meaning: "for whose agents they are",
    },
    Member {
        name: "timeout_seconds",
        takes: One("a number of seconds from 1 to 600, with up to three places"),
        unsaid: Stands("30"),
        meaning: "how long a call may take",
    },
    Member {
        name: "connect_timeout_seconds",
        takes: One("a number of seconds from 1 to 120, with up to three places"),
        unsaid: Stands("10"),
        meaning: "how long it may take to be there and tell its tools",
    },
    Member {
        name: "cache_ttl_seconds",
        takes: One("a number of seconds from 0 to 86400, with up to three places"),
        unsaid: Stands("60"),
        meaning: "how long answers of tools that change nothing are kept, for the task that they were for",
    },
    Member {
        name: "cache_size",
        takes: One("a whole number from 0 to 10000"),
        unsaid: Stands("256"),
        meaning: "how many of them",
    },
    Member {
        name: "enabled",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether it is connected to at all",
    },
    Member { name: "limits", takes: Section(LIMITS), unsaid: Members, meaning: "how much of it is taken" },
];

const WORKSPACE: &[Member] = &[
    Member { name: "path", takes: One(PATH), unsaid: Required("/srv/docs"), meaning: "a folder of the host" },
    Member {
        name: "mode",
        takes: One("one of: copy, direct"),
        unsaid: Stands("copy"),
        meaning: "whether what is written goes to a layer that ends with the sandbox, or to the folder itself",
    },
];

const LIMITS: &[Member] = &[
    Member {
        name: "calls",
        takes: One("a whole number from 1 to 64"),
        unsaid: Stands("4"),
        meaning: "calls at a time; sixteen times as many wait",
    },
    Member {
        name: "answer",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("4m"),
        meaning: "the largest message that is taken, up to 64m",
    },
    Member {
        name: "tools",
        takes: One("a whole number from 1 to 1000"),
        unsaid: Stands("128"),
        meaning: "tools that are taken",
    },
];
