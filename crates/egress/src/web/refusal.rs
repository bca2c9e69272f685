//! Refusals, as the client of the proxy gets them.

use crate::client::RequestFault;
use crate::http1::MalformedHttp;
use crate::upstream::{ConnectError, DialAllowedError};
use belljar_contract::egress::UNREACHED;
use belljar_policy::egress::{DenyReason, EgressDenial, Host, InvalidHost};

/// Reason why a request or tunnel is refused. The text is for programs in the sandbox: it reveals nothing about the rules or
/// about the addresses that names resolve to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("malformed request: {0}")]
    Malformed(MalformedHttp),
    #[error("the request's head is larger than {most} bytes")]
    HeadTooLarge { most: usize },
    #[error("the request's body is larger than {most} bytes")]
    BodyTooLarge { most: usize },
    #[error("the request took too long to arrive")]
    TooSlow,
    #[error("this is a forward proxy: it accepts CONNECT, and requests with an absolute http:// URL")]
    NotForProxy,
    #[error("the host can't be read: {0}")]
    Host(#[from] InvalidHost),
    #[error("the host must be followed by a port from 1 to 65535")]
    Port,
    #[error("the Host header names another host than the request's target")]
    OtherHost,
    #[error("CONNECT has no body")]
    BodyOfTunnel,
    #[error("a {method} request can't have a body where rules restrict methods or paths")]
    BodyOfReading { method: String },
    #[error("{header} names another resource, which the request is not allowed to use")]
    OtherResource { header: String },
    #[error("{} is not allowed{}", .0.destination, because(.0.reason))]
    Denied(EgressDenial),
    #[error(
        "rules for {destination} need TLS interception, which is off in this run: use http://, or start another run"
    )]
    Uninspected { destination: String },
    #[error("{placeholder} can't be replaced by a credential there")]
    Unfilled { placeholder: String },
    #[error("the credential for a placeholder is not available at present")]
    NoCredential,
    #[error("the request can't be signed again: {why}")]
    Unsigned { why: &'static str },
    #[error("the identity of {host} can't be verified")]
    Untrusted { host: String },
    #[error("the answer of {host} contains an injected credential, or can't be scanned for one")]
    Repeated { host: String },
    #[error("{host} does not resolve to an address")]
    NoSuchHost { host: String },
    #[error("name lookup for {host} timed out")]
    NoAnswer { host: String },
    #[error("the upstream proxy denies {host}")]
    RefusedElsewhere { host: String },
    #[error("the upstream proxy for {host} can't be used")]
    NoUpstreamProxy { host: String },
    #[error("{host} can't be reached")]
    Unreachable { host: String },
    #[error("{host} sent a malformed answer")]
    BadAnswer { host: String },
    #[error("{host} did not answer in time")]
    Silent { host: String },
    #[error("the answer of {host} is larger than {most} bytes")]
    AnswerTooLarge { host: String, most: usize },
    #[error("{destination} is not allowed any more")]
    NoLongerAllowed { destination: String },
    #[error("the byte limit of this run is reached")]
    Spent,
    #[error("the audit records of this run have reached their quota, so no further request is allowed")]
    AuditQuota,
    #[error("requests can't be recorded at present, so none are sent")]
    NotRecorded,
}

/// Part of the denial's reason that the client may know, if there is any.
fn because(reason: DenyReason) -> &'static str {
    match reason {
        DenyReason::NameSaysTooMuch => {
            ": its name is longer, or carries more data, than a wildcard rule permits"
        }
        DenyReason::TooManyNames => {
            ": this run has reached its limit of different names under a wildcard rule"
        }
        _ => "",
    }
}

// === impl Refusal ===

impl From<RequestFault> for Refusal {
    fn from(fault: RequestFault) -> Self {
        match fault {
            RequestFault::Malformed(malformed) => Self::Malformed(malformed),
            RequestFault::HeadTooLarge { most } => Self::HeadTooLarge { most },
            RequestFault::BodyTooLarge { most } => Self::BodyTooLarge { most },
            RequestFault::TooSlow => Self::TooSlow,
        }
    }
}

impl Refusal {
    pub(crate) fn of_dial(error: DialAllowedError, host: &str) -> Self {
        let host = host.to_owned();
        match error {
            DialAllowedError::Denied(denied) if denied.reason == DenyReason::NoAddress => {
                Self::NoSuchHost { host }
            }
            DialAllowedError::Denied(denied) => Self::Denied(denied),
            DialAllowedError::NoAnswer => Self::NoAnswer { host },
            DialAllowedError::Failed { .. } => Self::Unreachable { host },
            DialAllowedError::Refused { .. } => Self::RefusedElsewhere { host },
            DialAllowedError::NoProxy { .. } => Self::NoUpstreamProxy { host },
        }
    }

    pub(crate) fn of_connect(error: &ConnectError, host: String) -> Self {
        match error {
            ConnectError::Untrusted { .. }
            | ConnectError::NoTrust { .. }
            | ConnectError::OtherUser { .. } => Self::Untrusted { host },
            ConnectError::Unreachable { .. } | ConnectError::Forbidden => Self::Unreachable { host },
        }
    }

    /// Stable code that the client gets.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_request",
            Self::HeadTooLarge { .. } => "request_head_too_large",
            Self::BodyTooLarge { .. } => "request_body_too_large",
            Self::TooSlow => "request_timeout",
            Self::NotForProxy => "not_a_proxy_request",
            Self::Host(_) => "invalid_host",
            Self::Port => "invalid_port",
            Self::OtherHost => "host_mismatch",
            Self::BodyOfTunnel | Self::BodyOfReading { .. } => "body_not_allowed",
            Self::Denied(denied) => match denied.reason {
                DenyReason::AmbiguousPath => "ambiguous_path",
                DenyReason::Address { .. } | DenyReason::OwnAddress { .. } | DenyReason::TooManyAddresses => {
                    "address_not_allowed"
                }
                reason @ (DenyReason::NameSaysTooMuch | DenyReason::TooManyNames) => reason.code(),
                _ => "not_allowed",
            },
            Self::OtherResource { .. } => "other_resource_not_allowed",
            Self::Uninspected { .. } => "inspection_needed",
            Self::Unfilled { .. } => "credential_unresolved",
            Self::NoCredential => "credential_unavailable",
            Self::Unsigned { .. } => "signature_unsupported",
            Self::Untrusted { .. } => "upstream_untrusted",
            Self::Repeated { .. } => "credential_repeated",
            Self::NoSuchHost { .. } => "no_such_host",
            Self::NoAnswer { .. } => "name_timeout",
            Self::RefusedElsewhere { .. } => "refused_by_upstream_proxy",
            Self::NoUpstreamProxy { .. } => "upstream_proxy_unavailable",
            Self::Unreachable { .. } => "unreachable",
            Self::BadAnswer { .. } => "answer_malformed",
            Self::Silent { .. } => "answer_timeout",
            Self::AnswerTooLarge { .. } => "answer_too_large",
            Self::NoLongerAllowed { .. } => "policy_changed",
            Self::Spent => "bytes_used_up",
            Self::AuditQuota => "audit_quota",
            Self::NotRecorded => "recording_unavailable",
        }
    }

    /// Stable code that is recorded.
    pub(crate) fn recorded_code(&self) -> &'static str {
        match self {
            Self::Denied(denied) => denied.reason.code(),
            other => other.code(),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Malformed(_)
            | Self::NotForProxy
            | Self::Host(_)
            | Self::Port
            | Self::OtherHost
            | Self::Unsigned { .. }
            | Self::BodyOfTunnel
            | Self::BodyOfReading { .. } => 400,
            Self::HeadTooLarge { .. } => 431,
            Self::BodyTooLarge { .. } => 413,
            Self::TooSlow => 408,
            Self::Denied(_) | Self::Uninspected { .. } | Self::Unfilled { .. } | Self::Spent => 403,
            Self::OtherResource { .. } | Self::NoLongerAllowed { .. } | Self::AuditQuota => 403,
            Self::NoSuchHost { .. }
            | Self::Unreachable { .. }
            | Self::RefusedElsewhere { .. }
            | Self::NoUpstreamProxy { .. }
            | Self::Untrusted { .. }
            | Self::Repeated { .. }
            | Self::AnswerTooLarge { .. }
            | Self::BadAnswer { .. } => 502,
            Self::NoAnswer { .. } | Self::Silent { .. } => 504,
            Self::NotRecorded | Self::NoCredential => 503,
        }
    }

    /// Returns true if the run wanted a destination and did not reach it: denied by its rules, refused by an upstream proxy, or
    /// unreachable. Used-up quotas and unreadable requests don't count.
    pub(crate) fn keeps_out(&self) -> bool {
        match self {
            Self::Denied(_)
            | Self::Uninspected { .. }
            | Self::OtherResource { .. }
            | Self::Unfilled { .. }
            | Self::NoLongerAllowed { .. } => true,
            other => UNREACHED.contains(&other.code()),
        }
    }

    /// Returns the smallest rule that would allow the request, if there is one and the client may know it. It may not learn
    /// where a name leads.
    pub(crate) fn needed(&self) -> Option<&str> {
        let Self::Denied(denied) = self else { return None };
        let is_plain = matches!(denied.destination.host, Host::Address(_));
        denied.needed().filter(|_| is_plain || self.code() != "address_not_allowed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unreached_host_refusal_is_listed_as_a_denial() {
        let host = || "a.example".to_owned();
        let all = [
            Refusal::NoSuchHost { host: host() },
            Refusal::NoAnswer { host: host() },
            Refusal::Unreachable { host: host() },
            Refusal::RefusedElsewhere { host: host() },
            Refusal::NoUpstreamProxy { host: host() },
        ];
        assert_eq!(all.each_ref().map(Refusal::code), UNREACHED);
        assert!(all.iter().all(Refusal::keeps_out));
        assert!(!Refusal::Spent.keeps_out() && !Refusal::Silent { host: host() }.keeps_out());
    }
}
