//! `belljar changes retention`.

use crate::command::printing::{print, print_json};
use crate::error::CliError;
use crate::kept::{duration, tell_collected};
use crate::progress::harmless;
use crate::prompt::{confirmed, is_at_terminal};
use crate::sandbox_args::parse_duration;
use crate::state;
use crate::summary::size;
use belljar_sandbox::kept::{self, CollectedChangeSet, Retention};
use belljar_sandbox::limits::Bytes;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: belljar changes retention --keep-for 30d --max-size 2g")]
pub(super) struct RetentionArguments {
    /// Remove a change set after this long, such as 12h or 30d [default: 14d]
    #[arg(long, value_name = "DURATION", value_parser = parse_days)]
    keep_for: Option<Duration>,
    /// Remove the largest when all but the newest together take more than this [default: 10g]
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Bytes>,
    /// Remove what has no place by the new limits, without asking
    #[arg(long)]
    yes: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// A length of time, in days, too. A number alone is refused: 14 would be 14 seconds, where days are meant.
fn parse_days(text: &str) -> Result<Duration, String> {
    if text.parse::<f64>().is_ok() {
        return Err(format!(
            "expected a number with a unit: {text}d for days, {text}h for hours, {text}s for seconds"
        ));
    }
    match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Ok(Duration::from_secs(u64::from(days) * 86_400)),
        _ => parse_duration(text),
    }
}

// === impl RetentionArguments ===

impl RetentionArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let state = state::open();
        let mut retention = kept::retention(&state)?;
        if self.keep_for.is_some() || self.max_size.is_some() {
            retention = Retention {
                keep_for: self.keep_for.unwrap_or(retention.keep_for),
                most_bytes: self.max_size.map_or(retention.most_bytes, |size| size.0),
            };
            self.agree(&kept::due(&state, retention))?;
            kept::set_retention(&state, retention)?;
            tell_collected(&kept::collect(&state, None));
        }
        let Retention { keep_for, most_bytes } = retention;
        match self.json {
            true => print_json(&json!({ "keep_for_seconds": keep_for.as_secs(), "max_bytes": most_bytes }))?,
            false => print(&format!(
                "Changes are kept for {}, and take at most {} together.\n",
                duration(keep_for),
                Bytes(most_bytes)
            ))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows what new limits remove, and asks.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the answer is no, or no one can be asked.
    fn agree(&self, due: &[CollectedChangeSet]) -> Result<(), CliError> {
        if self.yes || due.is_empty() {
            return Ok(());
        }
        for CollectedChangeSet { id, kept_at, bytes, title, .. } in due {
            let (title, size) = (harmless(title), size(*bytes));
            crate::output::errln!("These limits remove {id} ({title}), kept at {kept_at}, {size}");
        }
        if !is_at_terminal() {
            return Err(CliError::usage(
                "the limits were not changed: they remove kept changes, which takes --yes".to_owned(),
            ));
        }
        match confirmed("Change the limits, and remove these changes? [y/n] ") {
            true => Ok(()),
            false => Err(CliError::usage("the limits were not changed".to_owned())),
        }
    }
}
