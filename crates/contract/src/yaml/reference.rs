//! Reference of the configuration file: every member with its values, its default and its meaning.
//!
//! The parser doesn't use these tables. A test of the command line compares them with the parser: the parser knows
//! exactly these members, requires the required ones, and uses these defaults for absent ones.

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

/// A member.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Values that may be written.
    pub takes: Takes,
    /// Default of the member.
    pub unsaid: Unsaid,
    /// Meaning of the member, in a line.
    pub meaning: &'static str,
}

/// Values that may be written. A text is the `expected` part of the error message for a wrong value.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// A value.
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

/// Default of an absent member. A sample is a value that may be written; an empty sample of a section consists of its
/// required members.
#[derive(Debug, Clone, Copy)]
pub enum Unsaid {
    /// This value.
    Stands(&'static str),
    /// A default that no value expresses, and a sample.
    Means(&'static str, &'static str),
    /// No default: the member is required. With a sample.
    Required(&'static str),
    /// The defaults of its own members.
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

/// User whose server on this machine may receive a credential without TLS.
const USER: &str = "the name of a user of this host, a user id, or `any`";
const BOOLEAN: Takes = Takes::One("`true` or `false`");
