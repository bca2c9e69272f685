//! Approval of paths that gain trust when a sandbox's changes are applied: they are listed, and the user is asked about them.

use crate::error::CliError;
use crate::prompt::{confirmed, is_at_terminal};
use crate::terminal::begin_review;
use anstyle::{AnsiColor, Style};
use belljar_policy::handoff::ApprovedPaths;
use belljar_policy::untrusted::named;
use belljar_sandbox::kept::KeptError;
use belljar_sandbox::session::{FinishCommitError, PathApproval, Refusal, SessionError};
use belljar_sandbox::workspace::apply::ApplyError;
use std::fmt::Write as _;

/// Paths that the user approves.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TrustArguments {
    /// Approve this path, which is executed or trusted at its destination; with a slash at its end, everything below it
    #[arg(long, value_name = "PATH", help_heading = "Trust")]
    trust: Vec<String>,
    /// Approve all such paths
    #[arg(long, conflicts_with = "trust", help_heading = "Trust")]
    trust_all: bool,
}

// === impl TrustArguments ===

impl TrustArguments {
    pub(crate) fn trust(&self) -> ApprovedPaths {
        match self.trust_all {
            true => ApprovedPaths::in_all(),
            false => ApprovedPaths::in_paths(self.trust.iter().cloned()),
        }
    }

    /// Returns true if no path is approved.
    pub(crate) fn is_empty(&self) -> bool {
        !self.trust_all && self.trust.is_empty()
    }

    /// Calls `act` with the approved paths. If that fails because further paths need an approval, and the user at the terminal gives it,
    /// calls `act` once more.
    pub(crate) fn with_yes<T>(
        &self,
        mut act: impl FnMut(&ApprovedPaths) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let done = act(&self.trust());
        match done.as_ref().err().and_then(asked) {
            Some(asking) if is_trusted(&asking) => {
                // Only the paths shown are approved, not paths that have appeared since.
                act(&self.trust().and_in(asking.into_iter().map(|asking| asking.path)))
            }
            _ => done,
        }
    }
}

/// Returns the paths that need an approval, if their lack of one caused the error.
pub(crate) fn asked(error: &CliError) -> Option<Vec<PathApproval>> {
    match error {
        CliError::Apply(ApplyError::Handoff { findings })
        | CliError::Kept(KeptError::Apply(ApplyError::Handoff { findings })) => {
            Some(findings.iter().map(PathApproval::of).collect())
        }
        CliError::Interrupted(FinishCommitError::Apply(ApplyError::Handoff { findings })) => {
            Some(findings.iter().map(PathApproval::of).collect())
        }
        CliError::Session(SessionError::Refused(Refusal::Handoff { asking, .. })) => Some(asking.clone()),
        _ => None,
    }
}

/// Formats the paths that gain trust, one per line, each with its reason.
pub(crate) fn listed(asking: &[PathApproval]) -> String {
    let bold = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    let mut text = String::new();
    for PathApproval { path, kind, reason } in asking {
        let _ = writeln!(text, "  {bold}{kind:10}{bold:#}  {}  ({reason})", named(path));
    }
    text
}

/// Asks the user at the terminal for an approval. Returns false without a terminal or if no path is listed.
pub(crate) fn is_trusted(asking: &[PathApproval]) -> bool {
    if asking.is_empty() || !is_at_terminal() {
        return false;
    }
    begin_review();
    crate::output::err!("These files are executed or trusted at their destination:\n{}", listed(asking));
    confirmed("Approve them? [y/n] ")
}
