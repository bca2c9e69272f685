//! `belljar approval`: what agents' calls wait for, and a person's answers; of a node, or of this machine.

mod decide;
mod list;
mod reviewing;
mod show;
mod source;

use super::Subcommand;
use crate::client::NodeAddress;
use crate::error::CliError;
use belljar_contract::approval::{is_digest, is_reason};
use belljar_contract::id::ApprovalId;
use belljar_trusted::tcp_server::ServerUser;
use source::ApprovalSource;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = AFTER_HELP)]
pub(crate) struct ApprovalArguments {
    #[command(flatten)]
    reach: ApprovalNodeArguments,
    #[command(subcommand)]
    command: Command,
}

/// The node whose approvals are meant, or this machine.
#[derive(Debug, clap::Args)]
struct ApprovalNodeArguments {
    /// The node, such as http://127.0.0.1:12090; without one, those of this machine
    #[arg(long, global = true, value_name = "URL", env = "BELLJAR_NODE", value_parser = NodeAddress::parse)]
    node: Option<NodeAddress>,
    /// File with the node's token
    #[arg(long, global = true, value_name = "FILE", env = "BELLJAR_NODE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// User that may run the node on this machine, besides you and root: a name, an id, or `any` for a node in a container
    #[arg(long, global = true, value_name = "USER", env = "BELLJAR_NODE_USER", value_parser = ServerUser::parse)]
    node_user: Option<ServerUser>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List approvals, the most recent request first
    List(list::ListArguments),
    /// Show an approval: the call, its arguments and its status
    Show(show::ShowArguments),
    /// Approve a call with exactly these arguments, once; at a terminal they are shown first
    Approve(decide::ApproveArguments),
    /// Deny a call
    Deny(decide::DenyArguments),
}

const AFTER_HELP: &str = "\
Without --node these are the approvals that `belljar mcp --agent NAME` and `--level LEVEL` have asked for on this machine. \
An agent whose call was approved makes the same call again; with other arguments it needs another approval. \
`list` shows no arguments, and with --json only previews of long ones (`is_preview`); `show` has them whole.

Exit codes: 0 done, also if it was decided like this before; 2 there is no such approval, it was decided otherwise or has expired, \
or --digest names other arguments; 3 the person at the terminal did not approve it.";

impl Subcommand for ApprovalArguments {
    const NAME: &'static str = "approval";
    const ABOUT: &'static str = "List, approve and deny calls of agents that wait for a person";

    fn run(&self) -> Result<ExitCode, CliError> {
        let source = ApprovalSource::open(&self.reach)?;
        match &self.command {
            Command::List(arguments) => arguments.run(&source)?,
            Command::Show(arguments) => arguments.run(&source)?,
            Command::Approve(arguments) => arguments.run(&source)?,
            Command::Deny(arguments) => arguments.run(&source)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Parses an id as the user types it.
fn parse_id(text: &str) -> Result<ApprovalId, String> {
    ApprovalId::parse(text).map_err(|error| error.to_string())
}

/// A digest as `show` prints it.
fn parse_digest(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    is_digest(&digits)
        .then_some(digits)
        .ok_or_else(|| "expected a SHA-256 in 64 hexadecimal digits".to_owned())
}

fn parse_reason(text: &str) -> Result<String, String> {
    let reason = is_reason(text).then(|| text.to_owned());
    reason.ok_or_else(|| "expected a reason of 1 to 1024 characters".to_owned())
}
