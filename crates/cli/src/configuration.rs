//! The configuration file: all its sections, and the default paths where it is searched for.

use crate::error::CliError;
use crate::trusted_files;
use belljar_contract::category::Category;
use belljar_contract::yaml::{self, LARGEST_BYTES, Members, MistakeLog, Mistakes, Node, below, quoted};
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::web::config::WebConfig;
use belljar_node::agent::catalogue::Catalogue;
use belljar_node::daemon::{McpConfig, NodeConfig};
use belljar_policy::access::AccessRules;
use belljar_policy::approval::ApprovalRules;
use belljar_policy::git::GitRules;
use belljar_policy::trust::TrustConfig;
use belljar_sandbox::config::{BackendName, Config};
use belljar_store::audit::anchor::AnchorSettings;
use belljar_tools::builtin::configured::config::ToolsConfig;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Parsed configuration file.
pub(crate) struct Configuration {
    /// Sandbox backend of each tool category; defaults where the file has no setting.
    pub(crate) sandboxing: Config,
    /// True if the file has a `sandboxing` section.
    pub(crate) has_sandboxing: bool,
    /// Backend for commands that a user runs, if the file sets one: `default_backend`, or an override for `terminal`.
    pub(crate) backend_for_commands: Option<BackendName>,
    /// Providers of models and the routes to them.
    pub(crate) inference: Option<InferenceConfig>,
    /// Web rules of sandboxes, if the file has an `egress` section.
    pub(crate) egress: Option<WebConfig>,
    /// Settings of the node.
    pub(crate) node: NodeConfig,
    /// Settings for remote agents that call the node's tools through MCP.
    pub(crate) mcp: McpConfig,
    /// Settings of the built-in tools.
    pub(crate) tools: ToolsConfig,
    /// Agents that extend or replace the built-in ones.
    pub(crate) agents: Catalogue,
    /// Remotes and forges that git on the host may use.
    pub(crate) git: GitRules,
    /// Access rules of agents.
    pub(crate) access: AccessRules,
    /// True if the file has one of the sections in [`ACCESS`]. A node then applies the access rules to its callers.
    pub(crate) has_access: bool,
    /// Rules for approvals of calls, such as how long to wait for one.
    pub(crate) approvals: ApprovalRules,
    /// How agents earn higher levels, if the file has a `trust` section.
    pub(crate) trust: Option<TrustConfig>,
    /// Destinations for checkpoints of the audit log.
    pub(crate) anchors: Vec<AnchorSettings>,
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
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Mistakes> {
        let mut log = MistakeLog::default();
        let read = yaml::parse(bytes, &mut log).and_then(|root| Self::sections(&root, &mut log));
        log.finish()?;
        // `finish` has already returned the mistakes of a document that can't be read.
        Ok(read.unwrap_or_else(Self::nothing))
    }

    /// Reads a file. A process reads each file only once and caches its bytes. All settings then come from one version of the file, and
    /// the file may be a pipe.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match known.get(path) {
            Some(bytes) => bytes.clone(),
            None => {
                let bytes =
                    read_bytes(trusted_files::open(path)?).map_err(|error| CliError::read(path, error))?;
                known.insert(path.to_owned(), bytes.clone());
                bytes
            }
        };
        drop(known);
        trusted_files::check_named(&bytes)?;
        Self::parse(&bytes).map_err(|source| CliError::Config { path: path.to_owned(), source })
    }

    /// Reads the current content of a file, without the cache.
    pub(crate) fn read_again(path: &Path) -> Result<Self, CliError> {
        let bytes = read_bytes(trusted_files::open(path)?).map_err(|error| CliError::read(path, error))?;
        trusted_files::check_named(&bytes)?;
        Self::parse(&bytes).map_err(|source| CliError::Config { path: path.to_owned(), source })
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

/// Cache of the files that this process has read.
static READ: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// The file that the command line names (`--config`), if it names one.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// Sets the configuration that the command line names, for this whole process. The file is read immediately, so that a mistake in it is
/// always reported.
pub(crate) fn name(path: PathBuf) -> Result<(), CliError> {
    Configuration::read(&path)?;
    let _ = NAMED.set(path);
    Ok(())
}

/// Returns the path of the configuration in use: the named one, else `BELLJAR_CONFIG`, else the user's file, else the system's.
pub(crate) fn found(named: Option<&Path>) -> Option<PathBuf> {
    let named = named.or_else(|| NAMED.get().map(PathBuf::as_path)).map(Path::to_owned);
    named.or_else(explicit).or_else(|| usual().into_iter().find(|path| is_there(path)))
}

/// Reads the configuration in use; `None` if there is none.
pub(crate) fn current() -> Result<Option<Configuration>, CliError> {
    found(None).map(|path| Configuration::read(&path)).transpose()
}

/// Returns true if a path exists. A path that can't be inspected counts as existing: reading it then reports the reason.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// Returns the paths where a configuration is searched for if none is named, including paths that don't exist.
pub(crate) fn candidates() -> Vec<PathBuf> {
    explicit().into_iter().chain(usual()).collect()
}

fn explicit() -> Option<PathBuf> {
    std::env::var_os("BELLJAR_CONFIG").map(PathBuf::from)
}

/// Returns the default paths: the user's file first, then the system's.
fn usual() -> Vec<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    // Never `home_dir()`: without HOME it asks the system's user database, for which glibc loads modules into this static program.
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let users = config.or_else(|| home.map(|home| home.join(".config")));
    users
        .into_iter()
        .chain([PathBuf::from("/etc")])
        .map(|folder| folder.join("belljar/config.yaml"))
        .collect()
}

/// Returns the audit log anchors of the configuration in use. An unreadable configuration is an error, because the audit log must not be
/// written without its anchors.
pub(crate) fn anchors() -> Result<Vec<AnchorSettings>, Box<dyn Error + Send + Sync>> {
    Ok(current()?.map(|configuration| configuration.anchors).unwrap_or_default())
}

/// Returns all agents: the built-in ones and those of the configuration, which take precedence.
pub(crate) fn catalogue(named: Option<&Path>) -> Result<Catalogue, CliError> {
    let built_in = Catalogue::built_in();
    match found(named) {
        Some(path) => Ok(built_in.with(Configuration::read(&path)?.agents)),
        None => Ok(built_in),
    }
}

/// Reads at most one byte more than [`LARGEST_BYTES`]: enough to detect a file that is too long.
pub(crate) fn read_bytes(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
