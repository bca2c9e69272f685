//! `belljar egress learn`: the smallest policy for what a run has tried, as it was recorded.
//!
//! Learning grants no network access: a command that is run for it reaches only what the user's policy allows, and nothing
//! without a policy.

use crate::command::exec::{self, ExecOutcome};
use crate::error::CliError;
use crate::sandbox_args::{SandboxArguments, given_target};
use crate::state;
use crate::web::opened;
use belljar_contract::egress::{BEGUN, ENDED};
use belljar_contract::id::RunId;
use belljar_egress::web::proposal::{Proposal, RunAttempts};
use belljar_execution::policy_file::OpenPolicy;
use belljar_store::audit::{self, AuditError, Record};
use serde_json::json;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
// Options about the sandbox require a command: without one, no sandbox is made.
#[command(mut_group("SandboxArguments", |group| group.requires("command")))]
#[command(mut_group("AllowanceArguments", |group| group.requires("command")))]
#[command(mut_group("LimitArguments", |group| group.requires("command")))]
#[command(mut_group("AmountArguments", |group| group.requires("command")))]
pub(super) struct LearnArguments {
    /// The run, instead of the last one that made network requests
    #[arg(long, value_name = "ID", value_parser = RunId::parse, conflicts_with = "command")]
    run: Option<RunId>,
    /// Policy file with the hosts that the command may reach while it is watched [default: none]
    #[arg(long, value_name = "FILE", requires = "command")]
    policy: Option<PathBuf>,
    /// Where to, instead of standard output; a file that isn't there yet
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sandbox: SandboxArguments,
    /// A command to run and to watch, with its arguments
    #[arg(last = true)]
    command: Vec<OsString>,
}

// === impl LearnArguments ===

impl LearnArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let run = match self.command.is_empty() {
            true => self.run.clone(),
            false => Some(self.watch()?),
        };
        let folder = audit::folder_in(state::open().path());
        let Some(run) = run.map_or_else(|| last(&folder), |run| Ok(Some(run)))? else {
            return Err(CliError::usage("no run has made a network request yet".to_owned()));
        };
        let proposal = match learned(&folder, &run)? {
            Some(proposal) => proposal,
            None if self.command.is_empty() => {
                return Err(CliError::usage(format!("run {run} has made no network requests")));
            }
            None => RunAttempts::default().propose(),
        };
        let text = match self.json {
            true => {
                format!("{}\n", crate::output::json(&as_json(&run, &proposal)))
            }
            false => format!(
                "# What run {run} has tried. It chose what stands here: read it before it is a policy.\n{proposal}"
            ),
        };
        match &self.output {
            None => crate::output::write_exactly(crate::output::on_stdout(&text).as_bytes()),
            Some(path) => write_new(path, &text)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn watch(&self) -> Result<RunId, CliError> {
        let policy = self.policy.as_deref().map_or_else(|| Ok(OpenPolicy::of_nothing()), opened)?;
        let ExecOutcome { run, code } = exec::watched(&self.command, self.sandbox.clone(), policy)?;
        if code != ExitCode::SUCCESS {
            // Often so: what it wanted, it didn't get.
            crate::output::errln!("belljar: the command did not succeed");
        }
        Ok(run)
    }
}

/// The run with the latest record of the web.
fn last(folder: &Path) -> Result<Option<RunId>, CliError> {
    let mut last = None;
    each(folder, &mut |record| last = record.run.map(str::to_owned))?;
    Ok(last.and_then(|run| RunId::parse(&run).ok()))
}

/// Returns the proposed policy for one run; `None` if the run made no network request.
fn learned(folder: &Path, run: &RunId) -> Result<Option<Proposal>, CliError> {
    let (mut tried, mut has_tried, mut unknown) = (RunAttempts::default(), false, None);
    each(folder, &mut |record| {
        if record.run != Some(run.as_str()) {
            return;
        }
        has_tried = true;
        let read = match record.kind {
            BEGUN => serde_json::from_str(record.event).map(|begun| tried.begin(begun)),
            _ => serde_json::from_str(record.event).map(|ended| tried.end(&ended)),
        };
        let sequence = record.sequence;
        unknown = unknown.take().or(read.err().map(|source| CliError::Passage { sequence, source }));
    })?;
    unknown.map_or_else(|| Ok(has_tried.then(|| tried.propose())), Err)
}

/// Shows the records of the web.
fn each(folder: &Path, see: &mut dyn FnMut(&Record<'_>)) -> Result<(), CliError> {
    if !folder.exists() {
        return Ok(());
    }
    audit::reading::each(folder, &mut |record, _| {
        if [BEGUN, ENDED].contains(&record.kind) {
            see(record);
        }
    })?;
    Ok(())
}

fn as_json(run: &RunId, proposal: &Proposal) -> serde_json::Value {
    let Proposal { rules, not_proposed, unreadable, unlisted, .. } = proposal;
    json!({
        "run_id": run,
        "rules": rules,
        "not_proposed": not_proposed,
        "unreadable": unreadable,
        "unlisted": unlisted,
    })
}

/// A policy that is in force is never written over.
fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let file = File::options().write(true).create_new(true).mode(0o644).open(given_target(path)?);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    let cant = |source| AuditError::Io { action: "write", path: path.to_owned(), source: Arc::new(source) };
    written.map_err(|source| cant(source).into())
}
