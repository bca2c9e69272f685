//! What gains trust where a sandbox's work goes: told, asked about, and said yes to.

use crate::asking::{confirmed, is_at_terminal};
use crate::error::CliError;
use crate::terminal::begin_review;
use anstyle::{AnsiColor, Style};
use belljar_policy::handoff::Trust;
use belljar_policy::untrusted::named;
use belljar_sandbox::kept::KeptError;
use belljar_sandbox::session::{Asking, InterruptedError, Refusal, SessionError};
use belljar_sandbox::workspace::apply::ApplyError;
use std::fmt::Write as _;

/// What somebody has said yes to.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TrustArguments {
    /// Say yes to this path, which runs something or is trusted where it goes; with a slash at its end, to all below it
    #[arg(long, value_name = "PATH", help_heading = "Trust")]
    trust: Vec<String>,
    /// Say yes to all such paths
    #[arg(long, conflicts_with = "trust", help_heading = "Trust")]
    trust_all: bool,
}

// === impl TrustArguments ===

impl TrustArguments {
    pub(crate) fn trust(&self) -> Trust {
        match self.trust_all {
            true => Trust::in_all(),
            false => Trust::in_paths(self.trust.iter().cloned()),
        }
    }

    /// Whether nothing is trusted.
    pub(crate) fn is_empty(&self) -> bool {
        !self.trust_all && self.trust.is_empty()
    }

    /// Does something with what was said yes to, and again if somebody at the terminal says yes to the rest.
    pub(crate) fn with_yes<T>(
        &self,
        mut act: impl FnMut(&Trust) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let done = act(&self.trust());
        match done.as_ref().err().and_then(asked) {
            Some(asking) if is_trusted(&asking) => {
                // To what was shown, and to nothing that has come since.
                act(&self.trust().and_in(asking.into_iter().map(|asking| asking.path)))
            }
            _ => done,
        }
    }
}

/// What takes a yes, if that is what went wrong.
pub(crate) fn asked(error: &CliError) -> Option<Vec<Asking>> {
    match error {
        CliError::Apply(ApplyError::Handoff { findings })
        | CliError::Kept(KeptError::Apply(ApplyError::Handoff { findings })) => {
            Some(findings.iter().map(Asking::of).collect())
        }
        CliError::Interrupted(InterruptedError::Apply(ApplyError::Handoff { findings })) => {
            Some(findings.iter().map(Asking::of).collect())
        }
        CliError::Session(SessionError::Refused(Refusal::Handoff { asking, .. })) => Some(asking.clone()),
        _ => None,
    }
}

/// The paths that gain trust, each with its reason.
pub(crate) fn listed(asking: &[Asking]) -> String {
    let bold = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    let mut text = String::new();
    for Asking { path, kind, reason } in asking {
        let _ = writeln!(text, "  {bold}{kind:10}{bold:#}  {}  ({reason})", named(path));
    }
    text
}

/// Asks the person at the terminal for a yes; without one there is none.
pub(crate) fn is_trusted(asking: &[Asking]) -> bool {
    if asking.is_empty() || !is_at_terminal() {
        return false;
    }
    begin_review();
    crate::output::err!("These run something, or are trusted, where they go:\n{}", listed(asking));
    confirmed("Let them go there? [y/n] ")
}
