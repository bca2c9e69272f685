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
    pub takes: AcceptedValues,
    /// Default of the member.
    pub unsaid: MemberDefault,
    /// Meaning of the member, in a line.
    pub meaning: &'static str,
}

/// Values that may be written. A text is the `expected` part of the error message for a wrong value.
#[derive(Debug, Clone, Copy)]
pub enum AcceptedValues {
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
pub enum MemberDefault {
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
        takes: AcceptedValues::Section(sandboxing::SANDBOXING),
        unsaid: MemberDefault::Means("as its members say; required where there is no other section", "{}"),
        meaning: "sandbox backend for each category of tools, and the settings of each backend",
    },
    Member {
        name: "log",
        takes: AcceptedValues::Section(sandboxing::LOG),
        unsaid: MemberDefault::Members,
        meaning: "logging of programs that tools run (`belljar mcp`)",
    },
    Member {
        name: "inference",
        takes: AcceptedValues::Section(inference::INFERENCE),
        unsaid: MemberDefault::Means("no models", ""),
        meaning: "providers, models, and limits for each run",
    },
    Member {
        name: "egress",
        takes: AcceptedValues::Section(egress::EGRESS),
        unsaid: MemberDefault::Means("nothing", ""),
        meaning: "network destinations that sandboxes may reach",
    },
    Member {
        name: "agents",
        takes: AcceptedValues::Sections(agents::AGENT),
        unsaid: MemberDefault::Means("the built-in ones", ""),
        meaning: "additional agents; an agent with the name of a built-in one replaces it",
    },
    Member {
        name: "git",
        takes: AcceptedValues::Section(git::GIT),
        unsaid: MemberDefault::Members,
        meaning: "remotes that the host's git may use",
    },
    Member {
        name: "node",
        takes: AcceptedValues::Section(node::NODE),
        unsaid: MemberDefault::Members,
        meaning: "limits, timeouts, retention and callbacks of a node",
    },
    Member {
        name: "mcp",
        takes: AcceptedValues::Section(mcp::MCP),
        unsaid: MemberDefault::Members,
        meaning: "access of remote agents to the node's tools, and additional MCP servers",
    },
    Member {
        name: "tools",
        takes: AcceptedValues::Section(tools::TOOLS),
        unsaid: MemberDefault::Members,
        meaning: "databases, message channels and metrics servers for tools",
    },
    Member {
        name: "tool_access",
        takes: AcceptedValues::Section(access::TOOL_ACCESS),
        unsaid: MemberDefault::Members,
        meaning: "tools that agents may call, and the access level of their calls",
    },
    Member {
        name: "autonomy",
        takes: AcceptedValues::Section(access::AUTONOMY),
        unsaid: MemberDefault::Members,
        meaning: "actions that agents may take on their own, and actions that require approval",
    },
    Member {
        name: "approvals",
        takes: AcceptedValues::Section(approvals::APPROVALS),
        unsaid: MemberDefault::Members,
        meaning: "expiry and retention of approval requests",
    },
    Member {
        name: "audit",
        takes: AcceptedValues::Section(audit::AUDIT),
        unsaid: MemberDefault::Members,
        meaning: "destinations of audit log checkpoints",
    },
    Member {
        name: "trust",
        takes: AcceptedValues::Section(trust::TRUST),
        unsaid: MemberDefault::Means("levels are set by people", ""),
        meaning: "rules by which agents gain and lose access levels",
    },
];

/// User whose server on this machine may receive a credential without TLS.
const USER: &str = "the name of a user of this host, a user id, or `any`";
const BOOLEAN: AcceptedValues = AcceptedValues::One("`true` or `false`");
