//! `belljar session`: sandboxes that live on over many commands.

mod checkpoint;

use super::{Subcommand, exec};
use crate::backend::BackendArguments;
use crate::error::CliError;
use crate::lending::{SandboxArguments, parse_duration};
use crate::terminal::{self, Relay};
use crate::web::{self, WebArguments};
use crate::{limits, state, summary};
use belljar_confine::plan::Stdio;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Required;
use belljar_node::inspection::Inspection;
use belljar_sandbox::backend::{BackendError, Wanted, with_causes};
use belljar_sandbox::backends::chosen::{Chosen, Site};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::{
    self, Client, Description, Forking, KeeperError, Keeping, Session, SessionError, Streams,
};
use belljar_sandbox::spec::Lent;
use belljar_sandbox::state::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The path that leads to this very program, whatever has become of its file.
const OWN_PROGRAM: &str = "/proc/self/exe";

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct SessionArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a sandbox that lives on, and print its id
    Create(Box<CreateArguments>),
    /// Run a command in a session
    Exec(ExecArguments),
    /// Open a shell in a session
    Attach(AttachArguments),
    /// List the sessions that live
    List(ListArguments),
    /// End sessions, with everything in them
    End(EndArguments),
    /// Show what a session changed in its copy of a directory
    Diff(checkpoint::DiffArguments),
    /// Write what a session changed into the directory that it is a copy of
    Commit(checkpoint::CommitArguments),
    /// Undo what a session changed in its copy
    Discard(checkpoint::DiscardArguments),
    /// Make a session whose workspace begins as another's is now
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
    /// Print the sessions as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct EndArguments {
    /// The sessions' names, or the beginnings of their ids
    #[arg(required = true)]
    sessions: Vec<String>,
}

/// What a keeper is told when it begins.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    site: Site,
    backend: Chosen,
    workspace: WorkspaceChoice,
    lent: Vec<Lent>,
    env: BTreeMap<String, String>,
    limits: Limits,
    required: Required,
    session: Session,
}

/// A session that is wanted.
pub(crate) struct Opening {
    /// What makes its sandbox.
    pub(crate) backend: Chosen,
    /// What it works on.
    pub(crate) workspace: WorkspaceChoice,
    /// What it is lent besides.
    pub(crate) lent: Vec<Lent>,
    /// Variables to set inside.
    pub(crate) env: BTreeMap<String, String>,
    /// What it may use.
    pub(crate) limits: Limits,
    /// The layers without which there shall be none.
    pub(crate) required: Required,
    /// What its owner calls it.
    pub(crate) name: Option<String>,
    /// The file with the policy by which it reaches the web, if it may reach any ([`policy_file`]).
    pub(crate) egress: Option<PathBuf>,
    /// How long nothing may run before it ends.
    pub(crate) idle_limit: Duration,
    /// How long it may live.
    pub(crate) lifetime_limit: Option<Duration>,
}

/// What a keeper may be told.
#[derive(Debug, Serialize, Deserialize)]
enum Errand {
    Create(Box<Order>),
    Fork { state: PathBuf, origin: String, name: Option<String> },
}

/// What a keeper says when it has begun, or why it has not.
type Word = Result<Session, Failure>;

/// Why there is no session.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    why: String,
    /// Whether that is because there is no such backend here.
    lacks_backend: bool,
}

impl Subcommand for SessionArguments {
    const NAME: &'static str = "session";
    const ABOUT: &'static str = "Sandboxes that live on over many commands";

    fn run(&self) -> Result<ExitCode, CliError> {
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
            Command::List(arguments) => list(arguments.json),
            Command::Diff(arguments) => checkpoint::diff(arguments),
            Command::Commit(arguments) => checkpoint::commit(arguments),
            Command::Discard(arguments) => checkpoint::discard(arguments),
            Command::Fork(arguments) => checkpoint::fork(arguments),
            Command::End(arguments) => {
                for name in &arguments.sessions {
                    session::find(&state::open(), name)?.end()?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn create(arguments: &CreateArguments) -> Result<ExitCode, CliError> {
    let workspace = arguments.sandbox.workspace()?;
    must_be_free(arguments.name.as_deref())?;
    let backend = arguments.backend.chosen()?;
    let opening = Opening {
        lent: arguments.sandbox.lent()?,
        env: arguments.sandbox.env(),
        limits: arguments.sandbox.limits(),
        required: arguments.sandbox.required_of(&backend)?,
        name: arguments.name.clone(),
        egress: policy_file(&arguments.web, &workspace)?,
        idle_limit: arguments.idle,
        lifetime_limit: arguments.sandbox.timeout(),
        backend,
        workspace,
    };
    tell(&open(opening)?, arguments.json);
    Ok(ExitCode::SUCCESS)
}

/// The file with the policy for a session that works on that; checked.
pub(crate) fn policy_file(
    web: &WebArguments,
    workspace: &WorkspaceChoice,
) -> Result<Option<PathBuf>, CliError> {
    // What is committed while it lives would count at once.
    let written = match workspace {
        WorkspaceChoice::Copy(source) => WorkspaceChoice::Direct(source.clone()),
        other => other.clone(),
    };
    web.file(&written)
}

/// Makes a session, with a keeper of its own.
pub(crate) fn open(opening: Opening) -> Result<Session, CliError> {
    // A session without an end of its own would outlive whoever forgot it.
    const LONGEST: Duration = Duration::from_secs(24 * 3600);
    let Opening { backend, workspace, lent, env, limits, required, .. } = opening;
    let session = Session {
        id: String::new(),
        name: opening.name,
        backend: backend.name(),
        created_at: Timestamp::now(),
        workspace: shown(&workspace),
        forked_from: None,
        egress: opening.egress,
        idle_limit: opening.idle_limit,
        lifetime_limit: opening.lifetime_limit.unwrap_or(LONGEST),
    };
    let site = Site { state: state::open().path().to_owned(), executable: state::own_program()? };
    begin(&Errand::Create(Box::new(Order { site, backend, workspace, lent, env, limits, required, session })))
}

fn must_be_free(name: Option<&str>) -> Result<(), CliError> {
    match name {
        Some(name) if session::find(&state::open(), name).is_ok() => {
            Err(no_session(format!("there is a session {name} already")))
        }
        _ => Ok(()),
    }
}

/// Has a keeper begin, and waits for its word.
fn begin(errand: &Errand) -> Result<Session, CliError> {
    let mut keeper = std::process::Command::new(OWN_PROGRAM);
    keeper.arg0(session::KEEPER).current_dir("/").env_clear();
    keeper.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    keeper.stderr(std::process::Stdio::null());
    let failed = |error: &dyn Error| no_session(with_causes(error));
    let mut keeper = keeper.spawn().map_err(|error| failed(&error))?;
    let mut word = String::new();
    if let (Some(mut to), Some(from)) = (keeper.stdin.take(), keeper.stdout.take()) {
        let errand = serde_json::to_vec(errand).map_err(|error| failed(&error))?;
        to.write_all(&errand).map_err(|error| failed(&error))?;
        drop(to);
        BufReader::new(from).read_line(&mut word).map_err(|error| failed(&error))?;
    }
    let word: Word = serde_json::from_str(&word).map_err(|_| no_session("its keeper ended".to_owned()))?;
    word.map_err(|Failure { why, lacks_backend }| CliError::NoSession { why, lacks_backend })
}

/// Tells which session has begun.
fn tell(session: &Session, as_json: bool) {
    if as_json {
        anstream::println!("{}", serde_json::to_string_pretty(session).unwrap_or_default());
    } else {
        anstream::println!("{}", session.id);
    }
}

fn no_session(why: String) -> CliError {
    CliError::NoSession { why, lacks_backend: false }
}

fn shown(workspace: &WorkspaceChoice) -> String {
    match workspace {
        WorkspaceChoice::Empty => "empty".to_owned(),
        WorkspaceChoice::Direct(path) => path.as_path().display().to_string(),
        WorkspaceChoice::Copy(path) => format!("copy of {}", path.as_path().display()),
    }
}

/// Is a keeper: takes its order from standard input, and says on standard output when it has begun.
pub(crate) fn keep() -> ExitCode {
    // Whoever began the session may log out.
    let _ = rustix::process::setsid();
    let begun = |session: &Session| say(&Ok(session.clone()));
    let word = match take_errand() {
        Ok(Errand::Create(order)) => {
            let state = State::at(&order.site.state);
            keeping(*order).and_then(|(keeping, inspection)| {
                let serve = |session: &Session, sockets| serve(session, inspection.as_ref(), &state, sockets);
                session::keep(keeping, &serve, begun)
            })
        }
        Ok(Errand::Fork { state, origin, name }) => {
            let state = State::at(state);
            // Its origin's authority is its origin's alone.
            let own = OnceCell::new();
            let adapt = |session: &Session, wanted: &mut Wanted| {
                if let Some(inspection) = inspection_of(session)? {
                    inspection.furnish_anew(&mut wanted.env, &mut wanted.home);
                    let _ = own.set(inspection);
                }
                Ok(())
            };
            let serve = |session: &Session, sockets| serve(session, own.get(), &state, sockets);
            session::keep_fork(Forking { state: state.clone(), origin, name }, (&adapt, &serve), begun)
        }
        Err(error) => {
            say(&Err(Failure { why: error.to_string(), lacks_backend: false }));
            return ExitCode::FAILURE;
        }
    };
    match word {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let lacks_backend = matches!(error, KeeperError::Backend(BackendError::Unavailable { .. }));
            say(&Err(Failure { why: with_causes(&error), lacks_backend }));
            ExitCode::FAILURE
        }
    }
}

fn take_errand() -> std::io::Result<Errand> {
    let mut errand = Vec::new();
    std::io::stdin().read_to_end(&mut errand)?;
    Ok(serde_json::from_slice(&errand)?)
}

/// Serves the web to a session, by the policy that it was given.
fn serve(
    session: &Session,
    inspection: Option<&Inspection>,
    state: &State,
    sockets: Vec<OwnedFd>,
) -> Result<Box<dyn Send>, Box<dyn Error + Send + Sync>> {
    let path = session.egress.as_deref().ok_or("it has hatches, and nothing that is served by them")?;
    let run_id = RunId::parse(&session.id)?;
    Ok(Box::new(Reached(Some(web::Served::begin(
        (web::opened(path)?, inspection),
        &run_id,
        state,
        sockets,
    )?))))
}

/// What is served to a session. What it has done is recorded when this is dropped.
struct Reached(Option<web::Served>);

impl Drop for Reached {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.0.take().map(web::Served::finish);
    }
}

/// What it takes to look into what a session reaches, if anything is to be looked into.
fn inspection_of(session: &Session) -> Result<Option<Inspection>, CliError> {
    let policy = session.egress.as_deref().map(web::opened).transpose()?;
    Ok(policy.map(|policy| Inspection::of_live(policy.live())).transpose()?.flatten())
}

/// What is to be kept, and what it takes to look into what it reaches.
fn keeping(order: Order) -> Result<(Keeping, Option<Inspection>), KeeperError> {
    let cant = |error: CliError| KeeperError::Serve(error.into());
    let Order { site, backend, workspace, lent, mut env, limits, required, session } = order;
    let (hatches, mut home) = (session.egress.iter().map(|_| Hatch::Web).collect(), BTreeMap::new());
    let inspection = inspection_of(&session).map_err(cant)?;
    inspection.iter().for_each(|inspection| inspection.furnish(&mut env, &mut home));
    let wanted = Wanted { workspace, lent, env, limits, required, hatches, home };
    Ok((Keeping { site, backend, wanted, session }, inspection))
}

/// The one word; then standard output is closed, for whoever waits to go on.
fn say(word: &Word) {
    let word = serde_json::to_string(word).unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "{word}");
    if let Ok(nowhere) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
    }
}

/// Runs a command in a session, joined with this process's own streams or terminal.
fn run(
    client: &Client,
    command: &[OsString],
    directory: &str,
    timeout: Option<Duration>,
) -> Result<ExitCode, CliError> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let (stdio, relay) = terminal::connect()?;
    let streams = match stdio {
        Stdio::Descriptors(descriptors) => Streams::Descriptors(descriptors),
        Stdio::Terminal => Streams::Terminal,
    };
    let mut execution = match client.exec(command, directory, streams) {
        Ok(execution) => execution,
        Err(SessionError::NotStarted { program, source }) => return Ok(exec::cant_run(&program, source)),
        Err(error) => return Err(error.into()),
    };
    let terminal = execution.terminal.take();
    let relayed = relay.until_end(&mut execution, terminal, deadline)?;
    if let Some(limit) = execution.ended_by() {
        limits::tell(limit);
    }
    Ok(match relayed {
        Relay::Ended(code) => ExitCode::from(code),
        Relay::OutOfTime => {
            anstream::eprintln!("belljar: out of time");
            ExitCode::from(crate::error::OUT_OF_TIME)
        }
    })
}

fn list(as_json: bool) -> Result<ExitCode, CliError> {
    // One that ends at this very moment is none any more.
    let sessions: Vec<Description> =
        session::list(&state::open()).iter().filter_map(|client| client.describe().ok()).collect();
    if as_json {
        let sessions = serde_json::to_string_pretty(&sessions).unwrap_or_default();
        anstream::println!("{sessions}");
    } else {
        anstream::print!("{}", summary::sessions(&sessions));
    }
    checkpoint::tell_interrupted();
    Ok(ExitCode::SUCCESS)
}
