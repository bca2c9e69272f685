//! `belljar job token`

use super::parse_id;
use crate::client::{Client, NodeRequest};
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use belljar_contract::id::JobId;
use belljar_contract::worker::token::{IssueTokenResponse, LONGEST_LIFE_SECONDS, RemoteAgent};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct TokenArguments {
    /// The job's id
    #[arg(value_parser = parse_id)]
    id: JobId,
    /// Validity of the token in seconds; it also ends with the job
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "3600",
        value_parser = clap::value_parser!(u64).range(1..=LONGEST_LIFE_SECONDS)
    )]
    expires_in: u64,
    /// Print it with its id and its end, as JSON
    #[arg(long)]
    json: bool,
}

// === impl TokenArguments ===

impl TokenArguments {
    /// Issues a token and prints it alone, so that users can store it where their client looks for it; with `--json`, the whole response.
    pub(super) fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let job = client.job(&self.id)?.known.job;
        let wanted = json!({
            "version": 1,
            "kind": RemoteAgent::Sandbox,
            "task_id": job.task_id,
            "job_id": job.job_id,
            "expires_in_seconds": self.expires_in,
        });
        let wanted = wanted.to_string();
        let ask = NodeRequest {
            is_post: true,
            path: "/mcp/tokens",
            body: Some(wanted.as_bytes()),
            ..NodeRequest::default()
        };
        let issued = client.document::<IssueTokenResponse>(&ask)?;
        match self.json {
            true => print_json(&issued.document)?,
            false => print(&format!("{}\n", issued.known.token))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
