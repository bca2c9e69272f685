//! `belljar exec` by another backend than the native one: a sandbox for one command, gone with it.

use super::{ExecArguments, cant_run};
use crate::error::{CliError, OUT_OF_TIME};
use crate::terminal::{self, Relay};
use crate::{limits, state, summary};
use belljar_confine::launcher::Launcher;
use belljar_contract::id::RunId;
use belljar_sandbox::backend::{BackendError, Sandbox, Wanted};
use belljar_sandbox::backends::chosen::{Chosen, Site};
use belljar_sandbox::directory::Directory;
use belljar_sandbox::native::HostUser;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_sandbox::workspace::apply::{ApplyError, apply};
use belljar_sandbox::workspace::changes::ChangeSet;
use belljar_sandbox::workspace::{COPY, diff};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Runs the command.
pub(super) fn run(arguments: &ExecArguments, chosen: &Chosen) -> Result<ExitCode, CliError> {
    refuse_what_is_native(arguments, chosen)?;
    let workspace = arguments.sandbox.workspace()?;
    let mut ways_out = arguments.ways_out(&workspace)?;
    // Before there is a thread.
    let launcher = Arc::new(Launcher::start()?);
    let since = SystemTime::now();
    // Held from before the start: what is read afterwards is what was copied, whatever has come to its name.
    let source = match &workspace {
        WorkspaceChoice::Copy(source) => Some(Directory::open_meant(source)?),
        WorkspaceChoice::Empty | WorkspaceChoice::Direct(_) | WorkspaceChoice::Seen(_) => None,
    };
    let mut wanted = Wanted {
        workspace,
        lent: arguments.sandbox.lent()?,
        env: arguments.sandbox.env(),
        limits: arguments.sandbox.limits(),
        required: arguments.sandbox.required_of(chosen)?,
        hatches: ways_out.hatches(),
        home: BTreeMap::new(),
        programs: arguments.sandbox.programs()?,
    };
    ways_out.furnish(&mut wanted.env, &mut wanted.home)?;
    let site = Site { state: state::open().path().to_owned(), executable: state::own_program()? };
    let mut sandbox = chosen.make(launcher, &site)?.create(wanted)?;
    if arguments.isolation {
        crate::output::errln!("{}", crate::output::json(sandbox.isolation()));
    }
    let sockets = sandbox.take_hatches();
    let served = ways_out.serve(sandbox.id(), &state::open(), sockets)?;
    let code = match relay(arguments, &*sandbox) {
        Err(CliError::Backend(BackendError::NotStarted { program, source })) => {
            return Ok(cant_run(&program, source, arguments.sandbox.programs()?.as_ref()));
        }
        code => code?,
    };
    served.end()?;
    if let Some(source) = source {
        match settle(arguments, &*sandbox, &source, (code == 0, since)) {
            // It has failed anyway, and with that code.
            Err(error) if code != 0 => drop(error.report()),
            settled => settled?,
        }
    }
    sandbox.destroy()?;
    Ok(ExitCode::from(code))
}

/// What only a sandbox can do whose stages and folder are this process's own.
fn refuse_what_is_native(arguments: &ExecArguments, chosen: &Chosen) -> Result<(), CliError> {
    let of_native = [("--keep", arguments.keep), ("--timings", arguments.timings)];
    match of_native.into_iter().find(|(_, is_said)| *is_said) {
        Some((option, _)) => Err(CliError::NotOfBackend { option, backend: chosen.name() }),
        None => Ok(()),
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
        Relay::Ended(code) => code,
        Relay::OutOfTime => {
            crate::output::errln!("belljar: out of time");
            OUT_OF_TIME
        }
    })
}

/// Tells what was changed in a copy, and applies it if that was asked for.
fn settle(
    arguments: &ExecArguments,
    sandbox: &dyn Sandbox,
    source: &Directory,
    (succeeded, since): (bool, SystemTime),
) -> Result<(), CliError> {
    // What the command has left in the background goes only with the sandbox, and the copy goes then, too.
    match sandbox.pause() {
        Err(BackendError::Gone) => {}
        paused => paused?,
    }
    let copied = Directory::open_host(&state::open().private_folder(sandbox.id()).join(COPY))?;
    let imprint = sandbox.imprint().ok_or(BackendError::Gone)?;
    let set = ChangeSet::read_copy(source, &copied, imprint)?;
    if set.is_empty() {
        return Ok(());
    }
    crate::output::err!("{}", summary::changes(&diff::render(&set, source, &copied)?));
    if arguments.apply && succeeded {
        let applied = arguments.trust.with_yes(|trust| Ok(apply(&set, &copied, source, since, trust)?));
        if matches!(applied, Err(CliError::Apply(ApplyError::Handoff { .. }))) {
            // It takes a yes, and so is not lost.
            let kept = keep(sandbox.id())?;
            crate::output::errln!("The changes are kept in {}", crate::output::path(&kept));
        }
        applied?;
        crate::output::errln!("The changes are applied.");
    } else {
        crate::output::errln!("The changes are thrown away; --apply applies them.");
    }
    Ok(())
}

/// Takes a copy out of the folder that goes with its sandbox, in which nothing runs any more.
fn keep(id: &RunId) -> Result<PathBuf, CliError> {
    let state = state::open();
    let mut folder = state.begin_run(HostUser::choose().identity())?;
    let kept = folder.private().join(COPY);
    std::fs::rename(state.private_folder(id).join(COPY), &kept)
        .map_err(|error| CliError::read(&kept, error))?;
    folder.keep()?;
    Ok(kept)
}
