//! `belljar job submit`

mod context_files;
mod order;
mod waiting;

use super::JobNodeArguments;
use super::embedded::Purpose;
use super::job_exit::{exit_code_of, headline};
use crate::client::events::{FollowExtent, FollowResult, follow};
use crate::client::{Client, ClientError, NodeDocument, NodeRequest};
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use belljar_contract::worker::job::JobResponse;
use belljar_contract::worker::state::JobState;
use order::{CheckedJobRequest, JobRequestArguments};
use std::process::ExitCode;
use std::time::Duration;
use waiting::{Interrupts, JobWait};

#[derive(Debug, clap::Args)]
pub(super) struct SubmitArguments {
    #[command(flatten)]
    order: JobRequestArguments,
    /// Idempotency key of this request, for a node that may have received it before
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    idempotency_key: Option<String>,
    /// Wait for the job's end, print its events on standard error, and exit with its exit code
    #[arg(long)]
    wait: bool,
    /// Print the job as the node tells it, as JSON, instead of its id
    #[arg(long)]
    json: bool,
}

/// The exit code of a command that Ctrl-C has ended, as a shell would give it.
const INTERRUPTED: u8 = 130;

/// A request whose answer was lost is sent so often: with the same ids it asks for the same job.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Parses a key, which is sent in a header unchanged: visible ASCII characters.
fn parse_key(text: &str) -> Result<String, String> {
    let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| text.to_owned()).ok_or_else(|| "expected visible characters of ASCII".to_owned())
}

// === impl SubmitArguments ===

impl SubmitArguments {
    pub(super) fn run(&self, reach: &JobNodeArguments) -> Result<ExitCode, CliError> {
        // Before a node is started or asked: what can't be a job needs none.
        let order = self.order.order()?;
        let interrupts = Interrupts::take(self.wait || !reach.is_remote())?;
        match reach.is_remote() {
            true => reach.with(Purpose::Running, |client| self.submit_there(client, &order, &interrupts)),
            false => {
                crate::output::errln!(
                    "belljar: without --node the job runs here, and this command stays until it is over"
                );
                reach.with(Purpose::Running, |client| {
                    let code =
                        self.submit_and_wait(client, &order, JobWait::here(client, &order.id, &interrupts))?;
                    finish_others(client, &interrupts)?;
                    Ok(code)
                })
            }
        }
    }

    fn submit_there(
        &self,
        client: &Client,
        order: &CheckedJobRequest,
        interrupts: &Interrupts,
    ) -> Result<ExitCode, CliError> {
        if self.wait {
            return self.submit_and_wait(client, order, JobWait::there(client, &order.id, interrupts));
        }
        let told = self.submit(client, order)?;
        match self.json {
            true => print_json(&told.document)?,
            false => print(&format!("{}\n", told.known.job.job_id))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn submit_and_wait(
        &self,
        client: &Client,
        order: &CheckedJobRequest,
        mut waiting: JobWait<'_>,
    ) -> Result<ExitCode, CliError> {
        let told = self.submit(client, order)?;
        let id = &told.known.job.job_id;
        if !self.json {
            print(&format!("{id}\n"))?;
        }
        let followed = follow(client, id, FollowExtent::Whole, &mut waiting)?;
        if followed == FollowResult::Left {
            return Ok(ExitCode::from(waiting.leave()));
        }
        let told = client.job(id)?;
        match self.json {
            true => print_json(&told.document)?,
            false => crate::output::errln!("{}", headline(&told.known)),
        }
        Ok(ExitCode::from(exit_code_of(&told.known)))
    }

    fn submit(
        &self,
        client: &Client,
        order: &CheckedJobRequest,
    ) -> Result<NodeDocument<JobResponse>, CliError> {
        let key = self.idempotency_key.iter().map(|key| ("idempotency-key", key.clone()));
        let headers: Vec<_> = key.collect();
        let ask =
            NodeRequest { is_post: true, path: "/jobs:run", headers: &headers, body: Some(&order.document) };
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match client.document(&ask) {
                Err(ClientError::Broken { .. } | ClientError::Silent { .. }) if left > 0 => {
                    std::thread::sleep(PAUSE);
                }
                told => return Ok(told?),
            }
        }
    }
}

/// Stays until nothing waits or runs in this state any more: what was left there by a node that is gone has been begun, too,
/// and would be ended with this process.
fn finish_others(client: &Client, interrupts: &Interrupts) -> Result<(), CliError> {
    let mut has_told = false;
    loop {
        let mut open = 0;
        for state in [JobState::Accepted, JobState::InProgress] {
            open += client.page(&format!("limit=1000&status={state}"))?.known.jobs.len();
        }
        if open == 0 || interrupts.came() {
            return Ok(());
        }
        if !std::mem::replace(&mut has_told, true) {
            crate::output::errln!("belljar: {open} more that waited in this state run now; Ctrl-C ends them");
        }
        std::thread::sleep(PAUSE);
    }
}
