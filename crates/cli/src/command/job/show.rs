//! `belljar job show`

use super::job_exit::headline;
use super::parse_id;
use crate::client::Client;
use crate::command::plain;
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use crate::usage_text;
use belljar_contract::egress::{DeniedDestination, WebUsage};
use belljar_contract::id::JobId;
use belljar_contract::worker::job::{JobOutcome, JobResponse};
use jiff::Timestamp;
use std::fmt::Write;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// The job's id
    #[arg(value_parser = parse_id)]
    id: JobId,
    /// Print the job as the node tells it, as JSON
    #[arg(long)]
    json: bool,
}

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let told = client.job(&self.id)?;
        match self.json {
            true => print_json(&told.document)?,
            false => {
                crate::output::outln!("{}", headline(&told.known));
                print(&description(&told.known))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn description(response: &JobResponse) -> String {
    let job = &response.job;
    let mut text = String::new();
    let mut say = |name: &str, value: &str| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {name:<10}  {value}");
    };
    let time = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    say("job", job.job_id.as_str());
    say("task", job.task_id.as_str());
    if let Some(run) = &job.run_id {
        say("run", run.as_str());
    }
    say("attempt", &format!("{} of {}", job.attempt, job.max_attempts));
    say("accepted", &time(job.accepted_at));
    for (name, at) in [("begun", job.started_at), ("ended", job.ended_at)] {
        at.map(time).iter().for_each(|at| say(name, at));
    }
    if !job.status.is_final() {
        job.deadline.map(time).iter().for_each(|at| say("deadline", at));
        if job.cancel_requested {
            say("", "cancellation was requested");
        }
    }
    if let Some(outcome) = &response.outcome {
        came(outcome, &mut say);
    }
    text
}

fn came(outcome: &JobOutcome, say: &mut dyn FnMut(&str, &str)) {
    let streams = [
        ("stdout", &outcome.stdout, outcome.truncated.stdout),
        ("stderr", &outcome.stderr, outcome.truncated.stderr),
    ];
    for (name, text, is_cut) in streams.into_iter().filter(|(_, text, _)| !text.is_empty()) {
        let cut = if is_cut { ", cut" } else { "" };
        say(name, &format!("{} bytes{cut}", text.len()));
    }
    for artifact in &outcome.artifacts {
        say(
            "artifact",
            &format!("{}, {} bytes, {}", plain(&artifact.path), artifact.size_bytes, plain(&artifact.sha256)),
        );
    }
    if let Some(usage) = &outcome.inference {
        say("models", &usage_text::summary(usage));
    }
    if let Some(had) = &outcome.web {
        let WebUsage { passages, sent_bytes, received_bytes, .. } = had;
        say("web", &format!("{passages} let through, {sent_bytes} bytes sent, {received_bytes} received"));
        for denied in &had.denied {
            let DeniedDestination { host, port, reason, rule_needed } = denied;
            let what = if denied.is_unreached() { "not reached" } else { "denied" };
            let rule =
                rule_needed.as_ref().map_or(String::new(), |rule| format!("; it takes the rule {rule}"));
            say(what, &plain(&format!("{host}:{port} ({reason}){rule}")));
        }
        if had.denied_unlisted > 0 {
            say("denied", &format!("{} more", had.denied_unlisted));
        }
    }
    if let Some(isolation) = &outcome.isolation {
        let off: Vec<_> = isolation
            .layers
            .iter()
            .filter(|layer| !layer.in_force)
            .map(|layer| layer.name.as_str())
            .collect();
        let mut sealed = format!("by {} layers", isolation.layers.len() - off.len());
        if !off.is_empty() {
            sealed += &format!(", without {}", off.join(", "));
        }
        say("sealed", &plain(&sealed));
    }
}
