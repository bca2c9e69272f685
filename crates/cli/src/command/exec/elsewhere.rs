//! `belljar exec` by another backend than the native one: a sandbox for one command, gone with it.

use super::{ExecArguments, cant_run};
use crate::error::{CliError, OUT_OF_TIME};
use crate::terminal::{self, RelayResult};
use crate::{limits, state};
use belljar_confine::launcher::Launcher;
use belljar_files::host_path::HostPath;
use belljar_sandbox::backend::{BackendError, Sandbox, SandboxRequest};
use belljar_sandbox::backends::chosen::{BackendChoice, BackendSite};
use belljar_sandbox::kept::{CopyRecord, KeptError, RunKind, RunLabel};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_sandbox::workspace::COPY;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub(super) fn run(arguments: &ExecArguments, chosen: &BackendChoice) -> Result<ExitCode, CliError> {
    refuse_what_is_native(arguments, chosen)?;
    let workspace = arguments.sandbox.workspace()?;
    let mut ways_out = arguments.ways_out(&workspace)?;
    // Before there is a thread.
    let launcher = Arc::new(Launcher::start()?);
    let source = match &workspace {
        WorkspaceChoice::Copy(source) => Some(source.clone()),
        WorkspaceChoice::Empty | WorkspaceChoice::Direct(_) | WorkspaceChoice::Seen(_) => None,
    };
    let hatches = ways_out.hatches();
    let mut provision = Provision { hatches, ..arguments.sandbox.provision(chosen)? };
    ways_out.furnish(&mut provision.env, &mut provision.home)?;
    let wanted = SandboxRequest { workspace, provision };
    let site = BackendSite {
        state: state::open().path().to_owned(),
        executable: state::own_program()?,
        host_variables: chosen.host_variables(std::env::vars_os()),
    };
    let mut sandbox = chosen.make(launcher, &site)?.create(wanted)?;
    if let Err(refused) = ways_out.entitle(sandbox.id(), &state::open()) {
        sandbox.destroy()?;
        return Err(refused);
    }
    if let Some(source) = &source {
        record(arguments, &*sandbox, source)?;
    }
    if arguments.isolation {
        crate::output::errln!("{}", crate::output::json(sandbox.isolation()));
    }
    let sockets = sandbox.take_hatches();
    let served = ways_out.serve(sandbox.id(), &state::open(), sockets)?;
    let code = match relay(arguments, &*sandbox) {
        Err(CliError::Backend(BackendError::NotStarted { program, source })) => {
            // Nothing ran, so there is nothing to keep.
            let _ = CopyRecord::remove(&state::open().run_folder(sandbox.id()));
            sandbox.destroy()?;
            return Ok(cant_run(&program, source, arguments.sandbox.programs()?.as_ref()));
        }
        code => code?,
    };
    served.end()?;
    let id = sandbox.id().clone();
    // Background processes of the command end with the sandbox. The copy stays.
    sandbox.destroy()?;
    if source.is_none() {
        return Ok(ExitCode::from(code));
    }
    let folder = state::open().adopt_destroyed(&id).ok_or(KeptError::Busy { id })?;
    Ok(ExitCode::from(arguments.settle(folder, code)?))
}

/// Writes down what it takes to keep the changes, whatever ends the command.
fn record(arguments: &ExecArguments, sandbox: &dyn Sandbox, source: &HostPath) -> Result<(), CliError> {
    let folder = state::open().run_folder(sandbox.id());
    let label = RunLabel::of_command(RunKind::Exec, arguments.command.iter().map(OsString::as_os_str));
    let imprint = sandbox.imprint().ok_or(BackendError::Gone)?;
    let record =
        CopyRecord::begin(label, &folder, (source, &state::open().private_folder(sandbox.id()).join(COPY)))
            .of_whole(imprint);
    record.write(&folder).map_err(|source| CliError::read(&folder, source))
}

/// Refuses options that only the native backend supports: they need a sandbox whose stages and folder belong to this process.
fn refuse_what_is_native(arguments: &ExecArguments, chosen: &BackendChoice) -> Result<(), CliError> {
    match arguments.timings {
        true => Err(CliError::NotOfBackend { option: "--timings", backend: chosen.name() }),
        false => Ok(()),
    }
}

/// Runs the program to its end and passes on what it reads and writes. Gives its exit code.
fn relay(arguments: &ExecArguments, sandbox: &dyn Sandbox) -> Result<u8, CliError> {
    let program = Program { argv: arguments.command.clone(), directory: "/workspace".to_owned() };
    let (stdio, relay) = terminal::connect()?;
    let mut execution = sandbox.exec(&program, stdio)?;
    let deadline = arguments.sandbox.timeout().map(|timeout| Instant::now() + timeout);
    let terminal = execution.take_terminal();
    let relayed = relay.until_end(&mut execution, terminal, deadline)?;
    if let Some(limit) = sandbox.ended_by() {
        limits::tell(limit);
    }
    Ok(match relayed {
        RelayResult::Ended(code) => code,
        RelayResult::OutOfTime => {
            crate::output::errln!("belljar: out of time");
            OUT_OF_TIME
        }
    })
}
