//! Managed services: HTTP services beside the node, proxied for an orchestrator that can reach the node but not them.
//!
//! ```text
//! orchestrator ─► proxy:http ─► recorded as begun ─► the service ─► recorded as ended ─► orchestrator
//! ```
//! A request is sent to a service only once the record of its caller and target is on the disk.

use belljar_contract::worker::managed::{
    LARGEST_PROXIED_BYTES, ProxyHttpRequest, ProxyHttpResponse, RESPONSE_HEADERS,
};
use belljar_egress::exchange::{ExchangeError, Exchanger, OutgoingRequest};
use belljar_egress::upstream::Upstream;
use belljar_store::audit::{AuditError, AuditLog, Event, EventError};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Services that requests are proxied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedSettings {
    /// The services.
    pub services: Vec<ManagedService>,
    /// Maximum duration of a whole response. Default: 30 s.
    pub timeout: Duration,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedService {
    /// Its name on this node.
    pub id: String,
    /// Its kind, such as `inference`.
    pub kind: String,
    /// Its address.
    pub upstream: Upstream,
}

/// The services of a node.
pub(crate) struct ManagedServices {
    settings: ManagedSettings,
    /// `None` if there are no services.
    exchanger: Option<Exchanger>,
    audit: Arc<AuditLog>,
}

/// Reasons why a request could not be proxied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManagedError {
    #[error("there is no managed service {id}")]
    Unknown { id: String },
    #[error("the request can't be recorded")]
    Audit(#[from] AuditError),
    #[error("the request can't be recorded")]
    Event(#[from] EventError),
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the thread that records the request has failed")]
    Died(#[from] tokio::task::JoinError),
}

/// Audit record of a request before it is sent. It has neither headers nor bodies, as there are secrets in them.
#[derive(Debug, Clone, Serialize)]
struct ManagedRequestRecord {
    service_id: String,
    service_type: String,
    caller: String,
    method: &'static str,
    /// Path without the query.
    path: String,
    request_bytes: usize,
}

/// Audit record of a request's end.
#[derive(Debug, Serialize)]
struct ManagedEndRecord {
    /// Sequence number of the record of its begin.
    begun: u64,
    service_id: String,
    status: Option<u16>,
    error: Option<String>,
    response_bytes: usize,
    duration_ms: u64,
}

/// Kinds of the audit records.
const BEGUN: &str = "managed_service_call_begun";
const ENDED: &str = "managed_service_call_ended";

const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

// === impl ManagedSettings ===

impl Default for ManagedSettings {
    fn default() -> Self {
        Self { services: Vec::new(), timeout: USUAL_TIMEOUT }
    }
}

// === impl ManagedServices ===

impl ManagedServices {
    pub(crate) fn start(settings: ManagedSettings, audit: Arc<AuditLog>) -> std::io::Result<Self> {
        let exchanger = (!settings.services.is_empty()).then(Exchanger::start).transpose()?;
        Ok(Self { settings, exchanger, audit })
    }

    /// Sends a request to a service. Dropping the future aborts the request.
    pub(crate) async fn pass_on(
        &self,
        id: &str,
        request: ProxyHttpRequest,
        caller: SocketAddr,
    ) -> Result<ProxyHttpResponse, ManagedError> {
        let found =
            self.settings.services.iter().find(|service| service.id == id).zip(self.exchanger.as_ref());
        let (service, exchanger) = found.ok_or_else(|| ManagedError::Unknown { id: id.to_owned() })?;
        let began = Instant::now();
        let begun = self.record(BEGUN, begun(service, &request, caller)).await?;
        let mut over =
            ManagedRequestGuard { services: self, begun, service_id: &service.id, began, is_told: false };
        let outgoing = OutgoingRequest {
            method: request.method.as_str(),
            target: request.path,
            headers: request.headers.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            body: request.body,
            largest_answer: LARGEST_PROXIED_BYTES,
            patience: self.settings.timeout,
        };
        let answered = exchanger.ask(&service.upstream, outgoing, &RESPONSE_HEADERS).await;
        over.is_told = true;
        let ended = match &answered {
            Ok(answer) => over.ended(Some(answer.status), None, answer.body.len()),
            Err(error) => over.ended(None, Some(crate::chain(error)), 0),
        };
        self.record(ENDED, ended).await?;
        let answer = answered?;
        Ok(ProxyHttpResponse::new(answer.status, answer.headers, &answer.body))
    }

    /// Records an event; returns its sequence number once it is on the disk.
    async fn record(&self, kind: &'static str, event: impl Serialize) -> Result<u64, ManagedError> {
        let (audit, event) = (Arc::clone(&self.audit), Event::new(kind, None, &event)?);
        let written = tokio::task::spawn_blocking(move || audit.append(event)).await?;
        Ok(written?.sequence)
    }
}

fn begun(service: &ManagedService, request: &ProxyHttpRequest, caller: SocketAddr) -> ManagedRequestRecord {
    ManagedRequestRecord {
        service_id: service.id.clone(),
        service_type: service.kind.clone(),
        caller: caller.to_string(),
        method: request.method.as_str(),
        path: request.path.split('?').next().unwrap_or_default().to_owned(),
        request_bytes: request.body.len(),
    }
}

/// A request that is under way. If it is dropped, it is recorded as given up.
struct ManagedRequestGuard<'s> {
    services: &'s ManagedServices,
    begun: u64,
    service_id: &'s str,
    began: Instant,
    is_told: bool,
}

// === impl ManagedRequestGuard ===

impl ManagedRequestGuard<'_> {
    fn ended(&self, status: Option<u16>, error: Option<String>, response_bytes: usize) -> ManagedEndRecord {
        ManagedEndRecord {
            begun: self.begun,
            service_id: self.service_id.to_owned(),
            status,
            error,
            response_bytes,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Drop for ManagedRequestGuard<'_> {
    fn drop(&mut self) {
        if !self.is_told
            && let Ok(event) =
                Event::new(ENDED, None, &self.ended(None, Some("the caller disconnected".to_owned()), 0))
        {
            self.services.audit.submit(event, |_| {});
        }
    }
}
