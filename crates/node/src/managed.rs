//! Services beside the node, which it passes requests on to: for an orchestrator that reaches the node and not them.
//!
//! ```text
//! orchestrator ─► proxy:http ─► recorded as begun ─► the service ─► recorded as ended ─► orchestrator
//! ```
//! Nothing goes to a service before it is on the disk who asked for what.

use belljar_contract::worker::managed::{
    LARGEST_PROXIED_BYTES, ProxyHttpRequest, ProxyHttpResponse, RESPONSE_HEADERS,
};
use belljar_egress::exchange::{ExchangeError, Exchanger, Outgoing};
use belljar_egress::upstream::Upstream;
use belljar_store::audit::{AuditError, AuditLog, Event, EventError};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Services that requests are passed on to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedSettings {
    /// Which.
    pub services: Vec<ManagedService>,
    /// How long an answer may take, all of it.
    pub timeout: Duration,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedService {
    /// Its name on this node.
    pub id: String,
    /// What it is, such as `inference`.
    pub kind: String,
    /// Where it is.
    pub upstream: Upstream,
}

/// The services of a node.
pub(crate) struct ManagedServices {
    settings: ManagedSettings,
    /// Nothing where there are none.
    exchanger: Option<Exchanger>,
    audit: Arc<AuditLog>,
}

/// A request could not be passed on, or its answer not be passed back.
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
    #[error("whoever records the request has died")]
    Died(#[from] tokio::task::JoinError),
}

/// What is recorded of a request before it goes on its way. Neither headers nor bodies: there are secrets in them.
#[derive(Debug, Clone, Serialize)]
struct Begun {
    service_id: String,
    service_type: String,
    caller: String,
    method: &'static str,
    /// Without what stands behind the question mark.
    path: String,
    request_bytes: usize,
}

/// What is recorded when it is over.
#[derive(Debug, Serialize)]
struct Ended {
    /// The number of the record of its beginning.
    begun: u64,
    service_id: String,
    status: Option<u16>,
    error: Option<String>,
    response_bytes: usize,
    duration_ms: u64,
}

/// The kinds under which these stand in the audit.
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

    /// Passes a request on. When this is dropped, the service hears no more of it.
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
        let mut over = Over { services: self, begun, service_id: &service.id, began, is_told: false };
        let outgoing = Outgoing {
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

    /// Back when it is on the disk; its number.
    async fn record(&self, kind: &'static str, event: impl Serialize) -> Result<u64, ManagedError> {
        let (audit, event) = (Arc::clone(&self.audit), Event::new(kind, None, &event)?);
        let written = tokio::task::spawn_blocking(move || audit.append(event)).await?;
        Ok(written?.sequence)
    }
}

fn begun(service: &ManagedService, request: &ProxyHttpRequest, caller: SocketAddr) -> Begun {
    Begun {
        service_id: service.id.clone(),
        service_type: service.kind.clone(),
        caller: caller.to_string(),
        method: request.method.as_str(),
        path: request.path.split('?').next().unwrap_or_default().to_owned(),
        request_bytes: request.body.len(),
    }
}

/// A request that is under way. One that is dropped has been given up, which is recorded, too.
struct Over<'s> {
    services: &'s ManagedServices,
    begun: u64,
    service_id: &'s str,
    began: Instant,
    is_told: bool,
}

// === impl Over ===

impl Over<'_> {
    fn ended(&self, status: Option<u16>, error: Option<String>, response_bytes: usize) -> Ended {
        Ended {
            begun: self.begun,
            service_id: self.service_id.to_owned(),
            status,
            error,
            response_bytes,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        if !self.is_told
            && let Ok(event) =
                Event::new(ENDED, None, &self.ended(None, Some("whoever asked has gone".to_owned()), 0))
        {
            self.services.audit.submit(event, |_| {});
        }
    }
}
