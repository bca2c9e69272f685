//! API calls to a forge.

use super::error::PullRequestError;
use super::plan::{PullRequestContent, PullRequestPlan};
use super::shape;
use belljar_contract::id::RunId;
use belljar_egress::api::{ApiAnswer, ApiCall, ApiCaller, ApiError, Caller};
use belljar_egress::upstream::names::NameSource;
use belljar_egress::web::ledger::WebLedger;
use belljar_journal::RunJournal;
use belljar_policy::git::ForgeKind;
use serde_json::Value;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The forge's API, for one repository.
pub(super) struct ForgeApi<'f> {
    order: &'f PullRequestPlan,
    caller: ApiCaller,
    runtime: Runtime,
    run_id: RunId,
    book: Arc<RunJournal>,
    /// Path of the repository's pull requests.
    path: String,
}

/// The branches of a pull request.
pub(super) struct Branches<'b> {
    pub(super) head: &'b str,
    pub(super) base: &'b str,
}

/// Maximum number of pages of open pull requests that are searched. If it is on a later page, the forge refuses a second one.
const MOST_PAGES: usize = 20;

// === impl ForgeApi ===

impl<'f> ForgeApi<'f> {
    pub(super) fn reach(
        order: &'f PullRequestPlan,
        names: NameSource,
        (book, run_id): (&Arc<RunJournal>, RunId),
    ) -> Result<Self, PullRequestError> {
        let start = |source| PullRequestError::Start { source };
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(start)?;
        let caller = ApiCaller::start_with(names).map_err(start)?;
        let mut forge = Self { order, caller, runtime, run_id, book: Arc::clone(book), path: String::new() };
        let number = match order.forge.kind {
            ForgeKind::GitLab => forge.number()?,
            ForgeKind::GitHub | ForgeKind::Gitea => 0,
        };
        forge.path = shape::requests(order.forge.kind, &order.project, number);
        Ok(forge)
    }

    /// Returns the URL of the open pull request for these branches.
    pub(super) fn find(&self, branches: &Branches<'_>) -> Result<Option<String>, PullRequestError> {
        let kind = self.order.forge.kind;
        for page in 1..=MOST_PAGES {
            let query = shape::listing(kind, &self.order.project, branches, page);
            let answer = self.call("GET", &self.path, &query, Vec::new())?;
            let listed = listed(&answer)?;
            let found = listed.iter().find_map(|one| shape::url_for(kind, one, branches));
            if let Some(url) = found {
                return Ok(Some(url.to_owned()));
            }
            if listed.is_empty() || !has_more(&answer) {
                break;
            }
        }
        Ok(None)
    }

    /// Opens a pull request, and returns its URL.
    pub(super) fn open(
        &self,
        branches: &Branches<'_>,
        said: &PullRequestContent,
    ) -> Result<String, PullRequestError> {
        let kind = self.order.forge.kind;
        let body = shape::opening(kind, branches, said).to_string().into_bytes();
        let answer = self.call("POST", &self.path, &[], body)?;
        if answer.status != 201 {
            return Err(refused(&answer));
        }
        let opened: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        shape::url(kind, &opened).map(str::to_owned).ok_or(PullRequestError::Unreadable)
    }

    /// Returns GitLab's number of the project.
    fn number(&self) -> Result<u64, PullRequestError> {
        let project = self.order.project.path();
        let query = [
            ("search", project.clone()),
            ("search_namespaces", "true".to_owned()),
            ("simple", "true".to_owned()),
            ("per_page", "100".to_owned()),
        ];
        let listed = listed(&self.call("GET", shape::PROJECTS, &query, Vec::new())?)?;
        let is_it = |one: &&Value| {
            one["path_with_namespace"].as_str().is_some_and(|path| path.eq_ignore_ascii_case(&project))
        };
        let number = listed.iter().find(is_it).and_then(|one| one["id"].as_u64());
        number.ok_or(PullRequestError::NoProject { project })
    }

    fn call(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<ApiAnswer, ApiError> {
        let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let headers = [("accept", "application/json"), ("content-type", "application/json")];
        let call = ApiCall {
            method: method.to_owned(),
            path: path.to_owned(),
            query: (!query.is_empty()).then(|| query.join("&")),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body,
            // The operator has approved the call by requesting the pull request.
            is_approved: true,
        };
        let ledger = Arc::clone(&self.book) as Arc<dyn WebLedger>;
        let caller = Caller { run_id: self.run_id.clone(), ledger };
        self.runtime.block_on(self.caller.call(&self.order.connection, call, caller))
    }
}

fn listed(answer: &ApiAnswer) -> Result<Vec<Value>, PullRequestError> {
    match answer.status {
        200 => serde_json::from_slice(&answer.body).map_err(|_| PullRequestError::Unreadable),
        _ => Err(refused(answer)),
    }
}

/// Returns true if there is another page (RFC 8288).
fn has_more(answer: &ApiAnswer) -> bool {
    answer.headers.iter().any(|(name, value)| name == "link" && value.contains("rel=\"next\""))
}

fn refused(answer: &ApiAnswer) -> PullRequestError {
    PullRequestError::Refused { status: answer.status, said: shape::complaint(&answer.body) }
}

/// Percent-encodes a value of a query.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let write = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(write).collect()
}
