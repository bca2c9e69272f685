//! `belljar trust`: what is recorded of agents on this machine, which levels they have by it, and a person's word on that.

mod decide;
mod record;
mod show;

use super::Subcommand;
use crate::error::{BAD_INPUT, CliError};
use crate::trust::{self, TrustEventStore};
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_store::database::Location;
use belljar_store::trust::{RecordError, RecordResult};
use jiff::Timestamp;
use std::path::PathBuf;
use std::process::ExitCode;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct TrustArguments {
    #[command(subcommand)]
    command: Command,
    /// The configuration with the strategy [default: BELLJAR_CONFIG, or config.yaml in the user's or the system's configuration]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// The database of a node, as `belljar node` takes it: `sqlite:PATH` or `postgres://USER@HOST/DATABASE` [default: this machine's
    /// own]
    #[arg(long, value_name = "URL", global = true)]
    database: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List agents with recorded trust events, and their levels
    List(show::ListArguments),
    /// Show an agent's level, how it came about, and what waits for a person's answer
    Show(show::ShowArguments),
    /// Record something that happened
    Record(record::RecordArguments),
    /// Approve a proposed promotion
    Approve(decide::ApproveArguments),
    /// Deny a proposed promotion
    Deny(decide::DenyArguments),
    /// Rate the difficulty and quality of a completed job of a node, once for each job
    Assess(decide::AssessArguments),
    /// Set an agent's level: lower levels apply at once, higher ones up to `elevated` become a proposal
    Set(decide::SetArguments),
    /// Record that an agent was verified again
    Verify(decide::VerifyArguments),
}

impl Subcommand for TrustArguments {
    const NAME: &'static str = "trust";
    const ABOUT: &'static str = "Show and manage the trust levels of agents";

    fn run(&self) -> Result<ExitCode, CliError> {
        let location = self.database.as_deref().map(Location::parse).transpose();
        let location = location.map_err(|error| CliError::usage(format!("--database: {error}")))?;
        let book = TrustEventStore::open(trust::config(self.config.as_deref())?, location.as_ref())?;
        match &self.command {
            Command::List(arguments) => arguments.run(&book),
            Command::Show(arguments) => arguments.run(&book),
            Command::Record(arguments) => arguments.run(&book),
            Command::Approve(arguments) => arguments.run(&book),
            Command::Deny(arguments) => arguments.run(&book),
            Command::Assess(arguments) => arguments.run(&book),
            Command::Set(arguments) => arguments.run(&book),
            Command::Verify(arguments) => arguments.run(&book),
        }
    }
}

/// Records something, and tells what came of it. An event that changes nothing is recorded all the same: it happened.
fn record(book: &TrustEventStore, event: &TrustEvent) -> Result<ExitCode, CliError> {
    match book.runtime.block_on(book.events().record(event)) {
        Ok(RecordResult::Now) => {}
        Ok(RecordResult::Before) => crate::output::errln!("it was recorded already"),
        Err(error @ (RecordError::Another { .. } | RecordError::TooMany)) => {
            crate::output::errln!("belljar: {error}");
            return Ok(ExitCode::from(BAD_INPUT));
        }
        Err(error) => return Err(error.into()),
    }
    let replayed = book.of(&event.agent_id)?;
    if let Some(why) = replayed.ignored(event.event_id) {
        crate::output::errln!("belljar: the event is recorded, but has no effect: {why}");
        return Ok(ExitCode::from(BAD_INPUT));
    }
    let state = replayed.trust.state(book.config());
    crate::output::outln!("{}  {}", event.agent_id, state.global_level);
    Ok(ExitCode::SUCCESS)
}

/// Something that happens now.
fn happening(agent: &AgentId, kind: TrustEventKind) -> TrustEvent {
    TrustEvent { at: Timestamp::now(), event_id: Uuid::now_v7(), agent_id: agent.clone(), kind }
}
