//! Identity of a run for billing. Only the host sets it.

use belljar_contract::id::{JobId, RunId, TaskId};
use serde::Serialize;

/// Identity of a run (`docs/contracts/agents.md#a1.10`).
#[derive(Debug, Clone)]
pub struct Identity {
    /// Id of the run, which is one session and has one proxy.
    pub run_id: RunId,
    /// Number of the attempt.
    pub attempt: u32,
    /// Account that pays. Upstreams call it the end user.
    pub billing_account_id: String,
    /// Name of what runs, such as `sandbox:agent`.
    pub graph_id: String,
    /// User that the run is for.
    pub user_id: Option<String>,
    /// Trace that the run belongs to.
    pub existing_trace_id: Option<String>,
    /// Session that the run belongs to.
    pub session_id: Option<String>,
    /// User that the trace is about.
    pub trace_user_id: Option<String>,
}

/// Task and job of a run, if it has any. Requests to an upstream proxy may name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOwner {
    /// Task of the run.
    pub task_id: Option<TaskId>,
    /// Job of the run.
    pub job_id: Option<JobId>,
}

/// User, trace and session of a run's calls, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallMetadata {
    /// User that the run is for.
    pub user_id: Option<String>,
    /// Trace that the run belongs to.
    pub existing_trace_id: Option<String>,
    /// Session that the run belongs to. Default: the run itself.
    pub session_id: Option<String>,
    /// User that the trace is about. Default: the user that the run is for.
    pub trace_user_id: Option<String>,
}

/// Identity that can't be written into a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{member} is {found:?}; it must be 1 to 256 visible characters of ASCII")]
pub struct IdentityError {
    /// Name of the invalid part.
    pub member: &'static str,
    /// Its value.
    pub found: String,
}

#[derive(Serialize)]
struct Metadata<'i> {
    run_id: &'i str,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'i str>,
    graph_id: &'i str,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_trace_id: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_user_id: Option<&'i str>,
}

const LONGEST: usize = 256;

/// Returns true if a text may stand in a header, where it has no special meaning.
pub fn is_plain(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

// === impl Identity ===

impl Identity {
    /// Adds the known metadata of the run. A run is one session of its own (`docs/contracts/agents.md#a1.12`) unless it
    /// belongs to another one.
    #[must_use]
    pub fn with_metadata(self, metadata: CallMetadata) -> Self {
        let CallMetadata { user_id, existing_trace_id, session_id, trace_user_id } = metadata;
        Self {
            existing_trace_id,
            session_id: session_id.or_else(|| Some(self.run_id.to_string())),
            trace_user_id: trace_user_id.or_else(|| user_id.clone()),
            user_id,
            ..self
        }
    }

    /// Creates an identity with only what billing needs.
    pub fn new(run_id: RunId, attempt: u32, billing_account_id: String, graph_id: String) -> Self {
        let identity = Self {
            run_id,
            attempt,
            billing_account_id,
            graph_id,
            user_id: None,
            existing_trace_id: None,
            session_id: None,
            trace_user_id: None,
        };
        identity.with_metadata(CallMetadata::default())
    }

    /// Checks that every part may stand in a header, where it has no special meaning.
    ///
    /// # Errors
    /// [`IdentityError`], for the first part that may not.
    pub fn check(&self) -> Result<(), IdentityError> {
        let required = [("billing_account_id", &self.billing_account_id), ("graph_id", &self.graph_id)];
        let optional = [
            ("user_id", &self.user_id),
            ("existing_trace_id", &self.existing_trace_id),
            ("session_id", &self.session_id),
            ("trace_user_id", &self.trace_user_id),
        ];
        let optional = optional.iter().filter_map(|(member, value)| Some((*member, value.as_ref()?)));
        for (member, value) in required.into_iter().chain(optional) {
            if !is_plain(value) {
                return Err(IdentityError { member, found: value.clone() });
            }
        }
        Ok(())
    }

    /// Returns the metadata that LiteLLM records with a call's cost.
    pub(crate) fn metadata(&self) -> String {
        let metadata = Metadata {
            run_id: self.run_id.as_str(),
            attempt: self.attempt,
            user_id: self.user_id.as_deref(),
            graph_id: &self.graph_id,
            existing_trace_id: self.existing_trace_id.as_deref(),
            session_id: self.session_id.as_deref(),
            trace_user_id: self.trace_user_id.as_deref(),
        };
        // Text and numbers can always be written.
        serde_json::to_string(&metadata).unwrap_or_default()
    }
}
