//! `belljar mcp`: sealed sandboxes as tools, for the MCP clients of this machine's owner.
//!
//! ```text
//! client ─ stdio ─────────────► Gateway ─► tool ─► Desk ─► session ─► its keeper, its sandbox
//!        ─ HTTP, bearer ──────►    │                └─ those that were opened here, and those that were named
//!                                  └─► audit
//! ```

mod execution;
mod failures;
mod git_workspace;
mod log_shipping;
mod mcp_sessions;
mod offering;
mod output;
mod registration;
mod scope;
mod serving;
mod session_requests;
mod session_workbench;
mod token_file;
mod tools;
mod tree_transfer;
mod web;

pub(crate) use offering::{SessionOfferArguments, ToolService};
pub(crate) use serving::{caller, end, follow_earned, gateway, stop_when_asked};
pub(crate) use token_file::TokenFileError;
pub(crate) use tools::{ToolSet, ToolsError};

use super::Subcommand;
use super::session::NewSession;
use crate::error::CliError;
use belljar_policy::access::compiled::SandboxAccess;
use belljar_sandbox::run::WorkspaceChoice;
use mcp_sessions::SessionOffer;
use registration::ClientKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing::level_filters::LevelFilter;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = AFTER_HELP)]
pub(crate) struct McpArguments {
    #[command(flatten)]
    offer: SessionOfferArguments,
    /// Which tools are served
    #[arg(long, value_name = "SET", value_enum, default_value = "sessions")]
    tools: ToolSet,
    /// Print the client configuration for this server with the given options, and exit
    #[arg(long, value_name = "CLIENT", value_enum)]
    print_config: Option<ClientKind>,
    /// Log level on standard error: off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: LevelFilter,
    #[command(flatten)]
    http: HttpArguments,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP")]
struct HttpArguments {
    /// Serve by HTTP at this address, below /mcp, instead of by standard input and output
    #[arg(long = "http", value_name = "ADDRESS", requires = "token_file")]
    address: Option<SocketAddr>,
    /// File with the token that clients must present; it is created with a new token if it doesn't exist
    #[arg(long, value_name = "FILE", requires = "address")]
    token_file: Option<PathBuf>,
    /// Another name by which clients reach the address
    #[arg(long = "host", value_name = "NAME", requires = "address")]
    hosts: Vec<String>,
    /// Serve at an address that other machines reach, without encryption
    #[arg(long, requires = "address")]
    allow_remote: bool,
}

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
        serving::run(&self.http, &self.offer.offered(self.tools)?)
    }
}

/// Prints a message to the operator on standard error. Failures are ignored.
fn tell(text: &str) {
    crate::output::tell(&format!("belljar: {text}\n"));
}

// === impl McpArguments ===

impl McpArguments {
    fn begin_log(&self) {
        // Standard output belongs to the client. The server keeps running if standard error has no reader.
        let log = tracing_subscriber::fmt().with_max_level(self.log_level).log_internal_errors(false);
        log.with_writer(crate::output::log).with_ansi(false).init();
    }
}

// === impl SessionOffer ===

impl SessionOffer {
    /// Returns the settings for opening a session on this workspace.
    fn opening(
        &self,
        workspace: WorkspaceChoice,
        access: Option<SandboxAccess>,
    ) -> Result<NewSession, CliError> {
        let programs = self.programs.listed_with(self.own_programs, access.as_ref())?;
        // An agent may have come to a level with a list since this began, and was told of nothing then.
        let isolation = access.as_ref().map(|access| access.isolation);
        let holding = self.quarters.holding(programs.as_ref(), isolation)?;
        holding.notice().iter().for_each(|notice| tell(notice));
        let (quarters, divisions) = holding.all();
        Ok(NewSession {
            quarters,
            divisions,
            workspace,
            lent: self.lent.clone(),
            env: self.correlation.env().into_iter().chain(self.env.clone()).collect(),
            name: None,
            egress: self.egress.clone(),
            access,
            programs,
            idle_limit: self.idle_limit,
            lifetime_limit: self.lifetime_limit,
        })
    }
}
