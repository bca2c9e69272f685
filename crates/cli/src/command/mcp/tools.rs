//! The tools, one a file. Names have no dots, which many clients refuse.

mod approve;
mod close;
mod diff;
mod discard;
mod exec;
mod list;
mod open;
mod read;
mod run;
mod sessions;
mod write;

use super::execution::{CallerGoneSignal, waiting};
use super::git_workspace::SessionGitWorkspaces;
use super::mcp_sessions::McpSessions;
use super::scope::{self, CallWorkspace};
use super::session_workbench::SessionWorkbench;
use super::tell;
use super::web::SessionWebHatch;
use crate::configuration::Configuration;
use crate::state;
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::approval::CallScope;
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, InvalidToolNameError, ToolName, ToolScope};
use belljar_sandbox::backend::with_causes;
use belljar_tools::Tool;
use belljar_tools::answer::{Answer, Failure};
use belljar_tools::builtin;
use belljar_tools::builtin::configured::{self, ConfiguredError};
use belljar_tools::builtin::execution::Languages;
use belljar_tools::builtin::git::Signature;
use belljar_tools::builtin::git::hatch::GitHatch;
use belljar_tools::builtin::git::host::{GitHostSettings, HostGitHatch};
use belljar_tools::builtin::web::reach::WebHatch;
use belljar_tools::definition::{Definition, Effect};
use belljar_tools::registry::{RegisterError, Registry};
use belljar_tools::typed::{TypedTool, schema_of, tool};
use belljar_tools::workbench::Workbench;
use clap::ValueEnum;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of concurrent calls that use the host's git. The disk and memory limits of one call are therefore limits for all.
const GIT_AT_ONCE: usize = 1;

/// There are no tools to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolsError {
    /// One has a name that is none.
    #[error(transparent)]
    Name(#[from] InvalidToolNameError),
    /// One can't be among the others.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// There are none of the configuration's.
    #[error(transparent)]
    Configured(#[from] ConfiguredError),
}

/// Description of a tool, apart from its arguments.
struct SessionToolDescription {
    name: &'static str,
    summary: &'static str,
    /// Further details for callers.
    details: &'static str,
    category: Category,
    effect: Effect,
    within: Duration,
}

/// So long a call takes at most that runs nothing of the client's.
const SHORT: Duration = Duration::from_secs(60);

/// The longest that a command of a client's may take.
const LONGEST_COMMAND: Duration = Duration::from_secs(3600);

/// Time allowed for the work before and after a command.
const AROUND_A_COMMAND: Duration = Duration::from_secs(60);

/// Which tools are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolSet {
    /// Those that open sessions and work in them
    Sessions,
    /// Those of agents, for files, code, commands and git, in one session of their own
    Builtin,
    /// All of them
    All,
}

/// Author name of commits by agents.
const NAME_OF_COMMITS: &str = "Belljar agent";
const EMAIL_OF_COMMITS: &str = "agent@belljar.invalid";

/// Those of a set, with what a configuration brings.
pub(super) fn registry(
    desk: &Arc<McpSessions>,
    set: ToolSet,
    config: Option<&Configuration>,
) -> Result<Registry, ToolsError> {
    let mut all = match set {
        ToolSet::Builtin => Vec::new(),
        ToolSet::Sessions | ToolSet::All => of_sessions(desk)?,
    };
    if set != ToolSet::Sessions {
        let bench: Arc<dyn Workbench> = Arc::new(SessionWorkbench { desk: Arc::clone(desk) });
        let signature = Signature { name: NAME_OF_COMMITS.to_owned(), email: EMAIL_OF_COMMITS.to_owned() };
        all.extend(builtin::files::tools(&bench)?);
        all.extend(builtin::execution::tools(&bench, &Languages::all())?);
        all.extend(builtin::git::tools(&bench, &signature)?);
        all.extend(builtin::web::offline()?);
        if desk.may_reach_out() {
            let hatch: Arc<dyn WebHatch> = Arc::new(SessionWebHatch { desk: Arc::clone(desk) });
            all.extend(builtin::web::without_tasks(&hatch)?);
        }
        all.extend(builtin::chart::tools()?);
        all.extend(config.map(|config| of_configuration(desk, config)).transpose()?.unwrap_or_default());
    }
    Ok(Registry::new(all)?)
}

/// Those that a configuration brings: without one they aren't there.
fn of_configuration(
    desk: &Arc<McpSessions>,
    config: &Configuration,
) -> Result<Vec<Arc<dyn Tool>>, ToolsError> {
    let configured = configured::tools(&config.tools)?;
    configured.unusable.iter().for_each(|error| tell(&with_causes(error)));
    let mut all = configured.tools;
    if !config.git.remotes.is_empty() {
        let workspaces = Arc::new(SessionGitWorkspaces { desk: Arc::clone(desk) });
        let settings = GitHostSettings {
            rules: config.git.clone(),
            state: state::open().path().to_owned(),
            at_once: GIT_AT_ONCE,
        };
        let hatch: Arc<dyn GitHatch> = Arc::new(HostGitHatch::new(workspaces, settings));
        all.extend(builtin::git::hatch_tools(&hatch, ToolScope::Both)?);
    }
    Ok(all)
}

fn of_sessions(desk: &Arc<McpSessions>) -> Result<Vec<Arc<dyn Tool>>, ToolsError> {
    Ok([
        defined(&run::ABOUT, desk, run::RunTool)?,
        defined(&open::ABOUT, desk, open::OpenTool)?,
        defined(&exec::ABOUT, desk, exec::ExecTool)?,
        defined(&read::ABOUT, desk, read::ReadTool)?,
        defined(&write::ABOUT, desk, write::WriteTool)?,
        defined(&list::ABOUT, desk, list::ListFilesTool)?,
        defined(&diff::ABOUT, desk, diff::DiffTool)?,
        defined(&approve::ABOUT, desk, approve::ApproveTool)?,
        defined(&discard::ABOUT, desk, discard::DiscardTool)?,
        defined(&close::ABOUT, desk, close::CloseTool)?,
        defined(&sessions::ABOUT, desk, sessions::SessionsTool)?,
    ]
    .into())
}

/// Implementation of a tool, called on a thread that may block.
trait SessionTool: Clone + Send + Sync + 'static {
    /// Arguments of the tool.
    type Arguments: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static;

    /// The workspace that a call with these arguments works on.
    fn place(arguments: Self::Arguments) -> CallWorkspace;

    /// Carries out the call. `given_up` signals that the caller has stopped waiting.
    fn does(&self, desk: &McpSessions, arguments: Self::Arguments, given_up: &CallerGoneSignal) -> Answer;
}

struct SessionToolAdapter<D> {
    desk: Arc<McpSessions>,
    does: D,
    reaches_out: bool,
}

impl<D: SessionTool> TypedTool for SessionToolAdapter<D> {
    type Arguments = D::Arguments;

    async fn call(&self, _: &belljar_tools::caller::Caller, arguments: D::Arguments) -> Answer {
        let _turn = self.desk.turn()?;
        // Dropped with this call, whether it has ended or is given up.
        let (_waiting, given_up) =
            waiting().map_err(|errno| Failure::internal("watch over the call", &errno))?;
        let (desk, does) = (Arc::clone(&self.desk), self.does.clone());
        let done = tokio::task::spawn_blocking(move || does.does(&desk, arguments, &given_up));
        done.await.unwrap_or_else(|error| Err(Failure::internal("do it", &error)))
    }

    async fn scope(
        &self,
        _: &belljar_tools::caller::Caller,
        arguments: D::Arguments,
    ) -> Result<CallScope, Failure> {
        scope::found(&self.desk, D::place(arguments), self.reaches_out).await
    }
}

fn defined<D: SessionTool>(
    about: &SessionToolDescription,
    desk: &Arc<McpSessions>,
    does: D,
) -> Result<Arc<dyn Tool>, ToolsError> {
    let name = ToolName::parse(about.name)?;
    let new = Definition::new(name, about.category, about.summary, schema_of::<D::Arguments>());
    let runs = matches!(about.name, run::NAME | exec::NAME);
    let action = match (about.effect, about.category) {
        (Effect::ReadOnly, Category::VersionControl) => ActionType::from(BuiltInAction::VcsRead),
        (Effect::ReadOnly, _) => ActionType::from(BuiltInAction::CodeRead),
        _ => new.action.clone(),
    };
    let definition = Definition {
        action,
        description: format!("{} {}", about.summary, about.details),
        cost: if runs { CostTier::Expensive } else { CostTier::Moderate },
        effect: about.effect,
        reaches_out: runs && desk.offer.egress.is_some(),
        is_guarded: about.name == approve::NAME,
        within: about.within,
        ..new
    };
    let reaches_out = definition.reaches_out;
    Ok(tool(definition, SessionToolAdapter { desk: Arc::clone(desk), does, reaches_out }))
}
