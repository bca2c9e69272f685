//! `belljar exec`

mod elsewhere;
mod ways_out;

use super::Subcommand;
use crate::backend::BackendArguments;
use crate::error::CliError;
use crate::handoff::TrustArguments;
use crate::lending::SandboxArguments;
use crate::models::ModelArguments;
use crate::terminal::{self, Relay};
use crate::web::WebArguments;
use crate::{limits, programs, state, summary};
use belljar_confine::launch::LaunchError;
use belljar_confine::stage::Stage;
use belljar_contract::id::RunId;
use belljar_contract::programs::ProgramList;
use belljar_node::web::policy_file::OpenPolicy;
use belljar_sandbox::backends::chosen::Chosen;
use belljar_sandbox::directory::Directory;
use belljar_sandbox::native::{self, HostUser, StartError};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::{Program, SandboxSpec, Workspace};
use belljar_sandbox::state::{RunFolder, State};
use belljar_sandbox::workspace::apply::{ApplyError, apply};
use belljar_sandbox::workspace::changes::ChangeSet;
use belljar_sandbox::workspace::diff;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};
use ways_out::WaysOut;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct ExecArguments {
    #[command(flatten)]
    sandbox: SandboxArguments,
    #[command(flatten)]
    backend: BackendArguments,
    #[command(flatten)]
    models: ModelArguments,
    #[command(flatten)]
    web: WebArguments,
    /// Keep the changes to a workspace that is a copy
    #[arg(long)]
    keep: bool,
    /// Apply the changes to the workspace that was copied, if the command succeeds
    #[arg(long, requires = "workspace_copy")]
    apply: bool,
    #[command(flatten)]
    trust: TrustArguments,
    /// Print the effective isolation, layer by layer, as JSON on standard error
    #[arg(long)]
    isolation: bool,
    /// Print how long each stage of building the sandbox took
    #[arg(long)]
    timings: bool,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// A command that has run.
pub(super) struct Executed {
    /// The run that it was.
    pub(super) run: RunId,
    /// What it ended with.
    pub(super) code: ExitCode,
}

impl Subcommand for ExecArguments {
    const NAME: &'static str = "exec";
    const ABOUT: &'static str =
        "Run a command in a fresh sandbox, with the terminal attached if there is one";

    fn run(&self) -> Result<ExitCode, CliError> {
        match self.backend.chosen()? {
            Chosen::Native => {
                let choice = self.sandbox.workspace()?;
                Ok(self.run_natively(self.ways_out(&choice)?, &choice)?.code)
            }
            chosen => elsewhere::run(self, &chosen),
        }
    }
}

// === impl ExecArguments ===

impl ExecArguments {
    fn run_natively(
        &self,
        mut ways_out: WaysOut<'_>,
        choice: &WorkspaceChoice,
    ) -> Result<Executed, CliError> {
        let since = SystemTime::now();
        let state = state::open();
        let user = HostUser::choose();
        let folder = match choice {
            WorkspaceChoice::Copy(_) => Some(state.begin_run(user.identity())?),
            WorkspaceChoice::Empty | WorkspaceChoice::Direct(_) | WorkspaceChoice::Seen(_) => None,
        };
        let mut spec = self.spec((choice, folder.as_ref()), user)?;
        spec.hatches.extend(ways_out.hatches());
        ways_out.furnish(&mut spec.env, &mut spec.home)?;
        // Held from before the start: what is read afterwards is what was copied, whatever has come to its name.
        let layers = match &spec.workspace {
            Workspace::Copy { source, upper, .. } => {
                Some((Directory::open_meant(source)?, Directory::open_meant(upper)?))
            }
            _ => None,
        };
        let program = Program { argv: self.command.clone(), directory: "/workspace".to_owned() };
        let (stdio, relay) = terminal::connect()?;
        let running = native::start(&spec, &state, &program, stdio);
        let mut running = match running {
            Ok(running) => running,
            Err(error) => {
                return Ok(Executed {
                    run: spec.id,
                    code: not_started(error, &program, spec.programs.as_ref())?,
                });
            }
        };
        if self.isolation {
            crate::output::errln!("{}", crate::output::json(&running.isolation));
        }
        let sockets = std::mem::take(&mut running.launched.hatches);
        let served = ways_out.serve(&spec.id, &state, sockets)?;
        let deadline = self.sandbox.timeout().map(|timeout| Instant::now() + timeout);
        let terminal = running.launched.terminal.take();
        let outcome = relay.until_end(&mut running.launched.sealed, terminal, deadline)?;
        if self.timings {
            summary::print_timings(&running.launched.timings);
        }
        let code = match outcome {
            Relay::Ended(code) => code,
            Relay::OutOfTime => {
                crate::output::errln!("belljar: out of time");
                crate::error::OUT_OF_TIME
            }
        };
        let ending = running.launched.sealed.wait().map_err(|source| CliError::Watch { source })?;
        if let Some(limit) = running.ended_by(ending.outcome) {
            limits::tell(limit);
        }
        served.end()?;
        // Nothing in it runs any more. What the kernel still clears away then needs no waiting for, unless it holds the
        // layers of a copy or a control group.
        match (&folder, running.group) {
            (None, None) => running.launched.sealed.leave(),
            (_, group) => drop((running.launched, group)),
        }
        if let (Some(folder), Some((source, upper))) = (folder, layers) {
            let settled = settle(self, folder, (&source, &upper), (code == 0, since));
            match settled {
                // It has failed anyway, and with that code.
                Err(error) if code != 0 => drop(error.report()),
                settled => settled?,
            }
        }
        Ok(Executed { run: spec.id, code: ExitCode::from(code) })
    }

    /// The ways out that were asked for.
    fn ways_out(&self, workspace: &WorkspaceChoice) -> Result<WaysOut<'_>, CliError> {
        let (models, web) = (self.models.chosen()?, self.web.policy(workspace)?);
        Ok(WaysOut { models, arguments: &self.models, web, inspection: None })
    }

    fn spec(
        &self,
        (choice, folder): (&WorkspaceChoice, Option<&RunFolder>),
        user: HostUser,
    ) -> Result<SandboxSpec, CliError> {
        let workspace = Workspace::of_run(choice, folder, user)?;
        let id = folder.map_or_else(State::new_id, |folder| folder.id().clone());
        Ok(SandboxSpec {
            workspace,
            lent: self.sandbox.lent()?,
            env: self.sandbox.env(),
            programs: self.sandbox.programs()?,
            limits: self.sandbox.limits(),
            required: self.sandbox.required()?,
            ..SandboxSpec::new(id, user)
        })
    }
}

/// Runs a command natively, to see what it wants of the web; meanwhile it gets what this policy allows.
pub(super) fn watched(
    command: &[OsString],
    sandbox: SandboxArguments,
    policy: OpenPolicy,
) -> Result<Executed, CliError> {
    let arguments = ExecArguments {
        sandbox,
        backend: BackendArguments::default(),
        models: ModelArguments::default(),
        web: WebArguments::default(),
        trust: TrustArguments::default(),
        keep: false,
        apply: false,
        isolation: false,
        timings: false,
        command: command.to_vec(),
    };
    let ways_out =
        WaysOut { models: None, arguments: &arguments.models, web: Some(policy), inspection: None };
    let choice = arguments.sandbox.workspace()?;
    arguments.run_natively(ways_out, &choice)
}

/// A program that isn't there or may not be run gets the exit code that shells give.
pub(super) fn cant_run(program: &str, source: rustix::io::Errno, listed: Option<&ProgramList>) -> ExitCode {
    crate::output::errln!("belljar: can't run {program}: {source}");
    if let Some(hint) = programs::hint(program, source, listed) {
        crate::output::errln!("hint: {hint}");
    }
    ExitCode::from(match source {
        rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR => 127,
        _ => 126,
    })
}

fn not_started(
    error: StartError,
    program: &Program,
    listed: Option<&ProgramList>,
) -> Result<ExitCode, CliError> {
    let StartError::Launch(LaunchError::Stage { stage: Stage::Exec, source, .. }) = &error else {
        return Err(error.into());
    };
    let name = program.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(cant_run(&name, *source, listed))
}

fn settle(
    arguments: &ExecArguments,
    mut folder: RunFolder,
    (source, upper): (&Directory, &Directory),
    (succeeded, since): (bool, SystemTime),
) -> Result<(), CliError> {
    let set = ChangeSet::read(source, upper)?;
    if !set.is_empty() {
        crate::output::err!("{}", summary::changes(&diff::render(&set, source, upper)?));
        if arguments.apply && succeeded {
            let applied = arguments.trust.with_yes(|trust| Ok(apply(&set, upper, source, since, trust)?));
            if matches!(applied, Err(CliError::Apply(ApplyError::Handoff { .. }))) {
                // It takes a yes, and so is not lost.
                folder.keep()?;
                crate::output::errln!("The changes are kept in {}", crate::output::path(folder.path()));
            }
            applied?;
            crate::output::errln!("The changes are applied.");
        } else if arguments.keep {
            folder.keep()?;
            crate::output::errln!("The changes are kept in {}", crate::output::path(folder.path()));
            return Ok(());
        } else {
            crate::output::errln!("The changes are thrown away; --keep keeps them, --apply applies them.");
        }
    }
    Ok(folder.remove()?)
}
