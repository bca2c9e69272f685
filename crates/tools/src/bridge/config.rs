//! `mcp.servers` in the configuration file: other MCP servers.
//!
//! ```yaml
//! mcp:
//!   servers:
//!     - name: files
//!       transport: stdio                  # stdio or streamable_http
//!       command: mcp-server-filesystem
//!       args: [/workspace]
//!       workspace: {path: /srv/docs}
//!     - name: tracker
//!       transport: streamable_http
//!       url: https://tracker.example/mcp
//!       headers:
//!         authorization: {prefix: 'Bearer ', secret: {file: /etc/belljar/tracker}}
//! ```

mod stdio;

pub(crate) use stdio::read_path;
pub use stdio::{Folder, FolderMode, StdioConfig};

use crate::canonical::digest_of;
use belljar_contract::text::escaped;
use belljar_contract::tool::ToolScope;
use belljar_contract::yaml::{
    Members, MistakeLog, Node, below, boolean, list, one_of, place, quoted, seconds, size, text, whole,
};
use belljar_egress::remote::RemoteService;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The servers, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServersConfig(pub Vec<ServerConfig>);

/// A server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// Its name, which is a part of its tools' names.
    pub name: String,
    /// Its transport.
    pub way: ServerTransport,
    /// Names of the tools to offer; `None` for all.
    pub enabled_tools: Option<Vec<String>>,
    /// Names of tools that are not offered.
    pub disabled_tools: Vec<String>,
    /// Scope of its tools. Default: `pm`.
    pub scope: ToolScope,
    /// Time limit of a call. Default: 30 s.
    pub timeout: Duration,
    /// Time limit for connecting and listing tools. Default: 10 s.
    pub connect_timeout: Duration,
    /// Caching of its answers.
    pub cache: CacheConfig,
    /// False to leave it disconnected.
    pub is_enabled: bool,
    /// Limits of its messages.
    pub limits: ServerLimits,
}

/// Transport of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTransport {
    /// Its program is started, and messages go over its standard input and output.
    Stdio(StdioConfig),
    /// It is reached over HTTP.
    Http(RemoteService),
}

/// Caching of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// Time for which an answer is cached; zero disables caching. Default: 60 s.
    pub ttl: Duration,
    /// Maximum number of answers. Default: 256.
    pub size: usize,
}

/// Limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum number of concurrent calls. Default: 4.
    pub calls: usize,
    /// Maximum size of a message, in bytes. Default: 4 MiB.
    pub answer_bytes: usize,
    /// Maximum number of tools. Default: 128.
    pub tools: usize,
}

const SECOND: Duration = Duration::from_secs(1);

/// Maximum length of a server's name, which leaves room for a tool's own name.
const LONGEST_NAME: usize = 32;

// === impl ServersConfig ===

impl ServersConfig {
    /// Reads the list; mistakes are logged.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let servers = list(node, log, |node, log| {
            let server = ServerConfig::read(node, log)?;
            Some((server, node.position, below(&node.path, "name")))
        });
        let servers = servers.unwrap_or_default();
        for (at, (server, position, path)) in servers.iter().enumerate() {
            let others = servers.iter().take(at).map(|(other, ..)| other.name.as_str());
            for other in others.filter(|other| share_names(other, &server.name)) {
                let found = format!("{} beside {}", quoted(&server.name), quoted(other));
                // With `a` and `a_b`, a tool of one could have the name of a tool of the other.
                let expected = "names of which none is another with `_` behind it, each once";
                log.note(*position, path, found, expected);
            }
        }
        Self(servers.into_iter().map(|(server, ..)| server).collect())
    }
}

fn share_names(one: &str, other: &str) -> bool {
    let begins = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('_'));
    one == other || begins(one, other) || begins(other, one)
}

// === impl ServerConfig ===

impl ServerConfig {
    /// Returns the source name of its tools in the registry, which differs from the host's own.
    pub(super) fn group(&self) -> String {
        format!("mcp_{}", self.name)
    }

    /// Returns true if the server's tool of that name is offered.
    pub fn is_meant(&self, tool: &str) -> bool {
        let is_in = |tools: &[String]| tools.iter().any(|name| name == tool);
        self.enabled_tools.as_deref().is_none_or(is_in) && !is_in(&self.disabled_tools)
    }

    /// Returns the server's identity for approvals, without credentials.
    pub(super) fn scope(&self) -> Value {
        match &self.way {
            ServerTransport::Http(remote) => json!({ "name": self.name, "url": remote.address() }),
            ServerTransport::Stdio(stdio) => json!({
                "name": self.name,
                "command": stdio.command,
                // Arguments may contain credentials.
                "args_sha256": digest_of(&json!(stdio.args).to_string()),
                "workspace": stdio.workspace.as_ref().map(|folder| escaped(folder.path.as_os_str().as_bytes())),
                "unsealed": stdio.is_unsealed,
            }),
        }
    }

    fn read(node: &Node, log: &mut MistakeLog) -> Option<Self> {
        let mut members = Members::open(node, log)?;
        let name = members.required("name", read_name);
        let way = read_way(node, &mut members);
        let tools = |node: &Node, log: &mut MistakeLog| list(node, log, tool_name);
        let enabled_tools = members.optional("enabled_tools", tools);
        let disabled_tools = members.or("disabled_tools", Vec::new(), tools);
        for tool in disabled_tools.iter().filter(|tool| enabled_tools.iter().flatten().any(|on| on == *tool))
        {
            let path = below(&node.path, "disabled_tools");
            let found = format!("{}, which is enabled too", quoted(tool));
            members.log.note(node.position, &path, found, "each tool in one of the two lists");
        }
        let time = |longest: u64| {
            move |node: &Node, log: &mut MistakeLog| seconds(node, log, SECOND..=Duration::from_secs(longest))
        };
        let scope = members.or("scope", ToolScope::Pm, |node, log| one_of(node, log, &ToolScope::NAMES));
        let timeout = members.or("timeout_seconds", 30 * SECOND, time(600));
        let connect_timeout = members.or("connect_timeout_seconds", 10 * SECOND, time(120));
        let cache = read_cache(&mut members);
        let is_enabled = members.or("enabled", true, boolean);
        let limits = members.section("limits", ServerLimits::read);
        members.finish();
        Some(Self {
            name: name?,
            way: way?,
            enabled_tools,
            disabled_tools,
            scope,
            timeout,
            connect_timeout,
            cache,
            is_enabled,
            limits,
        })
    }
}

pub(crate) fn read_name(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "1 to 32 of a-z, 0-9, `_` and `-`", |text| {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        ((1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(is_plain)).then(|| text.to_owned())
    })
}

fn read_way(node: &Node, members: &mut Members<'_, '_>) -> Option<ServerTransport> {
    const TRANSPORTS: [(&str, bool); 2] = [("stdio", true), ("streamable_http", false)];
    let is_stdio = members.required("transport", |node, log| one_of(node, log, &TRANSPORTS));
    let (stdio, remote) = (StdioConfig::read(members), RemoteService::read(members));
    let (needed, transport, others): (_, _, &[&str]) = match is_stdio? {
        true => ("command", "stdio", &OF_HTTP),
        false => ("url", "streamable_http", &stdio::MEMBERS),
    };
    if members.node(needed).is_none() {
        members.log.note(node.position, &below(&node.path, needed), "nothing", "this required member");
    }
    for name in others {
        let Some(other) = members.node(name) else { continue };
        let found = format!("`{name}` beside `transport: {transport}`");
        members.log.note(other.position, &other.path, found, "a member of that transport");
    }
    match is_stdio? {
        true => stdio.map(ServerTransport::Stdio),
        false => remote.map(ServerTransport::Http),
    }
}

/// Members of a server that is reached over HTTP.
const OF_HTTP: [&str; 3] = ["url", "user", "headers"];

fn tool_name(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "the name of a tool, as its server calls it", |text| {
        (!text.is_empty() && text.len() <= 256).then(|| text.to_owned())
    })
}

fn read_cache(members: &mut Members<'_, '_>) -> CacheConfig {
    let count = |node: &Node, log: &mut MistakeLog| usize::try_from(whole(node, log, 0..=10_000)?).ok();
    CacheConfig {
        ttl: members.or("cache_ttl_seconds", 60 * SECOND, |node, log| {
            seconds(node, log, Duration::ZERO..=86_400 * SECOND)
        }),
        size: members.or("cache_size", 256, count),
    }
}

// === impl ServerLimits ===

impl ServerLimits {
    fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let count = |most: u64| {
            move |node: &Node, log: &mut MistakeLog| usize::try_from(whole(node, log, 1..=most)?).ok()
        };
        let read = Self {
            calls: members.or("calls", default.calls, count(64)),
            answer_bytes: members.or("answer", default.answer_bytes, read_answer),
            tools: members.or("tools", default.tools, count(1_000)),
        };
        members.finish();
        read
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { calls: 4, answer_bytes: 4 << 20, tools: 128 }
    }
}

fn read_answer(node: &Node, log: &mut MistakeLog) -> Option<usize> {
    const MOST: u64 = 64 << 20;
    let bytes = size(node, log, 1_024)?;
    if bytes > MOST {
        log.note(node.position, place(node), format!("{bytes} bytes"), "64m at most");
        return None;
    }
    usize::try_from(bytes).ok()
}

#[cfg(test)]
mod tests;
