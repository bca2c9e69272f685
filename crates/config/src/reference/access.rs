//! `tool_access` and `autonomy`.

use super::AcceptedValues::{ByName, List, One, Section, Sections};
use super::MemberDefault::{Described, Members, Required, Value};
use super::Scalar::{Boolean, OneOf, Text};
use super::{Member, Scalar};

const LEVEL: Scalar = OneOf(&["custom", "elevated", "restricted", "sandboxed", "standard"]);
const AUTONOMY_LEVEL: Scalar = OneOf(&["full", "locked", "semi", "supervised"]);
const ACTION: Scalar = Text("an action type, a category of them, or `all`");
const TOOL: Scalar = Text("the name of a tool, or the beginning of names with `*` after it");

pub(super) const TOOL_ACCESS: &[Member] = &[
    Member::new(
        "action_types",
        Sections(ACTION_TYPE),
        Described("the built-in ones", ""),
        "additional action types",
    ),
    Member::new(
        "default_level",
        One(LEVEL),
        Described(
            "`standard` for calls that name no agent; agents that are not listed are refused",
            "standard",
        ),
        "default level of agents",
    ),
    Member::new("levels", Section(LEVELS), Members, "changes to the permissions of each level"),
    Member::new("agents", Sections(AGENT), Described("none", ""), "settings of individual agents"),
];

const ACTION_TYPE: &[Member] = &[
    Member::new(
        "name",
        One(Text("`category:action`, of a-z, 0-9 and `_`")),
        Required("'acme:rotate'"),
        "its name",
    ),
    Member::new(
        "risk",
        One(OneOf(&["critical", "high", "low", "medium"])),
        Described("high", "low"),
        "risk of the action",
    ),
    Member::new(
        "why",
        One(Text("1 to 300 characters")),
        Described("nothing", "keys of all services change"),
        "reason for the risk",
    ),
];

macro_rules! constraints {
    ($($more:expr),* $(,)?) => { &[
        $($more,)*
        Member::new("file_system", One(OneOf(&["full", "project_directory", "workspace_only"])), Described("the level's own", "full"), "accessible files"),
        Member::new("network", One(OneOf(&["allowlist_only", "none", "open"])), Described("the level's own", "open"), "network access"),
        Member::new("git", One(OneOf(&["full", "local_only", "read_and_branch"])), Described("the level's own", "full"), "git access"),
        Member::new("code_execution", One(OneOf(&["containerized", "process"])), Described("the level's own", "process"), "isolation of code execution"),
        Member::new("terminal", One(OneOf(&["full", "none", "restricted_commands"])), Described("the level's own", "full"), "programs that may be started"),
        Member::new("requires_approval", List(ACTION), Described("the level's own", "[deployment]"), "actions that require approval; `deployment` means `deploy`, and `database_write` means `db:mutate`"),
        Member::new("network_allowlist", List(Text("a host, *.NAME, **.NAME or an address, with or without :PORT")), Described("the level's own", "['pkgs.example:443']"), "hosts that `allowlist_only` allows, in addition to `egress`"),
        Member::new("commands", List(Text("the name of a program, without a place")), Described("common development programs", "[ls]"), "programs that `restricted_commands` allows"),
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
    Member::new(name, Section(LEVEL_MEMBERS), Members, meaning)
}

const LEVEL_MEMBERS: &[Member] = constraints![
    Member::new(
        "description",
        One(Text("a text")),
        Described("its purpose", "for reviews"),
        "its purpose, as a description for people"
    ),
    Member::new(
        "deployment",
        One(Boolean),
        Described("the level's own", "false"),
        "whether tools of the category `deployment` may be called; no such tools exist yet"
    ),
];

const CONSTRAINTS: &[Member] = constraints![];

const AGENT: &[Member] = &[
    Member::new(
        "name",
        One(Text("an id of 1 to 128 bytes of printable text")),
        Required("reviewer"),
        "agent id, as the caller that starts the agent gives it",
    ),
    Member::new("level", One(LEVEL), Described("`default_level`", "restricted"), "its level"),
    Member::new("allowed", List(TOOL), Value("[]"), "tools that it may call at any level"),
    Member::new("denied", List(TOOL), Value("[]"), "tools that it may never call"),
    Member::new(
        "sub_constraints",
        Section(CONSTRAINTS),
        Members,
        "permissions that replace those of its level; required with `custom`",
    ),
    Member::new(
        "autonomy",
        One(AUTONOMY_LEVEL),
        Described("that of its department, or the default", "supervised"),
        "its autonomy",
    ),
    Member::new("auto_approve", List(ACTION), Value("[]"), "additional actions that require no approval"),
    Member::new("human_approval", List(ACTION), Value("[]"), "additional actions that require approval"),
    Member::new(
        "department",
        One(Text("a name of 1 to 128 bytes")),
        Described("none", "sales"),
        "department whose autonomy applies to an agent without `autonomy`",
    ),
    Member::new(
        "seniority",
        One(OneOf(&["junior", "mid", "senior"])),
        Described("nothing", "senior"),
        "a junior never has the autonomy `full`",
    ),
];

pub(super) const AUTONOMY: &[Member] = &[
    Member::new("level", One(AUTONOMY_LEVEL), Value("semi"), "default autonomy of agents"),
    Member::new(
        "departments",
        ByName(AUTONOMY_LEVEL),
        Described("nothing", "{sales: locked}"),
        "autonomy of each department's agents",
    ),
    Member::new(
        "auto_approve",
        List(ACTION),
        Value("[]"),
        "additional actions that require no approval, for all agents",
    ),
    Member::new(
        "human_approval",
        List(ACTION),
        Value("[]"),
        "additional actions that require approval, for all agents",
    ),
];
