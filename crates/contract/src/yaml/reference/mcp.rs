//! `mcp`.

use super::Member;
use super::Takes::{List, One};
use super::Unsaid::Stands;

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
        name: "planners_may_add_images",
        takes: One("`true` or `false`"),
        unsaid: Stands("false"),
        meaning: "whether agents that plan may add to the images that this node runs, by `sandbox.allowed_images.add`",
    },
];
