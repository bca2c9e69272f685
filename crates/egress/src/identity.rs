//! Who a run is for whoever bills it. It comes from the host alone.

use belljar_contract::id::{JobId, RunId, TaskId};
use serde::Serialize;

/// Who a run is (`spec/2` invariant 10).
#[derive(Debug, Clone)]
pub struct Identity {
    /// The run, which is one session and has one proxy.
    pub run_id: RunId,
    /// Which attempt it is.
    pub attempt: u32,
    /// Who pays. What upstreams call the end user.
    pub billing_account_id: String,
    /// What is run, such as `sandbox:agent`.
    pub graph_id: String,
    /// For whom.
    pub user_id: Option<String>,
    /// The trace that it belongs to.
    pub existing_trace_id: Option<String>,
    /// The session that it belongs to.
    pub session_id: Option<String>,
    /// Who that trace is about.
    pub trace_user_id: Option<String>,
}

/// For which task and job a run is, as far as it is for one. A proxy behind the host's own may be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOwner {
    /// The task.
    pub task_id: Option<TaskId>,
    /// The job.
    pub job_id: Option<JobId>,
}

/// Who the calls of a run are made for and which trace and session they belong to, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallMetadata {
    /// The person that the run is for.
    pub user_id: Option<String>,
    /// The trace that it belongs to.
    pub existing_trace_id: Option<String>,
    /// The session that it belongs to; the run itself if nothing else is said.
    pub session_id: Option<String>,
    /// Who that trace is about; the person that the run is for if nothing else is said.
    pub trace_user_id: Option<String>,
}

/// An identity that can't be written into a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{member} is {found:?}; it must be 1 to 256 visible characters of ASCII")]
pub struct IdentityError {
    /// Which part of it.
    pub member: &'static str,
    /// What it is.
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

/// Whether a text may stand in a header and means nothing else there.
pub fn is_plain(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

// === impl Identity ===

impl Identity {
    /// With what is known of whom the run is for. A run is one session of its own (`spec/2` invariant 12) unless it belongs to
    /// another one.
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

    /// An identity of which nothing more is known than what it is billed by.
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

    /// Whether every part of it may stand in a header and means nothing else there.
    ///
    /// # Errors
    /// [`IdentityError`] with the first that may not.
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

    /// What LiteLLM writes down beside what a call cost.
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
