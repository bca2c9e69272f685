//! `belljar job`: a node's jobs, as the orchestrator's hand would have them; of another node, or of this machine's own
//! state without one.

mod artifacts;
mod cancel;
mod embedded;
mod event_text;
mod job_exit;
mod list;
mod logs;
mod show;
mod submit;
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
    /// File with the node's token
    #[arg(long, global = true, value_name = "FILE", env = "BELLJAR_NODE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// User that may run the node on this machine, besides you and root: a name, an id, or `any` for a node in a container
    #[arg(long, global = true, value_name = "USER", env = "BELLJAR_NODE_USER", value_parser = ServerUser::parse)]
    node_user: Option<ServerUser>,
    /// The configuration of what is run here [default: BELLJAR_CONFIG, or config.yaml in the user's or the system's
    /// configuration]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Submit a job: a document, or a command
    Submit(Box<submit::SubmitArguments>),
    /// List jobs, the most recently accepted first
    List(list::ListArguments),
    /// Show a job and its outcome
    Show(show::ShowArguments),
    /// Print a job's events until it ends
    Watch(watch::WatchArguments),
    /// Cancel a job
    Cancel(cancel::CancelArguments),
    /// Print a job's output
    Logs(logs::LogsArguments),
    /// List a job's artifacts, or fetch them
    Artifacts(artifacts::ArtifactsArguments),
    /// Issue a token with which an agent elsewhere can call a job's tools, at `/mcp` of the node that --node names
    Token(token::TokenArguments),
}

const AFTER_HELP: &str = "\
Without --node a node is started in this very process, on the state of the node that `belljar node` would be, and stopped \
when the command is over. submit stays until the job is.

submit --wait and watch end as the job does: 0 completed, 1 failed, canceled or lost with its node, 2 malformed, 124 out of \
time.";

impl Subcommand for JobArguments {
    const NAME: &'static str = "job";
    const ABOUT: &'static str = "Submit jobs to a node, watch them, fetch their artifacts";

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
            Command::Token(_) if !reach.is_remote() => Err(CliError::usage(
                "a token is only valid at a node that keeps running: --node URL is needed".to_owned(),
            )),
            Command::Token(arguments) => reach.read(|client| arguments.run(client)),
        }
    }
}

// === impl JobNodeArguments ===

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
