//! `belljar session`: sandboxes that live on over many commands.

mod checkpoint;
mod ending;
mod keeper;
mod opening;
mod own_runner;

pub(crate) use checkpoint::tell_interrupted;
pub(crate) use keeper::keep;
pub(crate) use opening::{NewSession, open, policy_file};
pub(crate) use own_runner::own_runner;

use super::{Subcommand, exec};
use crate::access::AccessArguments;
use crate::backend::{BackendArguments, SandboxSettings};
use crate::error::CliError;
use crate::sandbox_args::{SandboxArguments, parse_duration};
use crate::terminal::{self, RelayResult};
use crate::web::WebArguments;
use crate::{limits, state, summary};
use belljar_confine::plan::Stdio;
use belljar_sandbox::session::{
    self, ProgramStreams, Session, SessionClient, SessionDescription, SessionError,
};
use opening::must_be_free;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct SessionArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a sandbox that persists across commands, and print its id
    Create(Box<CreateArguments>),
    /// Run a command in a session
    Exec(ExecArguments),
    /// Open a shell in a session
    Attach(AttachArguments),
    /// List the sessions that live
    List(ListArguments),
    /// End sessions. One with uncommitted changes goes on, unless they are kept or discarded
    End(EndArguments),
    /// Show what a session changed in its copy of a directory
    Diff(checkpoint::DiffArguments),
    /// Write what a session changed into the directory that it is a copy of
    Commit(checkpoint::CommitArguments),
    /// Undo what a session changed in its copy
    Discard(checkpoint::DiscardArguments),
    /// Create a session that starts with the current workspace of another one
    Fork(checkpoint::ForkArguments),
}

#[derive(Debug, clap::Args)]
struct CreateArguments {
    #[command(flatten)]
    sandbox: SandboxArguments,
    #[command(flatten)]
    backend: BackendArguments,
    #[command(flatten)]
    web: WebArguments,
    #[command(flatten)]
    access: AccessArguments,
    /// A name to call it by, instead of its id
    #[arg(long)]
    name: Option<String>,
    /// End it when nothing has run in it for this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    idle: Duration,
    /// Print the session as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ExecArguments {
    /// The session's name, or the beginning of its id
    session: String,
    /// Where the command starts
    #[arg(long, value_name = "DIR", default_value = "/workspace")]
    directory: String,
    /// Kill the command after this long, such as 90, 90s, 5m, 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
struct AttachArguments {
    /// The session's name, or the beginning of its id
    session: String,
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    /// Also list sessions that have ended and whose changes are kept
    #[arg(long)]
    all: bool,
    /// Print the sessions as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct EndArguments {
    /// The sessions' names, or the beginnings of their ids
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Keep uncommitted changes for `belljar changes`
    #[arg(long, conflicts_with = "discard")]
    keep: bool,
    /// Delete uncommitted changes
    #[arg(long)]
    discard: bool,
}

impl Subcommand for SessionArguments {
    const NAME: &'static str = "session";
    const ABOUT: &'static str = "Manage sandboxes that persist across commands";

    fn run(&self) -> Result<ExitCode, CliError> {
        if matches!(self.command, Command::Diff(_) | Command::Commit(_)) {
            crate::trusted_files::register_usual();
        }
        match &self.command {
            Command::Create(arguments) => create(arguments),
            Command::Exec(arguments) => {
                let client = session::find(&state::open(), &arguments.session)?;
                run(&client, &arguments.command, &arguments.directory, arguments.timeout)
            }
            Command::Attach(arguments) => {
                let client = session::find(&state::open(), &arguments.session)?;
                run(&client, &["/bin/sh".into(), "-i".into()], "/workspace", None)
            }
            Command::List(arguments) => list(arguments),
            Command::Diff(arguments) => checkpoint::diff(arguments),
            Command::Commit(arguments) => checkpoint::commit(arguments),
            Command::Discard(arguments) => checkpoint::discard(arguments),
            Command::Fork(arguments) => checkpoint::fork(arguments),
            Command::End(arguments) => ending::end(arguments),
        }
    }
}

fn create(arguments: &CreateArguments) -> Result<ExitCode, CliError> {
    let workspace = arguments.sandbox.workspace()?;
    must_be_free(arguments.name.as_deref())?;
    let (lent, egress) = (arguments.sandbox.lent()?, policy_file(&arguments.web, &workspace)?);
    let asked = (None, !lent.is_empty(), egress.as_deref());
    let identity = arguments.access.identity();
    let access =
        identity.map(|identity| crate::access::compiled(&identity, asked, &workspace)).transpose()?;
    let programs = arguments.sandbox.programs_for(access.as_ref())?;
    let backend = arguments.backend.for_commands(programs.as_ref())?;
    let quarter = SandboxSettings {
        limits: arguments.sandbox.limits(&backend)?,
        required: arguments.sandbox.required_of(&backend)?,
        ..SandboxSettings::of(backend)
    };
    let opening = NewSession {
        quarters: vec![quarter],
        divisions: Vec::new(),
        lent,
        env: arguments.sandbox.env(),
        name: arguments.name.clone(),
        egress,
        programs,
        access,
        idle_limit: arguments.idle,
        lifetime_limit: arguments.sandbox.timeout(),
        workspace,
    };
    tell(&open(opening)?, arguments.json);
    Ok(ExitCode::SUCCESS)
}

/// Tells which session has begun.
fn tell(session: &Session, as_json: bool) {
    if as_json {
        crate::output::outln!("{}", crate::output::json(session));
    } else {
        crate::output::outln!("{}", session.id);
    }
}

/// Runs a command in a session, joined with this process's own streams or terminal.
fn run(
    client: &SessionClient,
    command: &[OsString],
    directory: &str,
    timeout: Option<Duration>,
) -> Result<ExitCode, CliError> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let (stdio, relay) = terminal::connect()?;
    let streams = match stdio {
        Stdio::Descriptors(descriptors) => ProgramStreams::Descriptors(descriptors),
        Stdio::Terminal => ProgramStreams::Terminal,
    };
    let mut execution = match client.exec(command, directory, streams, deadline) {
        Ok(execution) => execution,
        Err(SessionError::NotStarted { program, source }) => {
            return Ok(exec::cant_run(&program, source, client.session().programs.as_ref()));
        }
        Err(SessionError::OutOfTime) => return Ok(out_of_time()),
        Err(error) => return Err(error.into()),
    };
    let terminal = execution.terminal.take();
    let relayed = relay.until_end(&mut execution, terminal, deadline)?;
    if let Some(limit) = execution.ended_by() {
        limits::tell(limit);
    }
    Ok(match relayed {
        RelayResult::Ended(code) => ExitCode::from(code),
        RelayResult::OutOfTime => out_of_time(),
    })
}

fn out_of_time() -> ExitCode {
    crate::output::errln!("belljar: out of time");
    ExitCode::from(crate::error::OUT_OF_TIME)
}

fn list(arguments: &ListArguments) -> Result<ExitCode, CliError> {
    let state = state::open();
    // One that ends at this very moment is none any more.
    let sessions: Vec<SessionDescription> = session::describe_all(&session::list(&state));
    let ended = if arguments.all { ending::ended(&state) } else { Vec::new() };
    if arguments.all {
        crate::kept::tell_stranded(&crate::kept::stranded(&state));
    }
    match (arguments.json, arguments.all) {
        (true, true) => super::printing::print_json(&ending::all(&sessions, &ended))?,
        (true, false) => super::printing::print_json(&sessions)?,
        (false, _) => crate::output::out!("{}{}", summary::sessions(&sessions), ending::table(&ended)),
    }
    tell_interrupted();
    Ok(ExitCode::SUCCESS)
}
