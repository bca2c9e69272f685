//! `mcp`.

use super::Member;
use super::Takes::List;
use super::Unsaid::Stands;

pub(super) const MCP: &[Member] = &[Member {
    name: "hosts",
    takes: List("a host such as node.example, or node.example:12090"),
    unsaid: Stands("[]"),
    meaning: "names by which agents elsewhere reach the node's tools, besides its address and those of its own machine",
}];
