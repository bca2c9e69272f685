//! `belljar changes show` and `belljar changes diff`.

use super::list::of_listed;
use super::{find, part_of};
use crate::command::printing::{print, print_json, warn_of_hidden};
use crate::error::CliError;
use crate::kept::{drift, left_out_lines, too_long};
use crate::progress::harmless;
use crate::summary;
use crate::terminal::begin_review;
use belljar_contract::result::WorkspaceChanges;
use belljar_policy::untrusted;
use belljar_sandbox::kept::{KeptChangeSet, ListedChangeSet};
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// The change set
    id: String,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The digest of what is shown goes to standard error: `belljar changes apply --reviewed DIGEST` applies exactly that, or nothing.
Without a terminal the diff alone is printed, for `git apply`.")]
pub(super) struct DiffArguments {
    /// The change set
    id: String,
    /// Only what is at these paths and below
    paths: Vec<PathBuf>,
    /// Count the lines of each file, and don't show them
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Print files and diff as JSON
    #[arg(long)]
    json: bool,
}

/// The changes of a kept change set, as `changes show` has them.
struct ChangesView {
    changes: WorkspaceChanges,
    /// The digest that `changes apply --reviewed` takes; `None` if they are laid out.
    digest: Option<String>,
    left_out: Vec<String>,
}

// === impl ChangesView ===

impl ChangesView {
    fn of(kept: &KeptChangeSet) -> Result<Self, CliError> {
        if kept.is_laid_out() {
            return Ok(Self { changes: kept.render()?, digest: None, left_out: Vec::new() });
        }
        let frozen = kept.changes()?;
        let digest = Some(frozen.digest()?.to_string());
        Ok(Self { changes: frozen.render()?, digest, left_out: too_long(frozen.left_out()) })
    }
}

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let kept = find(&self.id)?;
        let shown = ChangesView::of(&kept);
        let listed = ListedChangeSet {
            id: kept.id().clone(),
            path: kept.path().to_owned(),
            record: kept.record().clone(),
            summary: kept.summary().clone(),
        };
        if self.json {
            let mut document = of_listed(&listed);
            document["error"] = serde_json::Value::Null;
            match shown {
                Ok(ChangesView { changes, digest, left_out }) => {
                    document["changes"] = serde_json::to_value(changes).unwrap_or_default();
                    document["digest"] = digest.into();
                    document["left_out"] = left_out.into();
                }
                Err(error) => {
                    document["changes"] = serde_json::Value::Null;
                    document["error"] = error.chain().into();
                }
            }
            print_json(&document)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = head(&kept);
        match shown {
            Ok(ChangesView { changes, digest, left_out }) => {
                if let Some(digest) = digest {
                    let _ = writeln!(text, "{:8}{digest}", "digest");
                }
                text += &summary::files(&changes, "changed in the copy");
                text += &drift(&changes.changed_in_source);
                text += &left_out_lines(&left_out);
            }
            Err(error) => {
                let _ = writeln!(text, "The changes can't be told: {}", error.chain());
            }
        }
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn head(kept: &KeptChangeSet) -> String {
    let (record, summary) = (kept.record(), kept.summary());
    let source = record.source_path().map_or_else(|| "-".to_owned(), untrusted::name);
    let ended = if summary.was_cut_off { "its process was killed" } else { "ended" };
    let mut text = String::new();
    for (name, value) in [
        ("id", kept.id().to_string()),
        ("run", format!("{} {}", record.label.kind.as_str(), record.label.title)),
        ("name", record.label.name.clone().unwrap_or_else(|| "-".to_owned())),
        ("source", source),
        ("began", record.began_at.to_string()),
        ("kept", format!("{} ({ended})", summary.kept_at)),
        ("size", summary::size(summary.bytes)),
        ("folder", untrusted::name(kept.path())),
    ] {
        let _ = writeln!(text, "{name:8}{}", harmless(&value));
    }
    text
}

// === impl DiffArguments ===

impl DiffArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let kept = find(&self.id)?;
        let (changes, digest, left_out) = match kept.is_laid_out() && self.paths.is_empty() {
            true => (kept.render()?, None, Vec::new()),
            false => {
                let frozen = kept.changes()?;
                let part = part_of(&frozen, &self.paths)?;
                let digest = Some(frozen.digest_of(&part)?.to_string());
                (frozen.render_part(&part)?, digest, too_long(frozen.left_out()))
            }
        };
        if self.json {
            let mut document =
                serde_json::to_value(&changes).map_err(|error| CliError::output(error.into()))?;
            document["digest"] = digest.into();
            document["left_out"] = left_out.into();
            print_json(&document)?;
            return Ok(ExitCode::SUCCESS);
        }
        if std::io::stdout().is_terminal() {
            begin_review();
        }
        crate::output::err!("{}{}", drift(&changes.changed_in_source), left_out_lines(&left_out));
        if self.stat {
            crate::output::out!("{}", summary::stat(&changes));
        } else if std::io::stdout().is_terminal() {
            crate::output::out!("{}", summary::changes(&changes));
        } else {
            crate::output::write_exactly(changes.diff.as_bytes());
            warn_of_hidden(&changes.diff);
        }
        crate::output::err!("{}", summary::unshown(&changes));
        if let Some(digest) = digest {
            crate::output::errln!("belljar: digest {digest}");
        }
        Ok(ExitCode::SUCCESS)
    }
}
