//! `mcp` in the configuration file: access of remote agents to the node's tools, disabled tools, scopes, and other MCP
//! servers.

use axum::http::uri::Authority;
use belljar_contract::tool::{ToolName, ToolScope};
use belljar_contract::yaml::{
    Members, MistakeLog, Node, Value, below, boolean, list, one_of, place, quoted, text,
};
use belljar_tools::bridge::config::ServersConfig;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The `mcp` section of a configuration file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpConfig {
    /// Host names by which agents reach the node, besides its address and the loopback names.
    pub hosts: Vec<String>,
    /// Tools that are disabled for all callers.
    pub disabled_tools: Vec<ToolName>,
    /// Scopes of tools that replace their own.
    pub tool_scopes: BTreeMap<ToolName, ToolScope>,
    /// If true, planners may add to the allowed images (`docs/contracts/requirements.md#r125`).
    pub planners_may_add_images: bool,
    /// Other MCP servers, whose tools the node offers, too.
    pub servers: ServersConfig,
}

/// Loopback names of the machine.
const SAME_MACHINE: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

// === impl McpConfig ===

impl McpConfig {
    /// Reads the section.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let hosts = members.or("hosts", Vec::new(), |node, log| {
            list(node, log, |node, log| {
                text(node, log, "a host such as node.example, or node.example:12090", host)
            })
        });
        let disabled_tools = members.or("disabled_tools", Vec::new(), |node, log| {
            list(node, log, |node, log| {
                text(node, log, "a tool's name such as web.fetch", |text| ToolName::parse(text).ok())
            })
        });
        let tool_scopes = members.section("tool_scopes", tool_scopes);
        let planners_may_add_images = members.or("planners_may_add_images", false, boolean);
        let servers = members.section("servers", ServersConfig::read);
        members.finish();
        Self { hosts, disabled_tools, tool_scopes, planners_may_add_images, servers }
    }

    /// Returns all host names that a request may have, for a node that listens on that address.
    pub fn names(&self, address: IpAddr) -> Vec<String> {
        let own = match address {
            // A wildcard address is no name.
            _ if address.is_unspecified() => None,
            IpAddr::V4(address) => Some(address.to_string()),
            IpAddr::V6(address) => Some(format!("[{address}]")),
        };
        let same = SAME_MACHINE.map(str::to_owned);
        same.into_iter().chain(own).chain(self.hosts.iter().cloned()).collect()
    }
}

/// Reads a mapping of tools to scopes.
fn tool_scopes(node: &Node, log: &mut MistakeLog) -> BTreeMap<ToolName, ToolScope> {
    let Value::Mapping(written) = &node.value else {
        log.note(node.position, place(node), node.describe(), "a mapping of tools' names to scopes");
        return BTreeMap::new();
    };
    let mut scopes = BTreeMap::new();
    for (key, value) in written {
        let scope = one_of(value, log, &ToolScope::NAMES);
        match (ToolName::parse(&key.name), scope) {
            (Ok(name), Some(scope)) => drop(scopes.insert(name, scope)),
            (Ok(_), None) => {}
            (Err(_), _) => {
                log.note(
                    key.position,
                    &below(&node.path, &key.name),
                    quoted(&key.name),
                    "a tool's name such as web.fetch",
                );
            }
        }
    }
    scopes
}

/// Parses a host, with or without a port.
fn host(text: &str) -> Option<String> {
    let authority: Authority = text.parse().ok()?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let host = authority.host();
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.len() <= 253 && host.bytes().all(is_name),
    };
    let rest = text.strip_prefix(host)?;
    let has_port = rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    (is_host && (rest.is_empty() || has_port)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_host_is_a_name_or_address_with_optional_port() {
        for good in ["node.example", "NODE", "10.0.0.7", "node.example:12090", "[::1]", "[fe80::1]:80"] {
            assert_eq!(host(good).as_deref(), Some(good));
        }
        for bad in [
            "",
            "*",
            "*.example",
            "a b",
            "user@host",
            "host:0",
            "host:",
            "host:65536",
            "::1",
            "[x]",
            "http://h",
            "h/",
        ] {
            assert_eq!(host(bad), None, "{bad}");
        }
    }

    #[test]
    fn default_mcp_hosts_are_local_names_and_the_listen_address() {
        let nothing = McpConfig::default();
        assert_eq!(nothing.names([0, 0, 0, 0].into()), ["localhost", "127.0.0.1", "[::1]"]);
        assert_eq!(nothing.names([10, 0, 0, 7].into()).last().unwrap(), "10.0.0.7");
    }
}
