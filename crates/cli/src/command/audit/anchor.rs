//! `belljar audit anchor`

use super::super::printing::print_json;
use super::verify::described;
use crate::configuration;
use crate::error::CliError;
use crate::progress::harmless;
use crate::state;
use belljar_journal::RunJournal;
use belljar_store::audit::anchor::{self, AnchorStatus};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct AnchorArguments {
    /// The configuration with the section `audit`; without it the one that is found as usual
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print what is known of each anchor as JSON
    #[arg(long)]
    json: bool,
}

/// The kind of the record that says that a checkpoint was asked for.
const REQUESTED: &str = "audit_anchor_requested";

/// Exit code where an anchor has not accepted the checkpoint.
const FAILED: u8 = 1;

// === impl AnchorArguments ===

impl AnchorArguments {
    pub(super) fn deliver(&self, folder: &Path) -> Result<ExitCode, CliError> {
        let path = configuration::found(self.config.as_deref());
        let anchors = path.map(|path| configuration::read(&path)).transpose()?.map(|found| found.anchors);
        let targets: Vec<String> =
            anchors.unwrap_or_default().iter().map(|anchor| anchor.target.to_string()).collect();
        if targets.is_empty() {
            let message =
                "the configuration names no anchors; add a section `audit` with `anchors`".to_owned();
            return Err(CliError::Usage { message });
        }
        // A required anchor gets a checkpoint only with a record.
        let book = RunJournal::open(state::open().path())?;
        let outcome = book.enter(REQUESTED, None, &json!({}));
        drop(book);
        let mut statuses = anchor::statuses(folder);
        statuses.retain(|status| targets.contains(&status.target));
        match self.json {
            true => print_json(&statuses)?,
            false => {
                for status in &statuses {
                    crate::output::outln!("{}", harmless(&described(status)));
                }
            }
        }
        // An anchor counts only with a checkpoint of that record or a later one.
        let reached = |status: &AnchorStatus| {
            let delivered = status.delivered.as_ref().map(|delivered| delivered.sequence);
            status.failing.is_none() && delivered >= outcome.as_ref().ok().map(|receipt| receipt.sequence)
        };
        let is_reached =
            |target: &String| statuses.iter().any(|status| status.target == *target && reached(status));
        let is_failing = outcome.is_err() || !targets.iter().all(is_reached);
        Ok(ExitCode::from(if is_failing { FAILED } else { 0 }))
    }
}
