//! Reference of the configuration file: every member with its values, its default and its meaning.
//!
//! The parser doesn't use these tables. A test compares them with the parser: the parser knows exactly these members,
//! requires the required ones, and uses these defaults for absent ones.

mod access;
mod agents;
mod approvals;
mod audit;
mod egress;
mod git;
mod inference;
mod mcp;
mod member;
mod node;
mod page;
mod sandboxing;
mod tools;
mod trust;

pub use member::{AcceptedValues, Member, MemberDefault, Override, Scalar};
pub use page::page;

use AcceptedValues::{Section, Sections};
use MemberDefault::{Described, Members};

/// The members of the whole file.
pub const ROOT: &[Member] = &[
    Member::new(
        "sandboxing",
        Section(sandboxing::SANDBOXING),
        Described("as its members say; required where there is no other section", "{}"),
        "sandbox backend for each category of tools, and the settings of each backend",
    ),
    Member::new(
        "log",
        Section(sandboxing::LOG),
        Members,
        "logging of programs that tools run (`belljar mcp`)",
    ),
    Member::new(
        "inference",
        Section(inference::INFERENCE),
        Described("no models", ""),
        "providers, models, and limits for each run",
    ),
    Member::new(
        "egress",
        Section(egress::EGRESS),
        Described("nothing", ""),
        "network destinations that sandboxes may reach",
    )
    .overridden_by(&[Override::Flag { name: "--egress", commands: "`belljar node`" }]),
    Member::new(
        "agents",
        Sections(agents::AGENT),
        Described("the built-in ones", ""),
        "additional agents; an agent with the name of a built-in one replaces it",
    ),
    Member::new("git", Section(git::GIT), Members, "remotes that the host's git may use"),
    Member::new("node", Section(node::NODE), Members, "limits, timeouts, retention and callbacks of a node"),
    Member::new(
        "mcp",
        Section(mcp::MCP),
        Members,
        "access of remote agents to the node's tools, and additional MCP servers",
    ),
    Member::new(
        "tools",
        Section(tools::TOOLS),
        Members,
        "databases, message channels and metrics servers for tools",
    ),
    Member::new(
        "tool_access",
        Section(access::TOOL_ACCESS),
        Members,
        "tools that agents may call, and the access level of their calls",
    ),
    Member::new(
        "autonomy",
        Section(access::AUTONOMY),
        Members,
        "actions that agents may take on their own, and actions that require approval",
    ),
    Member::new(
        "approvals",
        Section(approvals::APPROVALS),
        Members,
        "expiry and retention of approval requests",
    ),
    Member::new("audit", Section(audit::AUDIT), Members, "destinations of audit log checkpoints"),
    Member::new(
        "trust",
        Section(trust::TRUST),
        Described("levels are set by people", ""),
        "rules by which agents gain and lose access levels",
    ),
];

/// User whose server on this machine may receive a credential without TLS.
const USER: Scalar = Scalar::Any("the name of a user of this host, a user id, or `any`");
