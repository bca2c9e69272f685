//! Decides whether a grant covers the execution of a graph in a sandbox (`docs/contracts/agents.md#a1.3`).
//!
//! Sandboxes are for services: a user's grant never opens one, whatever its scopes. No scope implies a permission that was not
//! given explicitly.

use belljar_contract::grant::{ExecutionGrant, GrantSubject};
use jiff::Timestamp;

/// Grant that covers the execution of one graph in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedExecution {
    grant: ExecutionGrant,
    graph_id: String,
}

/// Reason why nothing is executed. Its code is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// The grant does not exist.
    #[error("grant not found")]
    NotFound,
    /// The caller's secret or signature is not the one that the grant was issued with.
    #[error("the secret or the signature doesn't match the grant")]
    NotProven,
    /// The grant was revoked.
    #[error("the grant was revoked")]
    Revoked,
    /// The grant has expired.
    #[error("the grant has expired")]
    Expired,
    /// The grant belongs to a user, not to a service.
    #[error("the grant belongs to a user; only services may start sandbox agents")]
    NotSystem,
    /// The grant has another scope.
    #[error("the grant has no scope for this graph")]
    ScopeMismatch,
    /// The grant doesn't mention sandboxes.
    #[error("the grant does not allow sandboxes")]
    SandboxNotAllowed,
}

/// Decides whether the graph may be executed in a sandbox at this time.
///
/// # Errors
/// [`GrantRefusal`], with the first reason in the order of its variants.
pub fn entitle(
    grant: ExecutionGrant,
    graph_id: &str,
    now: Timestamp,
) -> Result<GrantedExecution, GrantRefusal> {
    if grant.revoked_at.is_some() {
        return Err(GrantRefusal::Revoked);
    }
    if grant.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(GrantRefusal::Expired);
    }
    if matches!(grant.subject, GrantSubject::User(_)) {
        return Err(GrantRefusal::NotSystem);
    }
    if !grant.scopes.iter().any(|scope| scope.covers(graph_id)) {
        return Err(GrantRefusal::ScopeMismatch);
    }
    if !grant.allow_sandbox {
        return Err(GrantRefusal::SandboxNotAllowed);
    }
    Ok(GrantedExecution { grant, graph_id: graph_id.to_owned() })
}

// === impl GrantedExecution ===

impl GrantedExecution {
    /// Returns the grant.
    pub fn grant(&self) -> &ExecutionGrant {
        &self.grant
    }

    /// Returns the id of the graph.
    pub fn graph_id(&self) -> &str {
        &self.graph_id
    }
}

// === impl GrantRefusal ===

impl GrantRefusal {
    /// Returns the stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotFound => "grant_not_found",
            Self::NotProven => "grant_not_proven",
            Self::Revoked => "grant_revoked",
            Self::Expired => "grant_expired",
            Self::NotSystem => "grant_not_system",
            Self::ScopeMismatch => "grant_scope_mismatch",
            Self::SandboxNotAllowed => "grant_sandbox_not_allowed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::grant::GrantScope;
    use belljar_contract::id::GrantId;

    const GRAPH: &str = "sandbox:codex";

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn grant() -> ExecutionGrant {
        ExecutionGrant {
            id: GrantId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").unwrap(),
            subject: GrantSubject::Service("scheduler".to_owned()),
            billing_account_id: "account-7".to_owned(),
            user_id: None,
            scopes: vec![GrantScope::Graph(GRAPH.to_owned())],
            allow_sandbox: true,
            expires_at: Some(time("2026-02-01T00:00:00Z")),
            revoked_at: None,
        }
    }

    fn decided(grant: ExecutionGrant, now: &str) -> Result<String, &'static str> {
        let entitled = entitle(grant, GRAPH, time(now)).map_err(GrantRefusal::code)?;
        Ok(entitled.graph_id().to_owned())
    }

    #[test]
    fn complete_grant_covers_a_graph_until_it_expires() {
        assert_eq!(decided(grant(), "2026-01-31T23:59:59.999Z"), Ok(GRAPH.to_owned()));
        assert_eq!(decided(grant(), "2026-02-01T00:00:00Z"), Err("grant_expired"));
        let forever = ExecutionGrant { expires_at: None, ..grant() };
        assert_eq!(decided(forever, "2999-01-01T00:00:00Z"), Ok(GRAPH.to_owned()));
    }

    #[test]
    fn each_missing_part_of_a_grant_has_its_refusal() {
        let now = "2026-01-15T00:00:00Z";
        let any = vec![GrantScope::AnyGraph];
        let others = ["sandbox:code", "sandbox:codex2", "sandbox:Codex"]
            .map(|graph| GrantScope::Graph(graph.to_owned()));
        let user = GrantSubject::User("scheduler".to_owned());
        assert_eq!(decided(ExecutionGrant { scopes: any.clone(), ..grant() }, now), Ok(GRAPH.to_owned()));
        let refusals = [
            (ExecutionGrant { revoked_at: Some(time("2026-03-01T00:00:00Z")), ..grant() }, "grant_revoked"),
            (ExecutionGrant { subject: user, scopes: any.clone(), ..grant() }, "grant_not_system"),
            (ExecutionGrant { scopes: Vec::new(), ..grant() }, "grant_scope_mismatch"),
            (ExecutionGrant { scopes: others.to_vec(), ..grant() }, "grant_scope_mismatch"),
            (ExecutionGrant { allow_sandbox: false, scopes: any, ..grant() }, "grant_sandbox_not_allowed"),
        ];
        for (grant, code) in refusals {
            assert_eq!(decided(grant, now), Err(code));
        }
    }
}
