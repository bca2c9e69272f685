//! `belljar job`: a node's jobs, as the orchestrator's hand would have them; of another node, or of this machine's own
//! state without one.

mod artifacts;
mod cancel;
mod embedded;
mod ending;
mod list;
mod logs;
mod show;
mod submit;
mod telling;
mod token;
mod watch;

pub(crate) use artifacts::ArtifactError;

use super::Subcommand;
use crate::client::{Client, ClientToken, NodeAddress};
use crate::error::CliError;
use belljar_contract::id::JobId;
use belljar_trusted::tcp_server::ServerUser;
use embedded::{EmbeddedNode, Purpose};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = AFTER_HELP)]
pub(crate) struct JobArguments {
    #[command(flatten)]
    reach: JobNodeArguments,
    #[command(subcommand)]
    command: Command,
}

/// Which node.
#[derive(Debug, clap::Args)]
pub(super) struct JobNodeArguments {
    /// The node, such as http://127.0.0.1:12090; without one, jobs are run here and kept in this machine's own state
    #[arg(long, global = true, value_name = "URL", env = "BELLJAR_NODE", value_parser = NodeAddress::parse)]
    node: Option<NodeAddress>,
    /// The file with the token that the node takes
    #[arg(long, global = true, value_name = "FILE", env = "BELLJAR_NODE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// The user whose node may be asked on this machine, besides you and root: a name, an id, or `any` for a node in a container
    #[arg(long, global = true, value_name = "USER", env = "BELLJAR_NODE_USER", value_parser = ServerUser::parse)]
    node_user: Option<ServerUser>,
    /// The configuration of what is run here [default: BELLJAR_CONFIG, or config.yaml in the user's or the system's
    /// configuration]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Have a job run: a document, or a command
    Submit(Box<submit::SubmitArguments>),
    /// List jobs, the last accepted first
    List(list::ListArguments),
    /// Show a job, and what came of it
    Show(show::ShowArguments),
    /// Tell what happens to a job until it is over
    Watch(watch::WatchArguments),
    /// Have a job stopped
    Cancel(cancel::CancelArguments),
    /// Print what a job has written
    Logs(logs::LogsArguments),
    /// List the files that a job has left, or fetch them
    Artifacts(artifacts::ArtifactsArguments),
    /// Have a token by which an agent elsewhere calls a job's tools, at `/mcp` of the node that --node names
    Token(token::TokenArguments),
}

const AFTER_HELP: &str = "\
Without --node a node is started in this very process, on the state of the node that `belljar node` would be, and stopped \
when the command is over. submit stays until the job is.

submit --wait and watch end as the job does: 0 completed, 1 failed, canceled or lost with its node, 2 malformed, 124 out of \
time.";

impl Subcommand for JobArguments {
    const NAME: &'static str = "job";
    const ABOUT: &'static str = "Jobs of a node: submit them, watch them, fetch what they leave";

    fn run(&self) -> Result<ExitCode, CliError> {
        let Self { reach, command } = self;
        match command {
            Command::Submit(arguments) => arguments.run(reach),
            Command::List(arguments) => reach.read(|client| arguments.run(client)),
            Command::Show(arguments) => reach.read(|client| arguments.run(client)),
            Command::Watch(arguments) => reach.read(|client| arguments.run(client, reach.is_remote())),
            Command::Cancel(arguments) => reach.read(|client| arguments.run(client)),
            Command::Logs(arguments) => reach.read(|client| arguments.run(client, reach.is_remote())),
            Command::Artifacts(arguments) => reach.read(|client| arguments.run(client)),
            // A node in this process would be gone before anybody could show it.
            Command::Token(_) if !reach.is_remote() => {
                Err(CliError::usage("a token is shown to a node that stays: --node URL is needed".to_owned()))
            }
            Command::Token(arguments) => reach.read(|client| arguments.run(client)),
        }
    }
}

// === impl Reach ===

impl JobNodeArguments {
    fn is_remote(&self) -> bool {
        self.node.is_some()
    }

    /// Does something that begins no job.
    pub(super) fn read(
        &self,
        act: impl FnOnce(&Client) -> Result<ExitCode, CliError>,
    ) -> Result<ExitCode, CliError> {
        self.with(Purpose::Reading, act)
    }

    /// Does something with the node, or with one in this process that is stopped behind it.
    fn with(
        &self,
        purpose: Purpose,
        act: impl FnOnce(&Client) -> Result<ExitCode, CliError>,
    ) -> Result<ExitCode, CliError> {
        let Some(node) = &self.node else {
            let embedded = EmbeddedNode::start(self.config.as_deref(), purpose)?;
            let done = act(embedded.client());
            embedded.stop();
            return done;
        };
        let Some(token_file) = &self.token_file else {
            let what = "--node also needs --token-file FILE, or BELLJAR_NODE_TOKEN_FILE: the node's token";
            return Err(CliError::usage(what.to_owned()));
        };
        let user = self.node_user.unwrap_or_default();
        act(&Client::new(node.clone(), ClientToken::read(token_file)?, user))
    }
}

/// Parses an id as the user types it.
fn parse_id(text: &str) -> Result<JobId, String> {
    JobId::parse(text).map_err(|error| error.to_string())
}
