//! `belljar exec`

mod elsewhere;
mod ways_out;

use super::Subcommand;
use crate::backend::BackendArguments;
use crate::error::CliError;
use crate::kept::{RunChangesArguments, RunChangesOutcome, RunEnd};
use crate::models::ModelArguments;
use crate::sandbox_args::SandboxArguments;
use crate::terminal::{self, RelayResult};
use crate::web::WebArguments;
use crate::{limits, programs, state, summary};
use belljar_confine::launch::LaunchError;
use belljar_confine::stage::Stage;
use belljar_contract::id::RunId;
use belljar_contract::programs::ProgramList;
use belljar_execution::policy_file::OpenPolicy;
use belljar_files::host_path::HostPath;
use belljar_sandbox::backends::chosen::BackendChoice;
use belljar_sandbox::kept::{CopyRecord, RunKind, RunLabel};
use belljar_sandbox::native::{self, HostUser, StartError};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::{Program, SandboxSpec, Workspace};
use belljar_sandbox::state::{RunFolder, StateDirectory};
use belljar_sandbox::workspace::snapshot::SnapshotLimits;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use ways_out::RequestedHatches;

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
    #[command(flatten)]
    fate: RunChangesArguments,
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
pub(super) struct ExecOutcome {
    /// The run that it was.
    pub(super) run: RunId,
    /// Its exit code.
    pub(super) code: ExitCode,
}

impl Subcommand for ExecArguments {
    const NAME: &'static str = "exec";
    const ABOUT: &'static str =
        "Run a command in a fresh sandbox, with the terminal attached if there is one";

    fn run(&self) -> Result<ExitCode, CliError> {
        match self.backend.for_commands(self.sandbox.programs()?.as_ref())? {
            BackendChoice::Native => {
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
        mut ways_out: RequestedHatches<'_>,
        choice: &WorkspaceChoice,
    ) -> Result<ExecOutcome, CliError> {
        let state = state::open();
        let user = HostUser::choose();
        let folder = match choice {
            WorkspaceChoice::Copy(_) => Some(state.begin_run(user.identity())?),
            WorkspaceChoice::Empty | WorkspaceChoice::Direct(_) | WorkspaceChoice::Seen(_) => None,
        };
        let (mut spec, base) = self.spec((choice, folder.as_ref()), user)?;
        if let Err(refused) = ways_out.entitle(&spec.id, &state) {
            folder.map_or(Ok(()), RunFolder::remove)?;
            return Err(refused);
        }
        spec.provision.hatches.extend(ways_out.hatches());
        ways_out.furnish(&mut spec.provision.env, &mut spec.provision.home)?;
        if let (Some(folder), WorkspaceChoice::Copy(source), Workspace::Copy { upper, .. }) =
            (&folder, choice, &spec.workspace)
        {
            record(&self.command, folder.path(), (source, upper.as_path()), base.as_ref())?;
        }
        let program = Program { argv: self.command.clone(), directory: "/workspace".to_owned() };
        let (stdio, relay) = terminal::connect()?;
        let running = native::start(&spec, &state, &program, stdio);
        let mut running = match running {
            Ok(running) => running,
            Err(error) => {
                // Nothing ran.
                folder.map_or(Ok(()), RunFolder::remove)?;
                return Ok(ExecOutcome {
                    run: spec.id,
                    code: not_started(error, &program, spec.provision.programs.as_ref())?,
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
            RelayResult::Ended(code) => code,
            RelayResult::OutOfTime => {
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
        let code = match folder {
            Some(folder) => self.settle(folder, code)?,
            None => code,
        };
        Ok(ExecOutcome { run: spec.id, code: ExitCode::from(code) })
    }

    /// Decides on the changes to a copy. Returns the exit code: that of the command, if it has failed itself.
    fn settle(&self, folder: RunFolder, code: u8) -> Result<u8, CliError> {
        let end = RunEnd { succeeded: code == 0, asks: true, shows: true, keeps_run: false };
        let settled = self.fate.settle(folder, end);
        settled.as_ref().iter().for_each(|fate| fate.tell());
        match settled.and_then(RunChangesOutcome::into_exit_code) {
            Err(error) if code != 0 => {
                error.report();
                Ok(code)
            }
            settled => settled.map(|own| if code == 0 { own } else { code }),
        }
    }

    /// The ways out that were asked for.
    fn ways_out(&self, workspace: &WorkspaceChoice) -> Result<RequestedHatches<'_>, CliError> {
        let (models, grant, web) = (self.models.chosen()?, self.models.grant()?, self.web.policy(workspace)?);
        Ok(RequestedHatches { models, arguments: &self.models, grant, granted: None, web, inspection: None })
    }

    fn spec(
        &self,
        (choice, folder): (&WorkspaceChoice, Option<&RunFolder>),
        user: HostUser,
    ) -> Result<(SandboxSpec, Option<HostPath>), CliError> {
        let (workspace, base) =
            Workspace::of_run_on_snapshot((choice, SnapshotLimits::FOR_COMMAND), folder, user)?;
        let id = folder.map_or_else(StateDirectory::new_id, |folder| folder.id().clone());
        let spec = SandboxSpec {
            workspace,
            provision: self.sandbox.provision(&BackendChoice::Native)?,
            ..SandboxSpec::new(id, user)
        };
        Ok((spec, base))
    }
}

/// Runs a command natively, to see what it wants of the web; meanwhile it gets what this policy allows.
pub(super) fn watched(
    command: &[OsString],
    sandbox: SandboxArguments,
    policy: OpenPolicy,
) -> Result<ExecOutcome, CliError> {
    let arguments = ExecArguments {
        sandbox,
        backend: BackendArguments::default(),
        models: ModelArguments::default(),
        web: WebArguments::default(),
        fate: RunChangesArguments::default(),
        isolation: false,
        timings: false,
        command: command.to_vec(),
    };
    let ways_out = RequestedHatches {
        models: None,
        arguments: &arguments.models,
        grant: None,
        granted: None,
        web: Some(policy),
        inspection: None,
    };
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

/// Writes down what it takes to keep the changes of a command, whatever ends it.
fn record(
    command: &[OsString],
    folder: &Path,
    (source, layer): (&HostPath, &Path),
    base: Option<&HostPath>,
) -> Result<(), CliError> {
    let label = RunLabel::of_command(RunKind::Exec, command.iter().map(OsString::as_os_str));
    let record = CopyRecord::begin(label, folder, (source, layer)).on_base(folder, base);
    record.write(folder).map_err(|source| CliError::read(folder, source))
}
