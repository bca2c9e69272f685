//! `belljar job list`

use super::job_exit::words;
use crate::client::Client;
use crate::command::printing::{aligned, print, print_json};
use crate::error::CliError;
use belljar_contract::id::TaskId;
use belljar_contract::worker::job::JobSummary;
use belljar_contract::worker::state::JobState;
use jiff::Timestamp;
use serde_json::Value;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    /// Only jobs of this task
    #[arg(long, value_name = "ID", value_parser = TaskId::parse)]
    task_id: Option<TaskId>,
    /// Only jobs with this status: accepted, in_progress, completed, failed, timeout, canceled, node_failure
    #[arg(long, value_parser = parse_status)]
    status: Option<JobState>,
    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Print the jobs as JSON
    #[arg(long)]
    json: bool,
}

/// A node gives no more at once.
const LARGEST_PAGE: u64 = 1_000;

fn parse_status(text: &str) -> Result<JobState, String> {
    JobState::from_name(text).ok_or_else(|| {
        let names: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
        format!("one of: {}", names.join(", "))
    })
}

// === impl ListArguments ===

impl ListArguments {
    pub(super) fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let jobs = self.collect(client)?;
        match self.json {
            true => print_json(&jobs.iter().map(|(document, _)| document).collect::<Vec<_>>())?,
            false => print(&table(jobs.iter().map(|(_, job)| job), Timestamp::now()))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Page by page, each as it came and as it is understood.
    fn collect(&self, client: &Client) -> Result<Vec<(Value, JobSummary)>, CliError> {
        let mut jobs: Vec<(Value, JobSummary)> = Vec::new();
        let mut token = None;
        loop {
            let left = self.limit.saturating_sub(jobs.len() as u64);
            let page = client.page(&self.query(left.min(LARGEST_PAGE), token.as_deref()))?;
            let documents = page.document["jobs"].as_array().cloned().unwrap_or_default();
            let is_empty = documents.is_empty();
            jobs.extend(documents.into_iter().zip(page.known.jobs));
            jobs.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
            token = page.known.next_page_token;
            // A page with nothing on it leads nowhere, whatever it says.
            if token.is_none() || is_empty || jobs.len() as u64 >= self.limit {
                return Ok(jobs);
            }
        }
    }

    fn query(&self, limit: u64, token: Option<&str>) -> String {
        let mut query = format!("limit={limit}");
        if let Some(task) = &self.task_id {
            query += &format!("&task_id={task}");
        }
        if let Some(status) = self.status {
            query += &format!("&status={status}");
        }
        if let Some(token) = token {
            // The node chooses the token's form; encoded, it stays one value of one parameter.
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
            let encode = |byte: u8| match is_plain(&byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            };
            query += &format!("&page_token={}", token.bytes().map(encode).collect::<String>());
        }
        query
    }
}

fn table<'j>(jobs: impl Iterator<Item = &'j JobSummary>, now: Timestamp) -> String {
    let head = ["JOB", "STATUS", "ATTEMPT", "ACCEPTED", "TOOK", "TASK"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(jobs.map(|job| row(job, now))).collect();
    if rows.len() == 1 {
        return "No jobs.\n".to_owned();
    }
    aligned(&rows)
}

fn row(job: &JobSummary, now: Timestamp) -> [String; 6] {
    let took = job.started_at.map(|begun| {
        let took = job.ended_at.unwrap_or(now).duration_since(begun);
        crate::summary::duration(took.unsigned_abs())
    });
    let status = match job.cancel_requested && !job.status.is_final() {
        true => format!("{}, is to stop", words(job.status)),
        false => words(job.status).to_owned(),
    };
    [
        job.job_id.to_string(),
        status,
        format!("{}/{}", job.attempt, job.max_attempts),
        job.accepted_at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        took.unwrap_or_else(|| "-".to_owned()),
        job.task_id.to_string(),
    ]
}
