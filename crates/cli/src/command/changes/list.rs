//! `belljar changes list`.

use super::look_for_leftovers;
use crate::command::printing::{aligned, print, print_json};
use crate::command::session::tell_interrupted;
use crate::error::CliError;
use crate::kept::{duration, stranded, tell_stranded};
use crate::progress::harmless;
use crate::summary::size;
use belljar_policy::untrusted;
use belljar_sandbox::kept::{self, CollectedChangeSet, CollectionReason, ListedChangeSet};
use belljar_sandbox::state::StateDirectory;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// Maximum number of removed change sets that are listed.
const MOST_COLLECTED: usize = 10;

// === impl ListArguments ===

impl ListArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let state = look_for_leftovers();
        let (listed, mut collected) = (kept::list(&state), kept::collected(&state));
        let from = collected.len().saturating_sub(MOST_COLLECTED);
        collected.drain(..from);
        let stranded = stranded(&state);
        if !self.json {
            tell_stranded(&stranded);
            tell_interrupted();
        }
        match self.json {
            true => print_json(&document((&state, &stranded), &listed, &collected))?,
            false => print(&(table(&listed) + &removed(&collected)))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn document(
    (state, stranded): (&StateDirectory, &[PathBuf]),
    listed: &[ListedChangeSet],
    collected: &[CollectedChangeSet],
) -> Value {
    let retention = kept::retention(state).unwrap_or_default();
    json!({
        "changes": listed.iter().map(of_listed).collect::<Vec<_>>(),
        "removed": collected,
        "stranded": stranded.iter().map(|path| untrusted::name(path)).collect::<Vec<_>>(),
        "total_bytes": listed.iter().map(|listed| listed.summary.bytes).sum::<u64>(),
        "keep_for_seconds": retention.keep_for.as_secs(),
        "max_bytes": retention.most_bytes,
    })
}

/// A kept change set, as a program reads it.
pub(super) fn of_listed(listed: &ListedChangeSet) -> Value {
    let ListedChangeSet { id, path, record, summary } = listed;
    json!({
        "id": id,
        "kind": record.label.kind,
        "name": record.label.name,
        "title": record.label.title,
        "source": record.source_path().map(untrusted::name),
        "began_at": record.began_at,
        "kept_at": summary.kept_at,
        "was_cut_off": summary.was_cut_off,
        "files": summary.files,
        "bytes": summary.bytes,
        "path": untrusted::name(path),
    })
}

fn table(listed: &[ListedChangeSet]) -> String {
    if listed.is_empty() {
        return "No kept changes.\n".to_owned();
    }
    let mut rows = vec![["ID", "KIND", "NAME", "AGE", "FILES", "SIZE", "SOURCE", "RUN"].map(str::to_owned)];
    rows.extend(listed.iter().map(|ListedChangeSet { id, record, summary, .. }| {
        let age = Timestamp::now().duration_since(summary.kept_at);
        let source = record.source_path().map_or_else(|| "-".to_owned(), untrusted::name);
        [
            id.to_string(),
            record.label.kind.as_str().to_owned(),
            harmless(record.label.name.as_deref().unwrap_or("-")),
            duration(Duration::try_from(age).unwrap_or_default()),
            summary.files.map_or_else(|| "?".to_owned(), |files| files.to_string()),
            size(summary.bytes),
            harmless(&source),
            harmless(&record.label.title),
        ]
    }));
    aligned(&rows)
}

fn removed(collected: &[CollectedChangeSet]) -> String {
    let line = |one: &CollectedChangeSet| {
        let why = match one.reason {
            CollectionReason::Age => "had its age",
            CollectionReason::Size => "was the largest when all were too large",
        };
        format!("Removed {}: {} ({}) {why}\n", one.removed_at, one.id, harmless(&one.title))
    };
    collected.iter().map(line).collect()
}
