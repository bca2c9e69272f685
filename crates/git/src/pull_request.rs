//! Opens a pull request for a pushed branch, at most once, even if this process dies at any point.
//!
//! ```text
//! already noted? ─► recorded ─► open already? ─┬─ yes ─► its URL
//!                                              └─ no ─► opened ─► refused, or no answer? ─► open by now? ─► its URL
//! ```
//! The forge accepts only one open pull request for a pair of branches, so a second attempt finds the first one's. The host's
//! token is used; the calls go through `belljar_egress::api`.

mod error;
mod forge;
mod plan;
mod shape;

pub use error::PullRequestError;
pub use plan::{PlanError, PullRequestPlan, PullRequestTexts};

use super::push::{PreparedPush, PullRequestNote, RefOrigin};
use belljar_contract::git::{
    GitOutcome, PULL_REQUEST, PULL_REQUEST_BEGUN, PullRequestRecord, PullRequestStartRecord,
};
use belljar_contract::id::RunId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_egress::api::ApiError;
use belljar_journal::RunJournal;
use forge::{Branches, ForgeApi};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// A pull request that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPullRequest {
    /// Its web page.
    pub url: String,
    /// True if it existed before.
    pub standing: RefOrigin,
}

// === impl PreparedPush ===

impl PreparedPush<'_> {
    /// Opens the requested pull request, unless it exists.
    pub(super) fn open(
        &mut self,
        order: &PullRequestPlan,
        base: &str,
    ) -> Result<OpenPullRequest, PullRequestError> {
        if let Some(noted) = self.note.request_for(base, &self.made.commit) {
            return Ok(OpenPullRequest { url: noted.url.clone(), standing: RefOrigin::AlreadyThere });
        }
        let begun = Instant::now();
        let book = Arc::new(RunJournal::open(self.order.state)?);
        let calls_run_id = self.run_id().unwrap_or_else(|| RunId::from_uuid(Uuid::now_v7()));
        belljar_failpoint::before("git_pull_request_begun");
        book.enter(
            PULL_REQUEST_BEGUN,
            self.run_id().as_ref(),
            &self.request_begun(order, base, &calls_run_id),
        )?;
        belljar_failpoint::after("git_pull_request_begun");
        let opened = self.ask(order, base, (&book, calls_run_id));
        let record = PullRequestRecord {
            run_id: self.run_id(),
            remote: Excerpt::of(&self.order.remote.to_string()),
            branch: Excerpt::of(self.order.branch.as_str()),
            base: Excerpt::of(base),
            url: opened.as_ref().ok().map(|opened| Excerpt::of(&opened.url)),
            outcome: outcome(&opened),
            total_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        belljar_failpoint::before("git_pull_request_record");
        let recorded = book.close(PULL_REQUEST, self.run_id().as_ref(), &record);
        belljar_failpoint::after("git_pull_request_record");
        let opened = opened?;
        recorded?;
        self.note.pull_request = Some(PullRequestNote {
            base: base.to_owned(),
            commit: self.made.commit.clone(),
            url: opened.url.clone(),
        });
        belljar_failpoint::before("git_pull_request_note");
        self.note.keep(self.order.base).map_err(|source| PullRequestError::Note { source })?;
        belljar_failpoint::after("git_pull_request_note");
        Ok(opened)
    }

    fn ask(
        &self,
        order: &PullRequestPlan,
        base: &str,
        (book, run_id): (&Arc<RunJournal>, RunId),
    ) -> Result<OpenPullRequest, PullRequestError> {
        let forge = ForgeApi::reach(order, self.order.names.clone(), (book, run_id))?;
        let branches = Branches { head: self.order.branch.as_str(), base };
        let already = |url| OpenPullRequest { url, standing: RefOrigin::AlreadyThere };
        if let Some(url) = forge.find(&branches)? {
            return Ok(already(url));
        }
        let words = self.order.words(self.note.at);
        belljar_failpoint::before("git_pull_request");
        let opened = forge.open(&branches, &order.says(&words.text(), branches.head));
        belljar_failpoint::after("git_pull_request");
        match opened {
            Ok(url) => Ok(OpenPullRequest { url, standing: RefOrigin::New }),
            // The call was denied here, so nothing was sent.
            Err(PullRequestError::Api(error)) if error.is_refusal() => Err(error.into()),
            // Another attempt may have come first, or only the response was lost.
            Err(error) => forge.find(&branches).ok().flatten().map(already).ok_or(error),
        }
    }

    fn request_begun(
        &self,
        order: &PullRequestPlan,
        base: &str,
        calls_run_id: &RunId,
    ) -> PullRequestStartRecord {
        PullRequestStartRecord {
            run_id: self.run_id(),
            calls_run_id: calls_run_id.clone(),
            remote: Excerpt::of(&self.order.remote.to_string()),
            branch: Excerpt::of(self.order.branch.as_str()),
            commit: Excerpt::of(self.commit()),
            base: Excerpt::of(base),
            connection: Excerpt::of(order.connection()),
            started_at: Timestamp::now(),
        }
    }
}

fn outcome(opened: &Result<OpenPullRequest, PullRequestError>) -> GitOutcome {
    match opened {
        Ok(OpenPullRequest { standing: RefOrigin::New, .. }) => GitOutcome::Completed,
        Ok(OpenPullRequest { standing: RefOrigin::AlreadyThere, .. }) => GitOutcome::AlreadyThere,
        Err(error @ PullRequestError::Api(api)) if ApiError::is_refusal(api) => {
            GitOutcome::Denied { reason: ReasonCode::of(error.code()) }
        }
        Err(error) => GitOutcome::Failed { code: ReasonCode::of(error.code()) },
    }
}
