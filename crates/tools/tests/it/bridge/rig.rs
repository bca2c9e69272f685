//! A bridge with a registry, and helpers to call its tools.

use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::tool::ToolName;
use belljar_contract::yaml::{self, MistakeLog};
use belljar_egress::exchange::Exchanger;
use belljar_policy::tool::ToolGrants;
use belljar_sandbox::native::{NativeBackend, SEARCH_PATH};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::{HostPath, Lent};
use belljar_sandbox::state::StateDirectory;
use belljar_testkit::{clients, mcp};
use belljar_tools::answer::{Answer, Success};
use belljar_tools::bridge::config::{Folder, FolderMode, ServersConfig, StdioConfig};
use belljar_tools::bridge::{Bridge, BridgeResources, ProgramFinder, ServerProgram};
use belljar_tools::caller::Caller;
use belljar_tools::definition::Definition;
use belljar_tools::registry::Registry;
use serde_json::{Value, json};
use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Creates sandboxes.
pub(crate) struct SandboxFactory {
    backend: Arc<NativeBackend>,
    state: TempDir,
}

/// A bridge.
pub(crate) struct Rig {
    pub(crate) registry: Arc<Registry>,
    bridge: Option<Bridge>,
}

pub(crate) const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
pub(crate) const OTHER_TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f";

/// Longer than any test here takes.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl SandboxFactory ===

impl SandboxFactory {
    pub(crate) fn new(backend: impl FnOnce(StateDirectory) -> NativeBackend) -> Self {
        let state = folder();
        Self { backend: Arc::new(backend(StateDirectory::at(state.path()))), state }
    }

    /// Existing folders of runs.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let runs = std::fs::read_dir(self.state.path().join("runs"));
        runs.map(|runs| runs.flatten().map(|run| run.path()).collect()).unwrap_or_default()
    }

    /// Starts a bridge with these servers on the current runtime.
    pub(crate) fn bridge(&self, servers: &str) -> Rig {
        let mut log = MistakeLog::default();
        let root = yaml::parse(servers.as_bytes(), &mut log);
        let config = root.map(|root| ServersConfig::read(&root, &mut log));
        log.finish().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let registry = Arc::new(Registry::new([]).unwrap());
        let means = BridgeResources {
            backend: Arc::clone(&self.backend) as _,
            required: RequiredLayers::default(),
            finder: finder(),
            exchanger: Arc::new(Exchanger::start().unwrap()),
        };
        let bridge = Bridge::start(config.unwrap(), &registry, &means);
        Rig { registry, bridge: Some(bridge) }
    }
}

/// A folder readable by other users.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// Runs a test.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(test)
}

/// Finds Node and its packages for `node`, and the system's own programs otherwise.
fn finder() -> ProgramFinder {
    Arc::new(|config: &StdioConfig| {
        let mut lent = Vec::new();
        let command = match config.command.as_str() {
            "node" => {
                let node = clients::node()?;
                lent = vec![node.clone(), mcp::packages_folder()?];
                node
            }
            "python" => {
                lent = vec![mcp::sdk()?];
                mcp::sdk()?.join("bin/python")
            }
            other => PathBuf::from(other),
        };
        lent.extend(config.lend.iter().cloned());
        let lent = lent.iter().map(|path| Lent::at_its_place(path)).collect::<Result<_, _>>()?;
        let workspace = match &config.workspace {
            Some(Folder { path, mode: FolderMode::Copy }) => WorkspaceChoice::Copy(HostPath::resolve(path)?),
            Some(Folder { path, mode: FolderMode::Direct }) => {
                WorkspaceChoice::Direct(HostPath::resolve(path)?)
            }
            None => WorkspaceChoice::Empty,
        };
        let command = vec![command.into()];
        Ok::<_, Box<dyn Error + Send + Sync>>(ServerProgram {
            command,
            lent,
            workspace,
            search_path: SEARCH_PATH.to_owned(),
        })
    })
}

/// Main file of a reference server.
pub(crate) fn reference(server: &str) -> Result<String, String> {
    let file = format!("node_modules/@modelcontextprotocol/{server}/dist/index.js");
    mcp::packages_folder().map(|folder| folder.join(file).display().to_string())
}

// === impl Rig ===

impl Rig {
    /// Waits until a tool with that name is registered.
    pub(crate) async fn definition(&self, name: &str) -> Definition {
        let parsed = ToolName::parse(name).unwrap();
        until(name, || self.registry.find(&parsed).map(|entry| entry.tool.definition().clone())).await
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.registry.all().iter().map(|entry| entry.name().to_string()).collect()
    }

    /// Calls a registered tool for [`TASK`].
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Answer {
        self.call_for(TASK, name, arguments).await
    }

    pub(crate) async fn call_for(&self, task: &str, name: &str, arguments: Value) -> Answer {
        let entry = self.registry.find(&ToolName::parse(name).unwrap()).unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        entry.schema.check(&arguments).unwrap();
        let id = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d01";
        let caller = Caller::in_sandbox(
            TaskId::parse(task).unwrap(),
            JobId::parse(id).unwrap(),
            RunId::parse(id).unwrap(),
            ToolGrants::default(),
        );
        tokio::time::timeout(PATIENCE, entry.tool.call(&caller, arguments)).await.unwrap()
    }

    /// Text of the result of a call.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        text(&self.call(name, arguments).await.unwrap())
    }

    pub(crate) async fn end(mut self) {
        tokio::time::timeout(PATIENCE, self.bridge.take().unwrap().end()).await.unwrap();
        assert_eq!(self.names(), [] as [&str; 0]);
    }
}

pub(crate) fn text(success: &Success) -> String {
    success.data["content"].as_str().unwrap().to_owned()
}

/// Waits until the closure returns a value.
pub(crate) async fn until<T: Debug>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "still no {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Configuration of a stdio server with additional members.
pub(crate) fn program(name: &str, command: &str, args: &[&str], more: &str) -> String {
    let args = json!(args);
    let command = json!(command);
    format!(
        "  - {{name: {name}, transport: stdio, connect_timeout_seconds: 60, command: {command}, args: {args}{more}}}\n"
    )
}

/// Configuration of a server written as a Python script, stored in the folder.
pub(crate) fn scripted(folder: &Path, name: &str, script: &str, more: &str) -> String {
    let path = folder.join(format!("{name}.py"));
    std::fs::write(&path, [include_str!("script.py"), script].concat()).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let path = path.display().to_string();
    program(name, "/usr/bin/python3", &[&path], &format!(", lend: ['{path}']{more}"))
}
