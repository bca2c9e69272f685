//! The configuration file: all its sections, and where it is when nobody names it.

use crate::error::CliError;
use crate::obeyed;
use belljar_contract::category::Category;
use belljar_contract::yaml::{self, LARGEST_BYTES, Log, Members, Mistakes, Node, below, quoted};
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

/// What a file says.
pub(crate) struct Configuration {
    /// Which backend for which tools; what is usual where it says nothing.
    pub(crate) sandboxing: Config,
    /// Whether it says something about that.
    pub(crate) has_sandboxing: bool,
    /// The backend for commands of a person, where it writes one: `default_backend`, or an override for `terminal`.
    pub(crate) backend_for_commands: Option<BackendName>,
    /// Who answers for models.
    pub(crate) inference: Option<InferenceConfig>,
    /// What sandboxes may reach of the web, where something is said of it.
    pub(crate) egress: Option<WebConfig>,
    /// What is said of the node.
    pub(crate) node: NodeConfig,
    /// How agents elsewhere reach the node's tools.
    pub(crate) mcp: McpConfig,
    /// What tools may ask and tell.
    pub(crate) tools: ToolsConfig,
    /// Agents besides those that are built in, or instead of them.
    pub(crate) agents: Catalogue,
    /// Where the host's git may go.
    pub(crate) git: GitRules,
    /// What agents may do.
    pub(crate) access: AccessRules,
    /// Whether something is said of that, or of what agents earn: then callers at a node are judged by it.
    pub(crate) has_access: bool,
    /// How long people are waited for who are asked about calls.
    pub(crate) approvals: ApprovalRules,
    /// How agents come to higher levels, where something is said of it.
    pub(crate) trust: Option<TrustConfig>,
    /// Where checkpoints of the audit log are delivered to.
    pub(crate) anchors: Vec<AnchorSettings>,
}

/// The sections by which agents are judged.
const ACCESS: [&str; 3] = ["tool_access", "autonomy", "trust"];

/// The sections that may stand without `sandboxing`.
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
    /// Reads a document, all of it.
    ///
    /// # Errors
    /// [`Mistakes`]: all that are found, in all sections.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Mistakes> {
        let mut log = Log::default();
        let read = yaml::parse(bytes, &mut log).and_then(|root| Self::sections(&root, &mut log));
        log.finish()?;
        // Nothing is read of a document that is none, and that has been noted.
        Ok(read.unwrap_or_else(Self::nothing))
    }

    /// Reads a file. This process reads each only once: what it takes from one is of one state of it, also where the file is a pipe.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match known.get(path) {
            Some(bytes) => bytes.clone(),
            None => {
                let bytes = read_bytes(obeyed::open(path)?).map_err(|error| CliError::read(path, error))?;
                known.insert(path.to_owned(), bytes.clone());
                bytes
            }
        };
        drop(known);
        obeyed::check_named(&bytes)?;
        Self::parse(&bytes).map_err(|source| CliError::Config { path: path.to_owned(), source })
    }

    /// Reads a file as it is now, also if this process has read it before.
    pub(crate) fn read_again(path: &Path) -> Result<Self, CliError> {
        let bytes = read_bytes(obeyed::open(path)?).map_err(|error| CliError::read(path, error))?;
        obeyed::check_named(&bytes)?;
        Self::parse(&bytes).map_err(|source| CliError::Config { path: path.to_owned(), source })
    }

    fn sections(root: &Node, log: &mut Log) -> Option<Self> {
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

/// What this process has read.
static READ: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// The file that the command line names (`--config`), if it names one.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// Says which configuration the command line names. It counts for all that this process does, and is read at once, so that a mistake in
/// it is never passed over.
pub(crate) fn name(path: PathBuf) -> Result<(), CliError> {
    Configuration::read(&path)?;
    let _ = NAMED.set(path);
    Ok(())
}

/// The file that this process works with: the one that was named, else that of `BELLJAR_CONFIG`, of the user, of the system.
pub(crate) fn found(named: Option<&Path>) -> Option<PathBuf> {
    let named = named.or_else(|| NAMED.get().map(PathBuf::as_path)).map(Path::to_owned);
    named.or_else(explicit).or_else(|| usual().into_iter().find(|path| is_there(path)))
}

/// The configuration that this process works with, if there is one.
pub(crate) fn current() -> Result<Option<Configuration>, CliError> {
    found(None).map(|path| Configuration::read(&path)).transpose()
}

/// Whether something stands at a path. What can't be looked at counts as there, and reading it says why it can't be read.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// Where a configuration is looked for when none is named, whether there is one or not.
pub(crate) fn candidates() -> Vec<PathBuf> {
    explicit().into_iter().chain(usual()).collect()
}

fn explicit() -> Option<PathBuf> {
    std::env::var_os("BELLJAR_CONFIG").map(PathBuf::from)
}

/// That of the user, which comes first, and that of the system.
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

/// The anchors of the configuration that this process works with. Of one that can't be read they aren't known, which is an error: the log
/// is not written without them.
pub(crate) fn anchors() -> Result<Vec<AnchorSettings>, Box<dyn Error + Send + Sync>> {
    Ok(current()?.map(|configuration| configuration.anchors).unwrap_or_default())
}

/// The agents that there are: those of a configuration, which win, and those that are built in.
pub(crate) fn catalogue(named: Option<&Path>) -> Result<Catalogue, CliError> {
    let built_in = Catalogue::built_in();
    match found(named) {
        Some(path) => Ok(built_in.with(Configuration::read(&path)?.agents)),
        None => Ok(built_in),
    }
}

/// A byte more than may be is enough to see that there is too much.
pub(crate) fn read_bytes(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
