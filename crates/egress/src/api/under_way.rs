//! Call under way, from the request to its answer.

use super::call::{ApiAnswer, ApiCall, CALL, Caller};
use super::config::ApiConnection;
use super::error::ApiError;
use super::outgoing;
use crate::credential::InjectedSecret;
use crate::http1::Headers;
use crate::identity::RunOwner;
use crate::upstream::names::NameResolver;
use crate::upstream::{
    ConnectTimeouts, Connection, ConnectionPurpose, ProxyHeaders, RoutedConnection, TrustStore, dial_allowed,
    secure,
};
use belljar_contract::egress::{
    ProxiedRequestOutcome, ProxiedRequestRecord, ProxiedRequestStartRecord, RequestedDestination,
};
use belljar_contract::id::PassageId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_policy::egress::{AllowedDestination, Destination, EgressRequest as Wanted};
use jiff::Timestamp;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

/// Call under way. It is recorded however it ends.
pub(super) struct CallInProgress<'c> {
    connection: &'c ApiConnection,
    call: &'c ApiCall,
    caller: &'c Caller,
    /// Complete path, as it is sent.
    path: String,
    passage_id: PassageId,
    started_at: Timestamp,
    since: Instant,
    address: Option<IpAddr>,
    tls_name: Option<String>,
    status: Option<u16>,
    sent: u64,
    received: u64,
    outcome: ProxiedRequestOutcome,
}

/// State that all calls share.
pub(super) struct ApiCallContext {
    pub(super) names: NameResolver,
    pub(super) trust: TrustStore,
}

/// Headers of an answer that are returned to the caller.
const TO_CALLER: [&str; 9] = [
    "content-range",
    "content-type",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// Maximum size of an answer's body in bytes: 4 MiB.
const MOST_ANSWER: usize = 4 << 20;

const PATIENCE: ConnectTimeouts =
    ConnectTimeouts { names: Duration::from_secs(2), connect: Duration::from_secs(10) };

// === impl CallInProgress ===

impl<'c> CallInProgress<'c> {
    pub(super) fn begin(connection: &'c ApiConnection, call: &'c ApiCall, caller: &'c Caller) -> Self {
        Self {
            connection,
            call,
            caller,
            path: format!("{}{}", connection.prefix, call.path),
            passage_id: PassageId::from_uuid(Uuid::now_v7()),
            started_at: Timestamp::now(),
            since: Instant::now(),
            address: None,
            tls_name: None,
            status: None,
            sent: 0,
            received: 0,
            outcome: ProxiedRequestOutcome::Failed { code: ReasonCode::of("cut_off") },
        }
    }

    pub(super) async fn make(&mut self, outside: &ApiCallContext) -> Result<ApiAnswer, ApiError> {
        let allowed = self.decide()?;
        let (connection, call) = (self.connection, self.call);
        if connection.takes_approval(&call.method) && !call.is_approved {
            return Err(ApiError::ApprovalNeeded { method: call.method.clone() });
        }
        let injected = match &connection.credential {
            None => None,
            Some(credential) => Some(credential.get_beside().await.map_err(|_| ApiError::NoCredential)?),
        };
        let a_minute = connection.allowance.a_minute();
        connection.allowance.take(Instant::now()).map_err(|wait| ApiError::TooMany { a_minute, wait })?;
        if !self.caller.ledger.is_sound() || !self.caller.ledger.begin(self.begun()).await {
            return Err(ApiError::NotRecorded);
        }
        let (mut upstream, proxy) = self.reach(allowed, outside).await?;
        let request = outgoing::head((connection, call), &self.path, injected.as_deref(), proxy.as_ref());
        self.sent = (request.len() + call.body.len()) as u64;
        let sending = async {
            upstream.stream.write_all(&request).await?;
            upstream.stream.write_all(&call.body).await?;
            upstream.stream.flush().await
        };
        sending.await.map_err(|_| ApiError::Unreachable)?;
        self.answer(&mut upstream, injected.as_deref()).await
    }

    /// Returns the decision of the connection's policy.
    fn decide(&self) -> Result<AllowedDestination<Destination>, ApiError> {
        outgoing::check(self.call)?;
        let wanted = Wanted::Request { method: &self.call.method, path: &self.path };
        let decided = self.connection.policy.decide(self.connection.destination.clone(), wanted);
        decided.map_err(|denied| ApiError::NotAllowed { reason: denied.reason.code() })
    }

    fn asked(&self) -> RequestedDestination {
        RequestedDestination {
            method: Excerpt::of(&self.call.method),
            host: Excerpt::of(&self.connection.destination.host.to_string()),
            port: self.connection.destination.port,
            path: Some(Excerpt::of(&self.path)),
        }
    }

    fn begun(&self) -> ProxiedRequestStartRecord {
        ProxiedRequestStartRecord {
            passage_id: self.passage_id.clone(),
            run_id: self.caller.run_id.clone(),
            started_at: self.started_at,
            asked: self.asked(),
            rule: 0,
            generation: 1,
            credentials: Vec::new(),
            connection: Some(self.connection.name.clone()),
        }
    }

    async fn reach(
        &mut self,
        allowed: AllowedDestination<Destination>,
        outside: &ApiCallContext,
    ) -> Result<(Connection, Option<ProxyHeaders>), ApiError> {
        let host = allowed.value().host.clone();
        let wants = match self.connection.is_secure {
            true => ConnectionPurpose::Tunnel,
            false => ConnectionPurpose::Request,
        };
        let reached = match &self.connection.through {
            Some(through) if through.leads_to(&host) => {
                through.reach((allowed, wants), (&outside.names, PATIENCE), &RunOwner::default()).await
            }
            _ => dial_allowed(allowed, &outside.names, PATIENCE).await.map(Into::into),
        };
        let RoutedConnection { dialed, proxy } = reached.map_err(|error| ApiError::of_dial(&error))?;
        self.address = dialed.address;
        if !self.connection.is_secure {
            return Ok((Connection::of(dialed), proxy));
        }
        let trust = (&outside.trust, self.connection.authorities.as_deref());
        let secured = secure(dialed.stream, &host, trust, PATIENCE.connect).await;
        let connection = secured.map_err(|error| ApiError::of_connect(&error))?;
        self.tls_name = Some(host.to_string());
        // A tunnel leads to the destination itself.
        Ok((connection, None))
    }

    async fn answer(
        &mut self,
        upstream: &mut Connection,
        injected: Option<&InjectedSecret>,
    ) -> Result<ApiAnswer, ApiError> {
        let failed = |error| ApiError::of_answer(&error, MOST_ANSWER);
        let received = &mut self.received;
        let head = upstream.head_counted(CALL, |bytes| *received += bytes).await.map_err(failed)?;
        self.status = Some(head.status);
        if !head.is_plain() {
            return Err(ApiError::BadAnswer);
        }
        let body = match self.call.method.as_str() {
            "HEAD" => Vec::new(),
            _ => upstream.body(head.body, MOST_ANSWER, CALL).await.map_err(failed)?,
        };
        self.received += body.len() as u64;
        let is_told = injected.is_some_and(|injected| {
            injected.forms.are_in_lines(head.headers.text()) || injected.forms.are_told_by(&body)
        });
        match is_told {
            true => Err(ApiError::Repeated),
            false => Ok(ApiAnswer { status: head.status, headers: to_caller(&head.headers), body }),
        }
    }

    pub(super) fn end(&mut self, answered: &Result<ApiAnswer, ApiError>) {
        self.outcome = match answered {
            Ok(_) => ProxiedRequestOutcome::Completed,
            Err(error) if error.is_refusal() => {
                ProxiedRequestOutcome::Denied { reason: ReasonCode::of(error.code()) }
            }
            Err(error) => ProxiedRequestOutcome::Failed { code: ReasonCode::of(error.code()) },
        };
    }
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        self.caller.ledger.record(ProxiedRequestRecord {
            passage_id: self.passage_id.clone(),
            run_id: self.caller.run_id.clone(),
            started_at: self.started_at,
            asked: Some(self.asked()),
            outcome: self.outcome.clone(),
            generation: 1,
            rule: None,
            address: self.address,
            tls_name: self.tls_name.as_deref().map(Excerpt::of),
            status: self.status,
            sent_bytes: self.sent,
            received_bytes: self.received,
            total_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            connection: Some(self.connection.name.clone()),
        });
    }
}

fn to_caller(headers: &Headers) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers
        .iter()
        .filter(|(name, _)| TO_CALLER.iter().any(|known| known.as_bytes() == *name))
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}
