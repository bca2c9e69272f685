//! All operations of the Worker API. The server's routes and the OpenAPI document are both made from this list.

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "what each is for is its summary")]
pub enum Operation {
    Alive,
    Ready,
    Metrics,
    Describe,
    RunJob,
    StopJob,
    StopAll,
    ListJobs,
    ShowJob,
    FollowJob,
    CancelJob,
    AcknowledgeJob,
    FetchArtifact,
    OpenSession,
    ListSessions,
    ShowSession,
    ExecInSession,
    EndSession,
    OpenPty,
    SendPty,
    ResizePty,
    ClosePty,
    ReceivePty,
    AttachPty,
    ProxyHttp,
    IssueToken,
    RevokeToken,
    CallTool,
    IssueGrant,
    ListGrants,
    RevokeGrant,
    ValidateGrant,
    ListApprovals,
    ShowApproval,
    ApproveCall,
    DenyCall,
    ListTrust,
    ShowTrust,
    RecordTrustEvent,
    ApprovePromotion,
    DenyPromotion,
    SetTrustLevel,
    VerifyAgent,
    NodeInfo,
    NodeStats,
    ListContainers,
    ShowContainer,
    ReadLogs,
}

/// HTTP method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
}

// === impl Method ===

impl Method {
    /// Returns the method as it is written in a request.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

// === impl Operation ===

impl Operation {
    /// All operations.
    pub const ALL: [Self; 48] = [
        Self::Alive,
        Self::Ready,
        Self::Metrics,
        Self::Describe,
        Self::RunJob,
        Self::StopJob,
        Self::StopAll,
        Self::ListJobs,
        Self::ShowJob,
        Self::FollowJob,
        Self::CancelJob,
        Self::AcknowledgeJob,
        Self::FetchArtifact,
        Self::OpenSession,
        Self::ListSessions,
        Self::ShowSession,
        Self::ExecInSession,
        Self::EndSession,
        Self::OpenPty,
        Self::SendPty,
        Self::ResizePty,
        Self::ClosePty,
        Self::ReceivePty,
        Self::AttachPty,
        Self::ProxyHttp,
        Self::IssueToken,
        Self::RevokeToken,
        Self::CallTool,
        Self::IssueGrant,
        Self::ListGrants,
        Self::RevokeGrant,
        Self::ValidateGrant,
        Self::ListApprovals,
        Self::ShowApproval,
        Self::ApproveCall,
        Self::DenyCall,
        Self::ListTrust,
        Self::ShowTrust,
        Self::RecordTrustEvent,
        Self::ApprovePromotion,
        Self::DenyPromotion,
        Self::SetTrustLevel,
        Self::VerifyAgent,
        Self::NodeInfo,
        Self::NodeStats,
        Self::ListContainers,
        Self::ShowContainer,
        Self::ReadLogs,
    ];

    /// Returns the method and the path, with names of parameters in braces.
    pub const fn route(self) -> (Method, &'static str) {
        use Method::{Get, Post};
        match self {
            Self::Alive => (Get, "/healthz"),
            Self::Ready => (Get, "/readyz"),
            Self::Metrics => (Get, "/metrics"),
            Self::Describe => (Get, "/v1/worker/openapi.json"),
            Self::RunJob => (Post, "/v1/worker/jobs:run"),
            Self::StopJob => (Post, "/v1/worker/jobs:stop"),
            Self::StopAll => (Post, "/v1/worker/admin/stop-all-orchestrator-directed"),
            Self::ListJobs => (Get, "/v1/worker/jobs"),
            Self::ShowJob => (Get, "/v1/worker/jobs/{job_id}"),
            Self::FollowJob => (Get, "/v1/worker/jobs/{job_id}/events"),
            Self::CancelJob => (Post, "/v1/worker/jobs/{job_id}:cancel"),
            Self::AcknowledgeJob => (Post, "/v1/worker/jobs/{job_id}:ack"),
            Self::FetchArtifact => (Get, "/v1/worker/jobs/{job_id}/artifacts/{sha256}"),
            Self::OpenSession => (Post, "/v1/worker/sessions"),
            Self::ListSessions => (Get, "/v1/worker/sessions"),
            Self::ShowSession => (Get, "/v1/worker/sessions/{session_id}"),
            Self::ExecInSession => (Post, "/v1/worker/sessions/{session_id}/exec"),
            Self::EndSession => (Post, "/v1/worker/sessions/{session_id}/end"),
            Self::OpenPty => (Post, "/v1/worker/sessions/{session_id}/pty:open"),
            Self::SendPty => (Post, "/v1/worker/sessions/{session_id}/pty:send"),
            Self::ResizePty => (Post, "/v1/worker/sessions/{session_id}/pty:resize"),
            Self::ClosePty => (Post, "/v1/worker/sessions/{session_id}/pty:close"),
            Self::ReceivePty => (Get, "/v1/worker/sessions/{session_id}/pty:recv"),
            Self::AttachPty => (Get, "/v1/worker/sessions/{session_id}/pty:attach"),
            Self::ProxyHttp => (Post, "/v1/worker/managed-services/{service_id}/proxy:http"),
            Self::IssueToken => (Post, "/v1/worker/mcp/tokens"),
            Self::RevokeToken => (Post, "/v1/worker/mcp/tokens:revoke"),
            Self::CallTool => (Post, "/v1/worker/tools:call"),
            Self::IssueGrant => (Post, "/v1/worker/grants"),
            Self::ListGrants => (Get, "/v1/worker/grants"),
            Self::RevokeGrant => (Post, "/v1/worker/grants/{grant_id}/revoke"),
            Self::ValidateGrant => (Post, "/v1/worker/grants/{grant_id}/validate"),
            Self::ListApprovals => (Get, "/v1/worker/approvals"),
            Self::ShowApproval => (Get, "/v1/worker/approvals/{approval_id}"),
            Self::ApproveCall => (Post, "/v1/worker/approvals/{approval_id}:approve"),
            Self::DenyCall => (Post, "/v1/worker/approvals/{approval_id}:deny"),
            Self::ListTrust => (Get, "/v1/worker/trust"),
            Self::ShowTrust => (Get, "/v1/worker/trust/{agent_id}"),
            Self::RecordTrustEvent => (Post, "/v1/worker/trust/{agent_id}/events"),
            Self::ApprovePromotion => (Post, "/v1/worker/trust/{agent_id}/proposals/{proposal_id}:approve"),
            Self::DenyPromotion => (Post, "/v1/worker/trust/{agent_id}/proposals/{proposal_id}:deny"),
            Self::SetTrustLevel => (Post, "/v1/worker/trust/{agent_id}/level"),
            Self::VerifyAgent => (Post, "/v1/worker/trust/{agent_id}/verification"),
            Self::NodeInfo => (Get, "/v1/worker/telemetry/node:info"),
            Self::NodeStats => (Get, "/v1/worker/telemetry/node:stats"),
            Self::ListContainers => (Get, "/v1/worker/telemetry/containers"),
            Self::ShowContainer => (Get, "/v1/worker/telemetry/containers/{container_id}"),
            Self::ReadLogs => (Get, "/v1/worker/telemetry/logs"),
        }
    }

    /// Returns true if no token is required.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Alive | Self::Ready)
    }

    /// Returns a summary in one line.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Alive => "Check liveness",
            Self::Ready => "Check readiness",
            Self::Metrics => "Get metrics in the Prometheus format",
            Self::Describe => "This document",
            Self::RunJob => "Submit a job; waits for its result by default",
            Self::StopJob => "Stop a job gracefully; kills it after the grace period",
            Self::StopAll => "Stop all jobs and end all sessions",
            Self::ListJobs => "List jobs, newest first",
            Self::ShowJob => "Get a job, with its outcome once it has ended",
            Self::FollowJob => "Stream the events of a job",
            Self::CancelJob => "Cancel a job at once",
            Self::AcknowledgeJob => "Acknowledge the result of a job",
            Self::FetchArtifact => "Download an artifact of a job",
            Self::OpenSession => "Open a session",
            Self::ListSessions => "List sessions, newest first",
            Self::ShowSession => "Get a session",
            Self::ExecInSession => "Run a command in a session",
            Self::EndSession => "End a session",
            Self::OpenPty => "Open a terminal in a session",
            Self::SendPty => "Send input to a terminal",
            Self::ResizePty => "Resize a terminal",
            Self::ClosePty => "Close a terminal, and kill its program",
            Self::ReceivePty => "Receive the output of a terminal",
            Self::AttachPty => "Attach to a terminal through a WebSocket",
            Self::ProxyHttp => "Forward a request to a managed service",
            Self::IssueToken => "Issue a token for a remote agent that calls the node's tools",
            Self::RevokeToken => "Revoke a token of a remote agent",
            Self::CallTool => "Call a tool as the operator",
            Self::IssueGrant => "Issue a grant for executing graphs in sandboxes",
            Self::ListGrants => "List grants, oldest first",
            Self::RevokeGrant => "Revoke a grant",
            Self::ValidateGrant => "Check whether a grant covers the execution of a graph in a sandbox",
            Self::ListApprovals => "List approvals, newest first",
            Self::ShowApproval => "Get an approval, with its status and decision",
            Self::ApproveCall => "Approve one call with exactly these arguments",
            Self::DenyCall => "Deny a call",
            Self::ListTrust => "List agents with trust events and their levels, by name",
            Self::ShowTrust => "Get the trust level of an agent, its history and its open proposals",
            Self::RecordTrustEvent => "Record a trust event; repeated event ids have no effect",
            Self::ApprovePromotion => "Approve a proposed promotion",
            Self::DenyPromotion => "Deny a proposed promotion",
            Self::SetTrustLevel => "Set the trust level of an agent",
            Self::VerifyAgent => "Record that an agent was verified again",
            Self::NodeInfo => "Get the identity of the node",
            Self::NodeStats => "Get the resource usage of the machine",
            Self::ListContainers => "List sandboxes, newest first",
            Self::ShowContainer => "Get a sandbox",
            Self::ReadLogs => "Read log events, oldest first",
        }
    }

    /// Returns the operations at a request's path.
    pub fn at(path: &str) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |operation| is_at(operation.route().1, path))
    }
}

fn is_at(template: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if is_segment(wanted, found) => {}
            _ => return false,
        }
    }
}

/// A parameter is whatever has no verb behind it but the one that is wanted.
fn is_segment(wanted: &str, found: &str) -> bool {
    match wanted.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        None => wanted == found,
        Some((_, verb)) => {
            found.strip_suffix(verb).is_some_and(|value| !value.is_empty() && !value.contains(':'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_lookup_matches_exact_routes_only() {
        for operation in Operation::ALL {
            let path = operation.route().1.replace(['{', '}'], "");
            assert!(Operation::at(&path).any(|found| found == operation), "{path}");
        }
        let at = |path: &str| Operation::at(path).collect::<Vec<_>>();
        assert_eq!(at("/v1/worker/jobs/x"), [Operation::ShowJob]);
        assert_eq!(at("/v1/worker/jobs/x:ack"), [Operation::AcknowledgeJob]);
        assert_eq!(at("/v1/worker/sessions"), [Operation::OpenSession, Operation::ListSessions]);
        for nothing in ["/v1/worker/jobs/x:other", "/v1/worker/jobs/", "/v1/worker/jobs/x/y/z", ""] {
            assert_eq!(at(nothing), [], "{nothing}");
        }
    }
}
