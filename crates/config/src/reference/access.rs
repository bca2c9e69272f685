//! `tool_access` and `autonomy`.

use super::AcceptedValues::{ByName, List, One, Section, Sections};
use super::MemberDefault::{Means, Members, Required, Stands};
use super::{BOOLEAN, Member};

const LEVEL: &str = "one of: custom, elevated, restricted, sandboxed, standard";
const AUTONOMY_LEVEL: &str = "one of: full, locked, semi, supervised";
const ACTION: &str = "an action type, a category of them, or `all`";
const TOOL: &str = "the name of a tool, or the beginning of names with `*` after it";

pub(super) const TOOL_ACCESS: &[Member] = &[
    Member {
        name: "action_types",
        takes: Sections(ACTION_TYPE),
        unsaid: Means("the built-in ones", ""),
        meaning: "additional action types",
    },
    Member {
        name: "default_level",
        takes: One(LEVEL),
        unsaid: Means(
            "`standard` for calls that name no agent; agents that are not listed are refused",
            "standard",
        ),
        meaning: "default level of agents",
    },
    Member {
        name: "levels",
        takes: Section(LEVELS),
        unsaid: Members,
        meaning: "changes to the permissions of each level",
    },
    Member {
        name: "agents",
        takes: Sections(AGENT),
        unsaid: Means("none", ""),
        meaning: "settings of individual agents",
    },
];

const ACTION_TYPE: &[Member] = &[
    Member {
        name: "name",
        takes: One("`category:action`, of a-z, 0-9 and `_`"),
        unsaid: Required("'acme:rotate'"),
        meaning: "its name",
    },
    Member {
        name: "risk",
        takes: One("one of: critical, high, low, medium"),
        unsaid: Means("high", "low"),
        meaning: "risk of the action",
    },
    Member {
        name: "why",
        takes: One("1 to 300 characters"),
        unsaid: Means("nothing", "keys of all services change"),
        meaning: "reason for the risk",
    },
];

macro_rules! constraints {
    ($($more:expr),* $(,)?) => { &[
        $($more,)*
        Member {
            name: "file_system",
            takes: One("one of: full, project_directory, workspace_only"),
            unsaid: Means("the level's own", "full"),
            meaning: "accessible files",
        },
        Member {
            name: "network",
            takes: One("one of: allowlist_only, none, open"),
            unsaid: Means("the level's own", "open"),
            meaning: "network access",
        },
        Member {
            name: "git",
            takes: One("one of: full, local_only, read_and_branch"),
            unsaid: Means("the level's own", "full"),
            meaning: "git access",
        },
        Member {
            name: "code_execution",
            takes: One("one of: containerized, process"),
            unsaid: Means("the level's own", "process"),
            meaning: "isolation of code execution",
        },
        Member {
            name: "terminal",
            takes: One("one of: full, none, restricted_commands"),
            unsaid: Means("the level's own", "full"),
            meaning: "programs that may be started",
        },
        Member {
            name: "requires_approval",
            takes: List(ACTION),
            unsaid: Means("the level's own", "[deployment]"),
            meaning: "actions that require approval; `deployment` means `deploy`, and `database_write` \
    means `db:mutate`",
        },
        Member {
            name: "network_allowlist",
            takes: List("a host, *.NAME, **.NAME or an address, with or without :PORT"),
            unsaid: Means("the level's own", "['pkgs.example:443']"),
            meaning: "hosts that `allowlist_only` allows, in addition to `egress`",
        },
        Member {
            name: "commands",
            takes: List("the name of a program, without a place"),
            unsaid: Means("common development programs", "[ls]"),
            meaning: "programs that `restricted_commands` allows",
        },
    ] };
}

const LEVELS: &[Member] = &[
    level("sandboxed", "no external access, an isolated workspace"),
    level("restricted", "limited external access with approval"),
    level("standard", "normal development access"),
    level("elevated", "full access for senior and trusted agents"),
    level("custom", "only what is configured for the agent"),
];

const fn level(name: &'static str, meaning: &'static str) -> Member {
    Member { name, takes: Section(LEVEL_MEMBERS), unsaid: Members, meaning }
}

const LEVEL_MEMBERS: &[Member] = constraints![
    Member {
        name: "description",
        takes: One("a text"),
        unsaid: Means("its purpose", "for reviews"),
        meaning: "its purpose, as a description for people",
    },
    Member {
        name: "deployment",
        takes: BOOLEAN,
        unsaid: Means("the level's own", "false"),
        meaning: "whether tools of the category `deployment` may be called; no such tools exist yet",
    },
];

const CONSTRAINTS: &[Member] = constraints![];

const AGENT: &[Member] = &[
    Member {
        name: "name",
        takes: One("an id of 1 to 128 bytes of printable text"),
        unsaid: Required("reviewer"),
        meaning: "agent id, as the caller that starts the agent gives it",
    },
    Member {
        name: "level",
        takes: One(LEVEL),
        unsaid: Means("`default_level`", "restricted"),
        meaning: "its level",
    },
    Member {
        name: "allowed",
        takes: List(TOOL),
        unsaid: Stands("[]"),
        meaning: "tools that it may call at any level",
    },
    Member {
        name: "denied",
        takes: List(TOOL),
        unsaid: Stands("[]"),
        meaning: "tools that it may never call",
    },
    Member {
        name: "sub_constraints",
        takes: Section(CONSTRAINTS),
        unsaid: Members,
        meaning: "permissions that replace those of its level; required with `custom`",
    },
    Member {
        name: "autonomy",
        takes: One(AUTONOMY_LEVEL),
        unsaid: Means("that of its department, or the default", "supervised"),
        meaning: "its autonomy",
    },
    Member {
        name: "auto_approve",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "additional actions that require no approval",
    },
    Member {
        name: "human_approval",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "additional actions that require approval",
    },
    Member {
        name: "department",
        takes: One("a name of 1 to 128 bytes"),
        unsaid: Means("none", "sales"),
        meaning: "department whose autonomy applies to an agent without `autonomy`",
    },
    Member {
        name: "seniority",
        takes: One("one of: junior, mid, senior"),
        unsaid: Means("nothing", "senior"),
        meaning: "a junior never has the autonomy `full`",
    },
];

pub(super) const AUTONOMY: &[Member] = &[
    Member {
        name: "level",
        takes: One(AUTONOMY_LEVEL),
        unsaid: Stands("semi"),
        meaning: "default autonomy of agents",
    },
    Member {
        name: "departments",
        takes: ByName(AUTONOMY_LEVEL),
        unsaid: Means("nothing", "{sales: locked}"),
        meaning: "autonomy of each department's agents",
    },
    Member {
        name: "auto_approve",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "additional actions that require no approval, for all agents",
    },
    Member {
        name: "human_approval",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "additional actions that require approval, for all agents",
    },
];
