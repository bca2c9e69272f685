//! `belljar job watch`

use super::event_text::lines;
use super::job_exit::{exit_code_of, headline};
use super::parse_id;
use crate::client::events::{FollowExtent, FollowResult, JobEventReceiver, follow};
use crate::client::{Client, ClientError};
use crate::command::printing::print;
use crate::error::CliError;
use crate::progress::harmless;
use belljar_contract::id::JobId;
use belljar_contract::worker::event::JobEvent;
use serde_json::Value;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct WatchArguments {
    /// The job's id
    #[arg(value_parser = parse_id)]
    id: JobId,
    /// Print the events as JSON, one a line
    #[arg(long)]
    json: bool,
}

struct Watcher {
    json: bool,
    lost: ConnectionNotice,
}

/// Says once that a connection is gone, until it is there again.
#[derive(Default)]
pub(super) struct ConnectionNotice(bool);

/// Exit code for a job that no host runs.
const LEFT: u8 = 1;

// === impl WatchArguments ===

impl WatchArguments {
    pub(super) fn run(&self, client: &Client, is_remote: bool) -> Result<ExitCode, CliError> {
        let mut watcher = Watcher { json: self.json, lost: ConnectionNotice::default() };
        // Without a daemon nothing more will happen to a job that waits.
        let extent = if is_remote { FollowExtent::Whole } else { FollowExtent::SoFar };
        if follow(client, &self.id, extent, &mut watcher)? == FollowResult::Left {
            crate::output::errln!("belljar: the job waits, and no node is running that could start it");
            return Ok(ExitCode::from(LEFT));
        }
        let told = client.job(&self.id)?;
        if !self.json {
            crate::output::outln!("{}", headline(&told.known));
        }
        Ok(ExitCode::from(exit_code_of(&told.known)))
    }
}

impl JobEventReceiver for Watcher {
    fn heard(&mut self, document: &Value, event: Option<&JobEvent>) -> Result<(), CliError> {
        self.lost.is_back();
        let text = match (self.json, event) {
            (true, _) => format!("{document}\n"),
            (false, Some(event)) => lines(event).into_iter().map(|line| line + "\n").collect(),
            // A kind of event that is not known here.
            (false, None) => String::new(),
        };
        print(&text)
    }

    fn lost(&mut self, error: Option<&ClientError>) {
        self.lost.tell(error);
    }
}

// === impl ConnectionNotice ===

impl ConnectionNotice {
    pub(super) fn tell(&mut self, error: Option<&ClientError>) {
        if std::mem::replace(&mut self.0, true) {
            return;
        }
        let why = error
            .map(|error| format!(": {}", harmless(&belljar_contract::text::with_causes(error))))
            .unwrap_or_default();
        crate::output::errln!("belljar: the connection is lost; reconnecting{why}");
    }

    pub(super) fn is_back(&mut self) {
        self.0 = false;
    }
}
