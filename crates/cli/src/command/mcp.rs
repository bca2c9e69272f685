//! `belljar mcp`: sealed sandboxes as tools, for the MCP clients of whoever owns this machine.
//!
//! ```text
//! client ─ stdio ─────────────► Gateway ─► tool ─► Desk ─► session ─► its keeper, its sandbox
//!        ─ HTTP, bearer ──────►    │                └─ those that were opened here, and those that were named
//!                                  └─► audit
//! ```

mod desk;
mod execution;
mod failures;
mod inside;
mod output;
mod registration;
mod serving;
mod token_file;
mod tools;

pub(crate) use token_file::TokenFileError;
pub(crate) use tools::ToolsError;

use super::Subcommand;
use super::session::{Opening, policy_file};
use crate::access::{self, AccessArguments};
use crate::backend::BackendArguments;
use crate::error::CliError;
use crate::handoff::TrustArguments;
use crate::lending::{AllowanceArguments, directory, parse_duration};
use crate::programs::ProgramArguments;
use crate::state;
use crate::web::WebArguments;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session;
use desk::{Desk, Offer, Root};
use registration::ClientKind;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = AFTER_HELP)]
pub(crate) struct McpArguments {
    /// A directory that sessions may begin with a copy of; of several the first is meant when a client names none. Without any,
    /// sessions begin empty
    #[arg(long, value_name = "DIR")]
    workspace: Vec<PathBuf>,
    /// Print how a client is told of this server, with the options that are given here, and serve nothing
    #[arg(long, value_name = "CLIENT", value_enum)]
    print_config: Option<ClientKind>,
    /// How much it tells on standard error: off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: LevelFilter,
    #[command(flatten)]
    allowance: AllowanceArguments,
    #[command(flatten)]
    programs: ProgramArguments,
    #[command(flatten)]
    backend: BackendArguments,
    #[command(flatten)]
    web: WebArguments,
    #[command(flatten)]
    access: AccessArguments,
    /// End a session when nothing has run in it for this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h", help_heading = HEADING)]
    idle: Duration,
    /// A session that was made before, and that clients may use, too: its name, or the beginning of its id
    #[arg(long, value_name = "SESSION", help_heading = HEADING)]
    session: Vec<String>,
    /// Leave the sessions that clients have opened when the server ends, instead of ending them
    #[arg(long, help_heading = HEADING)]
    keep: bool,
    /// Let clients write what a session changed into the directory that it is a copy of
    #[arg(long, help_heading = HEADING)]
    allow_approve: bool,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    http: HttpArguments,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP")]
struct HttpArguments {
    /// Serve by HTTP at this address, below /mcp, instead of by standard input and output
    #[arg(long = "http", value_name = "ADDRESS", requires = "token_file")]
    address: Option<SocketAddr>,
    /// The file with the token that clients show; one with a new token is made if there is none
    #[arg(long, value_name = "FILE", requires = "address")]
    token_file: Option<PathBuf>,
    /// Another name by which clients reach the address
    #[arg(long = "host", value_name = "NAME", requires = "address")]
    hosts: Vec<String>,
    /// Serve at an address that other machines reach, without encryption
    #[arg(long, requires = "address")]
    allow_remote: bool,
}

const HEADING: &str = "Sessions";

const AFTER_HELP: &str = "\
Registering it takes one line:
  claude mcp add belljar -- belljar mcp --workspace \"$PWD\"
  codex mcp add belljar -- belljar mcp --workspace \"$PWD\"

A client names no path of this machine but those of --workspace. Everything else is in a sandbox. \
What a session changed reaches its directory by `belljar session commit`, typed by a person, or by the tool `approve` \
if --allow-approve is given; what runs something or is trusted where it goes takes --trust besides, which no client can say.";

impl Subcommand for McpArguments {
    const NAME: &'static str = "mcp";
    const ABOUT: &'static str = "Serve sealed sandboxes as tools to an MCP client";

    fn run(&self) -> Result<ExitCode, CliError> {
        if let Some(client) = self.print_config {
            registration::print(client)?;
            return Ok(ExitCode::SUCCESS);
        }
        self.begin_log();
        let desk = Desk::new(self.offer()?, self.named()?);
        serving::run(&self.http, self.access.identity(), &desk)
    }
}

/// Tells whoever started the server something, if they listen.
fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "belljar: {text}");
}

// === impl McpArguments ===

impl McpArguments {
    /// What clients may have.
    fn offer(&self) -> Result<Offer, CliError> {
        let backend = self.backend.chosen()?;
        let root = |said: &PathBuf| {
            let path = directory(said)?;
            // A policy that a client could change by what it commits is told of now, and not when it opens something.
            policy_file(&self.web, &WorkspaceChoice::Copy(path.clone()))?;
            Ok::<_, CliError>(Root { said: said.clone(), real: path.as_path().to_owned() })
        };
        let roots = self.workspace.iter().map(root).collect::<Result<Vec<_>, _>>()?;
        let (lent, egress) = (self.allowance.lent()?, policy_file(&self.web, &WorkspaceChoice::Empty)?);
        let asked = (None, !lent.is_empty(), egress.as_deref());
        // Whatever directories there are: who has an empty workspace is refused those when they are asked for.
        let compiled = |identity| access::compiled(&identity, asked, &WorkspaceChoice::Empty);
        let access = self.access.identity().map(compiled).transpose()?;
        Ok(Offer {
            lent,
            env: self.allowance.env(),
            limits: self.allowance.limits(),
            required: self.allowance.required_of(&backend)?,
            idle_limit: self.idle,
            lifetime_limit: self.allowance.timeout(),
            egress,
            programs: self.programs.listed_with(&inside::PROGRAMS, access.as_ref())?,
            access,
            approves: self.allow_approve.then(|| self.trust.trust()),
            keeps: self.keep,
            backend,
            roots,
        })
    }

    /// The ids of the sessions that were named.
    fn named(&self) -> Result<Vec<String>, CliError> {
        let state = state::open();
        let id = |name: &String| Ok(session::find(&state, name)?.session().id.clone());
        self.session.iter().map(id).collect()
    }

    fn begin_log(&self) {
        // Standard output is the client's. Should nobody read standard error, the server goes on all the same.
        let log = tracing_subscriber::fmt().with_max_level(self.log_level).log_internal_errors(false);
        log.with_writer(std::io::stderr).with_ansi(false).init();
    }
}

// === impl Offer ===

impl Offer {
    /// A session that works on that.
    fn opening(&self, workspace: WorkspaceChoice) -> Opening {
        Opening {
            backend: self.backend.clone(),
            workspace,
            lent: self.lent.clone(),
            env: self.env.clone(),
            limits: self.limits,
            required: self.required.clone(),
            name: None,
            egress: self.egress.clone(),
            access: self.access.clone(),
            programs: self.programs.clone(),
            idle_limit: self.idle_limit,
            lifetime_limit: self.lifetime_limit,
        }
    }
}
