//! Report of a pull request, for people and for programs.

use crate::progress::harmless;
use belljar_contract::agent::AgentPullRequest;
use belljar_contract::text::with_causes;
use belljar_git::{RefOrigin, RequestedPullRequest};
use serde::Serialize;

/// Report of a pull request.
#[derive(Debug, Serialize)]
pub(super) struct PullRequestReport {
    /// `opened`, `already_open` or `failed`.
    outcome: &'static str,
    /// A stable code; null where there is one.
    reason: Option<&'static str>,
    /// The reason in words.
    message: Option<String>,
    /// Where people see it; null where there is none.
    url: Option<String>,
    /// The branch that it is to get into.
    base: String,
}

// === impl PullRequestReport ===

impl PullRequestReport {
    pub(super) fn of(wanted: &RequestedPullRequest) -> Self {
        let base = wanted.base.clone();
        match &wanted.opened {
            Ok(opened) => {
                let outcome = match opened.standing {
                    RefOrigin::New => "opened",
                    RefOrigin::AlreadyThere => "already_open",
                };
                Self { outcome, reason: None, message: None, url: Some(opened.url.clone()), base }
            }
            Err(error) => {
                let message = Some(with_causes(error));
                Self { outcome: "failed", reason: Some(error.code()), message, url: None, base }
            }
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.url.is_some()
    }

    pub(super) fn as_contract(&self) -> AgentPullRequest {
        AgentPullRequest {
            outcome: self.outcome.to_owned(),
            reason: self.reason.map(str::to_owned),
            url: self.url.clone(),
            base: self.base.clone(),
        }
    }

    pub(super) fn tell(&self) {
        match (&self.url, &self.message) {
            (Some(url), _) if self.outcome == "opened" => crate::output::outln!("Opened {url}"),
            (Some(url), _) => crate::output::outln!("{url} was open already"),
            (None, message) => {
                let message = message.as_deref().map(harmless).unwrap_or_default();
                crate::output::errln!("belljar: the branch is there, and has no pull request: {message}");
                crate::output::errln!("\nHint: {}", self.hint());
            }
        }
    }

    fn hint(&self) -> &'static str {
        match self.reason.unwrap_or_default() {
            "forge_forbidden" | "credential_unavailable" => {
                "the credential of the forge's connection must be one that may open pull requests there; the same again opens it"
            }
            "forge_not_found" => {
                "the `url` of the forge's connection must be that of its interface (docs/guides/git.md), and its credential one that may see the project"
            }
            "no_address" => "`networks` of the forge's connection allows addresses of your own network",
            "upstream_untrusted" => {
                "`authorities` of the forge's connection names the certificate authority that signed its certificate"
            }
            _ => "repeat the command to open it, if the forge accepts it then",
        }
    }
}
