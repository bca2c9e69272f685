//! `tool_access` and `autonomy`.

use super::Takes::{ByName, List, One, Section, Sections};
use super::Unsaid::{Means, Members, Required, Stands};
use super::{BOOLEAN, Member};

const LEVEL: &str = "one of: custom, elevated, restricted, sandboxed, standard";
const AUTONOMY_LEVEL: &str = "one of: full, locked, semi, supervised";
const ACTION: &str = "an action type, a category of them, or `all`";
const TOOL: &str = "the name of a tool, or the beginning of names with `*` after it";

pub(super) const TOOL_ACCESS: &[Member] = &[
    Member {
        name: "action_types",
        takes: Sections(ACTION_TYPE),
        unsaid: Means("those that are built in", ""),
        meaning: "action types besides those that are built in",
    },
    Member {
        name: "default_level",
        takes: One(LEVEL),
        unsaid: Means(
            "`standard` for calls that name no agent; agents that are not listed are refused",
            "standard",
        ),
        meaning: "the level of agents of which nothing else is said",
    },
    Member {
        name: "levels",
        takes: Section(LEVELS),
        unsaid: Members,
        meaning: "what each level allows, where it is not what it usually does",
    },
    Member {
        name: "agents",
        takes: Sections(AGENT),
        unsaid: Means("none", ""),
        meaning: "agents of which something is said",
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
        meaning: "how much may go wrong by it",
    },
    Member {
        name: "why",
        takes: One("1 to 300 characters"),
        unsaid: Means("nothing", "keys of all services change"),
        meaning: "why that is thought",
    },
];

macro_rules! constraints {
    ($($more:expr),* $(,)?) => { &[
        $($more,)*
        Member {
            name: "file_system",
            takes: One("one of: full, project_directory, workspace_only"),
            unsaid: Means("what the level has", "full"),
            meaning: "which files there are",
        },
        Member {
            name: "network",
            takes: One("one of: allowlist_only, none, open"),
            unsaid: Means("what the level has", "open"),
            meaning: "what of the network",
        },
        Member {
            name: "git",
            takes: One("one of: full, local_only, read_and_branch"),
            unsaid: Means("what the level has", "full"),
            meaning: "how far git goes",
        },
        Member {
            name: "code_execution",
            takes: One("one of: containerized, process"),
            unsaid: Means("what the level has", "process"),
            meaning: "what code runs in",
        },
        Member {
            name: "terminal",
            takes: One("one of: full, none, restricted_commands"),
            unsaid: Means("what the level has", "full"),
            meaning: "which programs may be started",
        },
        Member {
            name: "requires_approval",
            takes: List(ACTION),
            unsaid: Means("what the level has", "[deployment]"),
            meaning: "what takes a person's yes; `deployment` is `deploy`, and `database_write` is `db:mutate`",
        },
        Member {
            name: "network_allowlist",
            takes: List("a host, *.NAME, **.NAME or an address, with or without :PORT"),
            unsaid: Means("what the level has", "['pkgs.example:443']"),
            meaning: "where `allowlist_only` leads, besides what `egress` says",
        },
        Member {
            name: "commands",
            takes: List("the name of a program, without a place"),
            unsaid: Means("what working on a project usually takes", "[ls]"),
            meaning: "what `restricted_commands` are",
        },
    ] };
}

const LEVELS: &[Member] = &[
    level("sandboxed", "no external access, an isolated workspace"),
    level("restricted", "limited external access with approval"),
    level("standard", "normal development access"),
    level("elevated", "full access for senior and trusted agents"),
    level("custom", "what is said of the agent, and nothing else"),
];

const fn level(name: &'static str, meaning: &'static str) -> Member {
    Member { name, takes: Section(LEVEL_MEMBERS), unsaid: Members, meaning }
}

const LEVEL_MEMBERS: &[Member] = constraints![
    Member {
        name: "description",
        takes: One("a text"),
        unsaid: Means("what it is for", "for reviews"),
        meaning: "what it is for, for people",
    },
    Member {
        name: "deployment",
        takes: BOOLEAN,
        unsaid: Means("what the level has", "false"),
        meaning: "whether tools of the category `deployment` may be called; there is none yet",
    },
];

const CONSTRAINTS: &[Member] = constraints![];

const AGENT: &[Member] = &[
    Member {
        name: "name",
        takes: One("an id of 1 to 128 bytes of printable text"),
        unsaid: Required("reviewer"),
        meaning: "its name, as whoever runs it says it",
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
        meaning: "tools that it may call whatever its level is",
    },
    Member {
        name: "denied",
        takes: List(TOOL),
        unsaid: Stands("[]"),
        meaning: "tools that it may not call, whatever else is said",
    },
    Member {
        name: "sub_constraints",
        takes: Section(CONSTRAINTS),
        unsaid: Members,
        meaning: "what holds for it instead of what its level has; with `custom` it must be there",
    },
    Member {
        name: "autonomy",
        takes: One(AUTONOMY_LEVEL),
        unsaid: Means("that of its department, or of the house", "supervised"),
        meaning: "how much it does by itself",
    },
    Member {
        name: "auto_approve",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "what it does by itself besides",
    },
    Member {
        name: "human_approval",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "what takes a person's yes besides",
    },
    Member {
        name: "department",
        takes: One("a name of 1 to 128 bytes"),
        unsaid: Means("none", "sales"),
        meaning: "the department whose autonomy it has, if it has none of its own",
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
        meaning: "how much agents do by themselves of which nothing else is said",
    },
    Member {
        name: "departments",
        takes: ByName(AUTONOMY_LEVEL),
        unsaid: Means("nothing", "{sales: locked}"),
        meaning: "how much those of a department do by themselves",
    },
    Member {
        name: "auto_approve",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "what all of them do by themselves besides",
    },
    Member {
        name: "human_approval",
        takes: List(ACTION),
        unsaid: Stands("[]"),
        meaning: "what takes a person's yes besides, whoever does it",
    },
];
