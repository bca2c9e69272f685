//! `belljar changes show` and `belljar changes diff`.

use super::find;
use super::list::of_listed;
use crate::command::printing::{print, print_json, warn_of_hidden};
use crate::error::CliError;
use crate::kept::drift;
use crate::progress::harmless;
use crate::summary;
use belljar_policy::untrusted;
use belljar_sandbox::kept::{Kept, Listed};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
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

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let kept = find(&self.id)?;
        let changes = kept.render();
        let listed = Listed {
            id: kept.id().clone(),
            path: kept.path().to_owned(),
            record: kept.record().clone(),
            summary: kept.summary().clone(),
        };
        if self.json {
            let mut document = of_listed(&listed);
            document["changes"] = match &changes {
                Ok(changes) => serde_json::to_value(changes).unwrap_or_default(),
                Err(_) => serde_json::Value::Null,
            };
            document["error"] = changes.err().map(|error| CliError::from(error).chain()).into();
            print_json(&document)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = head(&kept);
        match changes {
            Ok(changes) => {
                text += &summary::files(&changes, "changed in the copy");
                text += &drift(&changes.changed_in_source);
            }
            Err(error) => {
                let _ = writeln!(text, "The changes can't be told: {}", CliError::from(error).chain());
            }
        }
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn head(kept: &Kept) -> String {
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
        let (changes, digest) = match kept.is_laid_out() && self.paths.is_empty() {
            true => (kept.render()?, None),
            false => {
                let frozen = kept.changes()?;
                let part = frozen.part(&self.paths);
                (frozen.render_part(&part)?, Some(frozen.digest_of(&part)?.to_string()))
            }
        };
        if self.json {
            let mut document =
                serde_json::to_value(&changes).map_err(|error| CliError::output(error.into()))?;
            document["digest"] = digest.into();
            print_json(&document)?;
            return Ok(ExitCode::SUCCESS);
        }
        crate::output::err!("{}", drift(&changes.changed_in_source));
        if self.stat {
            crate::output::out!("{}", summary::stat(&changes));
        } else if std::io::stdout().is_terminal() {
            crate::output::out!("{}", summary::changes(&changes));
        } else {
            std::io::stdout().write_all(changes.diff.as_bytes()).map_err(CliError::output)?;
            warn_of_hidden(&changes.diff);
        }
        if changes.truncated {
            crate::output::errln!("belljar: there is more than is shown");
        }
        if let Some(digest) = digest {
            crate::output::errln!("belljar: digest {digest}");
        }
        Ok(ExitCode::SUCCESS)
    }
}
