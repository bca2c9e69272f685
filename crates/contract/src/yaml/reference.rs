//! The reference of the configuration file: every member, what it takes, what stands when it is absent, what it means.
//!
//! Nothing is read by these tables. A test of the command line holds them against the parser: it knows the members that
//! stand here and no others, asks for what stands here, and what stands here for an absent member is what it takes then.

mod access;
mod agents;
mod approvals;
mod audit;
mod egress;
mod git;
mod inference;
mod mcp;
mod node;
mod sandboxing;
mod tools;
mod trust;

/// One member.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// What may be written.
    pub takes: Takes,
    /// What stands when it is absent.
    pub unsaid: Unsaid,
    /// What it means, in a line.
    pub meaning: &'static str,
}

/// What may be written. A text is what a mistake in its place is told to be right.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// One value.
    One(&'static str),
    /// A list of values.
    List(&'static str),
    /// A list of layers.
    Layers,
    /// A value for each of some categories.
    ByCategory(&'static str),
    /// A value for each of some names, which are the reader's own.
    ByName(&'static str),
    /// Members.
    Section(&'static [Member]),
    /// A list of what has members.
    Sections(&'static [Member]),
}

/// What stands when a member is absent. A sample is a value that may be written; one of a section that is empty is made
/// of the members that it requires.
#[derive(Debug, Clone, Copy)]
pub enum Unsaid {
    /// This value.
    Stands(&'static str),
    /// What no value says, and a sample.
    Means(&'static str, &'static str),
    /// Nothing: it must be there. A sample.
    Required(&'static str),
    /// What stands for each of its own members.
    Members,
}

/// The members of the whole file.
pub const ROOT: &[Member] = &[
    Member {
        name: "sandboxing",
        takes: Takes::Section(sandboxing::SANDBOXING),
        unsaid: Unsaid::Means("as its members say; required where there is no other section", "{}"),
        meaning: "which backend for which category of tools, and the settings of each",
    },
    Member {
        name: "log",
        takes: Takes::Section(sandboxing::LOG),
        unsaid: Unsaid::Members,
        meaning: "what the log of `belljar mcp` says of programs that tools have run",
    },
    Member {
        name: "inference",
        takes: Takes::Section(inference::INFERENCE),
        unsaid: Unsaid::Means("no models", ""),
        meaning: "who answers for which model, and how much a run may have of them",
    },
    Member {
        name: "egress",
        takes: Takes::Section(egress::EGRESS),
        unsaid: Unsaid::Means("nothing", ""),
        meaning: "what sandboxes may reach of the web",
    },
    Member {
        name: "agents",
        takes: Takes::Sections(agents::AGENT),
        unsaid: Unsaid::Means("those that are built in", ""),
        meaning: "agents besides those that are built in, or instead of those of the same name",
    },
    Member {
        name: "git",
        takes: Takes::Section(git::GIT),
        unsaid: Unsaid::Members,
        meaning: "where the host's git may go",
    },
    Member {
        name: "node",
        takes: Takes::Section(node::NODE),
        unsaid: Unsaid::Members,
        meaning: "how much a node takes, for how long, and who is told",
    },
    Member {
        name: "mcp",
        takes: Takes::Section(mcp::MCP),
        unsaid: Unsaid::Members,
        meaning: "how agents elsewhere reach the node's tools, and whose tools besides are its own",
    },
    Member {
        name: "tools",
        takes: Takes::Section(tools::TOOLS),
        unsaid: Unsaid::Members,
        meaning: "databases, channels of messages and servers of metrics that tools work with",
    },
    Member {
        name: "tool_access",
        takes: Takes::Section(access::TOOL_ACCESS),
        unsaid: Unsaid::Members,
        meaning: "which tools agents may call, and how far they reach by them",
    },
    Member {
        name: "autonomy",
        takes: Takes::Section(access::AUTONOMY),
        unsaid: Unsaid::Members,
        meaning: "what agents do by themselves, and what takes a person's yes",
    },
    Member {
        name: "approvals",
        takes: Takes::Section(approvals::APPROVALS),
        unsaid: Unsaid::Members,
        meaning: "how long people are waited for who are asked about calls, and how long that is kept",
    },
    Member {
        name: "audit",
        takes: Takes::Section(audit::AUDIT),
        unsaid: Unsaid::Members,
        meaning: "where checkpoints of the audit log are delivered to",
    },
    Member {
        name: "trust",
        takes: Takes::Section(trust::TRUST),
        unsaid: Unsaid::Means("levels are what people say", ""),
        meaning: "how agents come to higher levels of access, and lose them",
    },
];

/// Whose server on this machine is shown a credential without TLS.
const USER: &str = "the name of a user of this host, a user id, or `any`";
const BOOLEAN: Takes = Takes::One("`true` or `false`");
