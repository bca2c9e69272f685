//! Tools on a workbench, in sandboxes of a backend, and helpers for tests.

use super::one_sandbox::OneSandbox;
use belljar_contract::category::Category;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::tool::{DomainCode, ToolName};
use belljar_policy::tool::ToolGrants;
use belljar_sandbox::backend::SandboxRequest;
use belljar_sandbox::backends::construction::HostContext;
use belljar_sandbox::config::{BackendName, Sandboxing};
use belljar_sandbox::docker::own_program;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::HostPath;
use belljar_sandbox::state::StateDirectory;
use belljar_sandbox::subprocess;
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::launcher::Launcher;
use belljar_testkit::runner;
use belljar_tools::Tool;
use belljar_tools::answer::{Answer, Failure};
use belljar_tools::builtin::execution::Languages;
use belljar_tools::builtin::git::{self, Signature};
use belljar_tools::builtin::{execution, files};
use belljar_tools::caller::Caller;
use belljar_tools::registry::Registry;
use belljar_tools::workbench::{Command, FinishedProgram, Workbench};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Creates backends.
pub(crate) struct WorkbenchFactory {
    here: HostContext,
    // The helper program is this test binary under another name.
    helper: PathBuf,
    engine: Mutex<Option<Result<Docker, String>>>,
    state: TempDir,
}

/// Tools in sandboxes of one backend.
pub(crate) struct WorkbenchRig {
    pub(crate) workbench: Arc<dyn Workbench>,
    pub(crate) caller: Caller,
    registry: Registry,
}

/// Settings of a bench.
pub(crate) struct Setting {
    pub(crate) backend: BackendName,
    pub(crate) workspace: WorkspaceChoice,
    pub(crate) limits: Limits,
    /// Search path for programs.
    pub(crate) search_path: Option<&'static str>,
}

/// Longer than any test here takes.
const PATIENCE: Duration = Duration::from_secs(100);

const ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

// === impl WorkbenchFactory ===

impl WorkbenchFactory {
    pub(crate) fn new(launcher: Arc<Launcher>) -> Self {
        let state = folder();
        let helper = state.path().join("cynode-sba");
        symlink(std::env::current_exe().unwrap(), &helper).unwrap();
        let here = HostContext {
            launcher,
            state: StateDirectory::at(state.path().join("state")),
            executable: std::env::current_exe().unwrap(),
            docker_socket: PathBuf::from("/nowhere"),
        };
        Self { here, helper, engine: Mutex::new(None), state }
    }

    /// A bench with native sandboxes kept for an agent, and an empty workspace.
    pub(crate) fn native(&self) -> WorkbenchRig {
        self.bench(Setting::default()).unwrap()
    }

    /// A bench with native sandboxes working directly on a directory of the host.
    pub(crate) fn native_in(&self, folder: &Path) -> WorkbenchRig {
        self.bench(Setting { workspace: direct(folder), ..Setting::default() }).unwrap()
    }

    pub(crate) fn bench(&self, setting: Setting) -> Result<WorkbenchRig, String> {
        let Setting { backend, workspace, limits, search_path } = setting;
        let mut sandboxing = Sandboxing::default();
        sandboxing.docker.image = IMAGE.to_owned();
        let mut here = self.here.clone();
        // Each bench has its own state, because folders of runs are inspected.
        let state = tempfile::Builder::new().prefix("state-").tempdir_in(self.state.path()).unwrap().keep();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
        here.state = StateDirectory::at(&state);
        if backend == BackendName::Docker {
            here.docker_socket = self.engine()?;
        }
        let env: BTreeMap<String, String> =
            search_path.map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect();
        let wanted =
            SandboxRequest { workspace, provision: Provision { env, limits, ..Provision::default() } };
        let made = here.make(backend, &sandboxing).unwrap();
        let workbench: Arc<dyn Workbench> = Arc::new(OneSandbox::make(made, wanted, &self.helper));
        let tools = tools(&workbench);
        let (task, job) = (TaskId::parse(ID).unwrap(), JobId::parse(ID).unwrap());
        let caller = Caller::in_sandbox(task, job, RunId::parse(ID).unwrap(), ToolGrants::default());
        let registry = Registry::new(tools).unwrap();
        Ok(WorkbenchRig { workbench, caller, registry })
    }

    fn engine(&self) -> Result<PathBuf, String> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.get_or_insert_with(Docker::start).as_ref().map(Docker::socket).map_err(Clone::clone)
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            backend: BackendName::Native,
            workspace: WorkspaceChoice::Empty,
            limits: Limits::default(),
            search_path: None,
        }
    }
}

// === impl WorkbenchRig ===

impl WorkbenchRig {
    /// Calls a tool with arguments that its schema accepts.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Answer {
        self.call_as(&self.caller, name, arguments).await
    }

    pub(crate) async fn call_as(&self, caller: &Caller, name: &str, arguments: Value) -> Answer {
        let entry = self.registry.find(&ToolName::parse(name).unwrap()).unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        entry.schema.check(&arguments).unwrap();
        tokio::time::timeout(PATIENCE, entry.tool.call(caller, arguments)).await.unwrap()
    }

    /// Data of a successful call.
    pub(crate) async fn done(&self, name: &str, arguments: Value) -> Value {
        self.call(name, arguments.clone())
            .await
            .unwrap_or_else(|error| panic!("{name} {arguments}: {error:?}"))
            .data
    }

    /// Error of a failed call.
    pub(crate) async fn refused(&self, name: &str, arguments: Value) -> (DomainCode, String) {
        match self.call(name, arguments.clone()).await {
            Ok(done) => panic!("{name} {arguments}: {:?}", done.data),
            Err(Failure { code, message, .. }) => (code, message),
        }
    }

    /// True if the schema of a tool accepts the arguments.
    pub(crate) fn lets_through(&self, name: &str, arguments: &Value) -> bool {
        let entry = self.registry.find(&ToolName::parse(name).unwrap()).unwrap();
        entry.schema.check(arguments.as_object().unwrap()).is_ok()
    }

    /// Runs a script in the sandbox, which must succeed, and returns its output. Processes it leaves behind are killed.
    pub(crate) async fn shell(&self, script: &str) -> String {
        let ended = self.run(&["sh", "-c", script]).await;
        assert!(ended.is_well(), "{script}: {ended:?}");
        ended.stdout.text()
    }

    pub(crate) async fn run(&self, argv: &[&str]) -> FinishedProgram {
        let argv = argv.iter().map(|argument| (*argument).to_owned()).collect();
        let command = Command { within: Duration::from_secs(60), ..Command::new(Category::Terminal, argv) };
        self.workbench.run(&self.caller, command).await.unwrap()
    }

    /// Number of processes in the kept sandbox.
    pub(crate) async fn processes(&self) -> usize {
        // Excludes the shell and its parent program; PID 1 is not visible.
        let listed = self.shell("for p in /proc/[0-9]*; do echo $p; done").await;
        listed.lines().count()
    }
}

fn tools(workbench: &Arc<dyn Workbench>) -> Vec<Arc<dyn Tool>> {
    let signature = Signature { name: "An Agent".to_owned(), email: "agent@example.org".to_owned() };
    let sets = [
        files::tools(workbench),
        execution::tools(workbench, &Languages::all()),
        git::tools(workbench, &signature),
    ];
    sets.into_iter().flat_map(Result::unwrap).collect()
}

/// A directory used as a workspace directly.
pub(crate) fn direct(folder: &Path) -> WorkspaceChoice {
    WorkspaceChoice::Direct(HostPath::resolve(folder).unwrap())
}

/// A folder readable by other users.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Runs a test.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(test)
}

/// This test binary is also the programs started by backends and tools.
pub(crate) fn as_another_program() -> Option<ExitCode> {
    if let Some(code) = runner::if_started_as_it() {
        return Some(code);
    }
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    match Path::new(&name).file_name()?.to_str()? {
        own_program::NAME => Some(own_program::main(arguments)),
        subprocess::SUPERVISOR => Some(subprocess::main_inside()),
        _ => None,
    }
}
