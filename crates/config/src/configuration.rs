//! The configuration: all sections of the file, parsed.

use belljar_agent::catalogue::Catalogue;
use belljar_contract::category::Category;
use belljar_contract::yaml::{self, Members, MistakeLog, Mistakes, Node, below, quoted};
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::web::config::WebConfig;
use belljar_node::daemon::{McpConfig, NodeConfig};
use belljar_policy::access::AccessRules;
use belljar_policy::approval::ApprovalRules;
use belljar_policy::git::GitRules;
use belljar_policy::trust::TrustConfig;
use belljar_sandbox::config::{BackendName, Config};
use belljar_store::audit::anchor::AnchorSettings;
use belljar_tools::builtin::configured::config::ToolsConfig;

/// Parsed configuration file.
pub struct Configuration {
    /// Sandbox backend of each tool category; defaults where the file has no setting.
    pub sandboxing: Config,
    /// True if the file has a `sandboxing` section.
    pub has_sandboxing: bool,
    /// Backend for commands that a user runs, if the file sets one: `default_backend`, or an override for `terminal`.
    pub backend_for_commands: Option<BackendName>,
    /// Providers of models and the routes to them.
    pub inference: Option<InferenceConfig>,
    /// Web rules of sandboxes, if the file has an `egress` section.
    pub egress: Option<WebConfig>,
    /// Settings of the node.
    pub node: NodeConfig,
    /// Settings for remote agents that call the node's tools through MCP.
    pub mcp: McpConfig,
    /// Settings of the built-in tools.
    pub tools: ToolsConfig,
    /// Agents that extend or replace the built-in ones.
    pub agents: Catalogue,
    /// Remotes and forges that git on the host may use.
    pub git: GitRules,
    /// Access rules of agents.
    pub access: AccessRules,
    /// True if the file has one of the sections in [`ACCESS`]. A node then applies the access rules to its callers.
    pub has_access: bool,
    /// Rules for approvals of calls, such as how long to wait for one.
    pub approvals: ApprovalRules,
    /// How agents earn higher levels, if the file has a `trust` section.
    pub trust: Option<TrustConfig>,
    /// Destinations for checkpoints of the audit log.
    pub anchors: Vec<AnchorSettings>,
}

/// Sections that define the access rules of agents.
const ACCESS: [&str; 3] = ["tool_access", "autonomy", "trust"];

/// Sections that make `sandboxing` optional.
const OTHERS: [&str; 13] = [
    "log",
    "audit",
    "approvals",
    "inference",
    "egress",
    "agents",
    "node",
    "git",
    "mcp",
    "tools",
    "tool_access",
    "autonomy",
    "trust",
];

// === impl Configuration ===

impl Configuration {
    /// Parses a complete document.
    ///
    /// # Errors
    /// [`Mistakes`]: every mistake of every section.
    pub fn parse(bytes: &[u8]) -> Result<Self, Mistakes> {
        let mut log = MistakeLog::default();
        let read = yaml::parse(bytes, &mut log).and_then(|root| Self::sections(&root, &mut log));
        log.finish()?;
        // `finish` has already returned the mistakes of a document that can't be read.
        Ok(read.unwrap_or_else(Self::nothing))
    }

    fn sections(root: &Node, log: &mut MistakeLog) -> Option<Self> {
        let mut members = Members::open(root, log)?;
        let has_sandboxing = members.node("sandboxing").is_some();
        let has_access = ACCESS.iter().any(|name| members.node(name).is_some());
        let has_others = OTHERS.iter().any(|name| members.node(name).is_some());
        let sandboxing = match has_sandboxing || !has_others {
            true => Config::read_from(&mut members),
            false => Config::read_if_there(&mut members),
        };
        let writes = |path: &[&str]| root.member(path).is_some();
        let writes_backend =
            writes(&["sandboxing", "default_backend"]) || writes(&["sandboxing", "overrides", "terminal"]);
        let backend_for_commands =
            writes_backend.then(|| sandboxing.sandboxing.backend_for(Category::Terminal));
        let inference = members.optional("inference", |node, log| Some(InferenceConfig::read(node, log)));
        let egress = members.optional("egress", |node, log| Some(WebConfig::read(node, log)));
        let agents = members.section("agents", Catalogue::read);
        let node = members.section("node", NodeConfig::read);
        let mcp = members.section("mcp", McpConfig::read);
        let tools = members.section("tools", ToolsConfig::read);
        let git = members.section("git", GitRules::read);
        let approvals = members.section("approvals", ApprovalRules::read);
        let trust = members.optional("trust", |node, log| Some(TrustConfig::read(node, log)));
        let anchors = members.section("audit", AnchorSettings::read_all);
        if let Some(node) = members.node("git") {
            let known =
                |name: &str| egress.as_ref().is_some_and(|egress| egress.connections.contains_key(name));
            for forge in git.forges.iter().filter(|forge| !known(&forge.connection)) {
                let found = format!("a forge with the connection {}", quoted(&forge.connection));
                let path = below(&node.path, "forges");
                members.log.note(node.position, &path, found, "the name of one of `egress.connections`");
            }
        }
        let access = AccessRules::read(&mut members);
        members.finish();
        Some(Self {
            sandboxing,
            has_sandboxing,
            backend_for_commands,
            inference,
            egress,
            node,
            mcp,
            tools,
            agents,
            git,
            access,
            has_access,
            approvals,
            trust,
            anchors,
        })
    }

    fn nothing() -> Self {
        let (sandboxing, agents) = (Config::default(), Catalogue::default());
        let (node, git, mcp) = (NodeConfig::default(), GitRules::default(), McpConfig::default());
        Self {
            sandboxing,
            has_sandboxing: false,
            backend_for_commands: None,
            inference: None,
            egress: None,
            node,
            mcp,
            tools: ToolsConfig::default(),
            agents,
            git,
            access: AccessRules::default(),
            has_access: false,
            approvals: ApprovalRules::default(),
            trust: None,
            anchors: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
