//! One request or tunnel, from its head to its audit record.

mod fetched;
mod kept_out;

pub(super) use fetched::{BodyExtent, FetchInput, FetchedAnswer};

use super::answer;
use super::credential_injection::{AllowedRoute, CredentialInjection, fill};
use super::decision::{self, RequestRoute};
use super::forward;
use super::hatch_server::WebProxy;
use super::live::LivePolicyVersion;
use super::other_resource;
use super::refusal::Refusal;
use super::tls_interception;
use super::tunnel;
use super::tunnel::socket::Socket;
use crate::client::Client;
use crate::http1::{BodyLength, RequestHead, Target};
use crate::upstream::{
    ConnectTimeouts, Connection, ConnectionPurpose, ProxyHeaders, RoutedConnection, dial_allowed,
    is_of_this_machine, secure,
};
use belljar_contract::egress::{
    ProxiedRequestOutcome, ProxiedRequestRecord, ProxiedRequestStartRecord, RequestedDestination,
};
use belljar_contract::id::PassageId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_policy::egress::{AllowedDestination, Destination, EgressRequest as Wanted};
use jiff::Timestamp;
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use uuid::Uuid;

/// Request or tunnel under way. It is recorded however it ends.
pub(super) struct ProxiedRequest<'g> {
    pub(super) gate: &'g WebProxy,
    /// Policy versions: the one that decides, and later ones.
    pub(super) policy: watch::Receiver<Arc<LivePolicyVersion>>,
    passage_id: PassageId,
    started_at: Timestamp,
    since: Instant,
    /// Version that has decided.
    generation: Arc<LivePolicyVersion>,
    asked: Option<RequestedDestination>,
    /// Destination of the request.
    destination: Option<Destination>,
    /// Method, and path with the query; `None` for a tunnel.
    request: Option<(String, String)>,
    /// True if the request has a body.
    has_content: bool,
    rule: Option<u64>,
    credentials: Vec<String>,
    address: Option<IpAddr>,
    /// True if an upstream proxy has resolved the name, so that there is no address to check.
    is_named_elsewhere: bool,
    pub(super) tls_name: Option<String>,
    status: Option<u16>,
    /// Counted as bytes pass, so that the record has them even if the run ends meanwhile.
    pub(super) sent: Rc<Cell<u64>>,
    pub(super) received: Rc<Cell<u64>>,
    outcome: ProxiedRequestOutcome,
    /// True if the audit log has the record that it was allowed.
    has_begun: bool,
}

/// Connection to the destination of a request.
struct DestinationConnection<'g> {
    connection: Connection,
    filling: CredentialInjection<'g>,
    destination: Destination,
    /// Headers for an upstream proxy that gets the whole URL.
    proxy: Option<ProxyHeaders>,
}

/// Code that is recorded if the run ends meanwhile.
const CUT_OFF: &str = "cut_off";

// === impl ProxiedRequest ===

impl<'g> ProxiedRequest<'g> {
    /// Begins with the head of a request.
    pub(super) fn begin(gate: &'g WebProxy) -> Self {
        let mut policy = gate.run.policy.hear();
        let generation = Arc::clone(&policy.borrow_and_update());
        Self {
            gate,
            policy,
            passage_id: PassageId::from_uuid(Uuid::now_v7()),
            started_at: Timestamp::now(),
            since: Instant::now(),
            generation,
            asked: None,
            destination: None,
            request: None,
            has_content: false,
            rule: None,
            credentials: Vec::new(),
            address: None,
            is_named_elsewhere: false,
            tls_name: None,
            status: None,
            sent: Rc::default(),
            received: Rc::default(),
            outcome: failed(CUT_OFF),
            has_begun: false,
        }
    }

    /// Opens a tunnel or an intercepted connection. Returns when it is closed.
    pub(super) async fn connect<S>(mut self, mut client: Client<S>, head: &RequestHead, target: &Target)
    where
        S: Socket,
    {
        let opened = match self.decide(head, RequestRoute::Proxied(target)) {
            Ok(allowed) if allowed.is_inspected() => {
                self.can_look_into(&allowed).await.map(|()| (allowed, None))
            }
            Ok(allowed) => {
                let reached = self.reach(allowed.clone(), ConnectionPurpose::Tunnel).await;
                reached.map(|reached| (allowed, Some(reached.dialed)))
            }
            Err(refusal) => Err(refusal),
        };
        let (allowed, dialed) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                self.refuse(&mut client, refusal, (false, true)).await;
                return client.close().await;
            }
        };
        if client.send(answer::ESTABLISHED).await.is_err() {
            return;
        }
        self.status = Some(200);
        let ended = match dialed {
            Some(dialed) => tunnel::run(client, dialed, &allowed, &mut self)
                .await
                .map_err(tls_interception::InterceptionEnd::from),
            None => tls_interception::run(client, allowed.value(), &mut self).await,
        };
        self.outcome = ended.map_or_else(|end| failed(end.code()), |()| ProxiedRequestOutcome::Completed);
    }

    /// Forwards a request for a whole URL. Returns false if no other request can follow.
    pub(super) async fn forward<S>(self, client: &mut Client<S>, head: &RequestHead, target: &Target) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.pass(client, head, RequestRoute::Proxied(target)).await
    }

    /// Forwards one request. Returns false if no other request can follow.
    pub(super) async fn pass<S>(
        mut self,
        client: &mut Client<S>,
        head: &RequestHead,
        way: RequestRoute<'_>,
    ) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let has_body = head.method != "HEAD";
        let DestinationConnection { connection, filling, destination, proxy } =
            match self.open(client, head, way).await {
                Ok(opened) => opened,
                Err(refusal) => {
                    // After a request that is not unambiguous, nothing further is read from the connection.
                    let is_clear = head.body == BodyLength::Exact(0) && refusal.status() != 400;
                    let keeps_alive = head.keeps_alive && is_clear;
                    return self.refuse(client, refusal, (keeps_alive, has_body)).await;
                }
            };
        let (destination, is_secure) = (&destination, way.is_secure());
        let outgoing = forward::ForwardedRequest { destination, is_secure, filling, proxy };
        match forward::run(client, head, (outgoing, connection), &self).await {
            Ok(forward::ForwardedAnswer { status, keeps_alive }) => {
                (self.status, self.outcome) = (Some(status), ProxiedRequestOutcome::Completed);
                keeps_alive
            }
            Err(forward::ForwardFailure::Refused(refusal)) => {
                let code = refusal.recorded_code();
                self.note_kept_out(&refusal);
                self.tell(client, &refusal, (false, has_body)).await;
                self.outcome = failed(code);
                false
            }
            Err(forward::ForwardFailure::Cut { status, code }) => {
                (self.status, self.outcome) = (status, failed(code));
                false
            }
        }
    }

    /// Connects to the destination of a request, and injects its credentials.
    async fn open<S>(
        &mut self,
        client: &mut Client<S>,
        head: &RequestHead,
        way: RequestRoute<'_>,
    ) -> Result<DestinationConnection<'g>, Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let allowed = self.decide(head, way)?;
        let generation = Arc::clone(&self.generation);
        let config = &generation.config;
        let filling =
            fill((client, self.gate), head, AllowedRoute { allowed: &allowed, way }, config).await?;
        self.credentials = filling.names();
        let destination = allowed.value().clone();
        let wants = if way.is_secure() { ConnectionPurpose::Tunnel } else { ConnectionPurpose::Request };
        let RoutedConnection { dialed, proxy } = self.reach(allowed, wants).await?;
        if !way.is_secure() {
            return Ok(DestinationConnection {
                connection: Connection::of(dialed),
                filling,
                destination,
                proxy,
            });
        }
        // Bytes before the TLS handshake come from an unauthenticated sender.
        if !dialed.early.is_empty() {
            return Err(Refusal::BadAnswer { host: destination.host.to_string() });
        }
        let authorities = config.authorities.as_deref();
        let patience = self.gate.run.limits.times.connect;
        let secured =
            secure(dialed.stream, &destination.host, (&self.gate.trust, authorities), patience).await;
        let host = || destination.host.to_string();
        let connection = secured.map_err(|error| Refusal::of_connect(&error, host()))?;
        self.tls_name = Some(host());
        Ok(DestinationConnection { connection, filling, destination, proxy: None })
    }

    /// Decides about the request, and notes for the record what was requested.
    fn decide(
        &mut self,
        head: &RequestHead,
        way: RequestRoute<'_>,
    ) -> Result<AllowedDestination<Destination>, Refusal> {
        let found = decision::destination(head, way)?;
        let path = (!head.path.is_empty()).then(|| Excerpt::of(&head.path));
        self.asked = Some(RequestedDestination {
            method: Excerpt::of(&head.method),
            host: Excerpt::of(&found.host.to_string()),
            port: found.port,
            path,
        });
        self.destination = Some(found.clone());
        self.request = way.is_request().then(|| (head.method.clone(), decision::path(head)));
        self.generation = Arc::clone(&self.policy.borrow_and_update());
        let decided = self.generation.config.policy.decide(found, self.wanted());
        let allowed = decided.map_err(Refusal::Denied)?;
        self.rule = Some(allowed.rule() as u64);
        self.has_content = head.body != BodyLength::Exact(0);
        if self.has_content && !allowed.may_have_content(&head.method) {
            return Err(Refusal::BodyOfReading { method: head.method.clone() });
        }
        if way.is_request() {
            self.check_other_resource(head, &allowed)?;
        }
        if !self.gate.run.asked_names.may_ask(&allowed, Instant::now()) {
            return Err(Refusal::Denied(allowed.too_many_names(&self.wanted())));
        }
        Ok(allowed)
    }

    /// Checks that headers which name other resources stay within the host and the paths of the rules.
    fn check_other_resource(
        &self,
        head: &RequestHead,
        allowed: &AllowedDestination<Destination>,
    ) -> Result<(), Refusal> {
        let (there, policy) = (allowed.value(), &self.generation.config.policy);
        let is_allowed = |path: &str| {
            let wanted = Wanted::Request { method: &head.method, path };
            policy.decide(there.clone(), wanted).is_ok()
        };
        other_resource::check(&head.headers, (there, allowed.is_about_paths()), is_allowed)
    }

    fn wanted(&self) -> Wanted<'_> {
        match &self.request {
            Some((method, path)) => Wanted::Request { method, path },
            None => Wanted::Tunnel,
        }
    }

    /// Fails if rules require interception and the run has no authority. Each intercepted connection is recorded, so the rate
    /// limits apply.
    async fn can_look_into(&self, allowed: &AllowedDestination<Destination>) -> Result<(), Refusal> {
        self.can_be_recorded()?;
        self.gate.passages.wait().await;
        self.gate.run.audit.wait().await;
        match self.gate.run.authority {
            Some(_) => Ok(()),
            None => Err(Refusal::Uninspected { destination: allowed.value().to_string() }),
        }
    }

    /// Connects to the destination once the record of the approval is on the disk. Before that, not even a name is resolved.
    async fn reach(
        &mut self,
        allowed: AllowedDestination<Destination>,
        wants: ConnectionPurpose,
    ) -> Result<RoutedConnection, Refusal> {
        let gate = self.gate;
        self.can_be_recorded()?;
        if !gate.run.may_send(0) || !gate.run.may_receive(0) {
            return Err(Refusal::Spent);
        }
        gate.passages.wait().await;
        gate.run.audit.wait().await;
        if !self.recorded(allowed.rule() as u64).await {
            return Err(Refusal::NotRecorded);
        }
        let limits = gate.run.limits;
        let patience = ConnectTimeouts { names: limits.names, connect: limits.times.connect };
        let destination = allowed.value().clone();
        let generation = Arc::clone(&self.generation);
        let reached = match &generation.config.through {
            Some(through) if through.leads_to(&destination.host) => {
                through.reach((allowed, wants), (&gate.names, patience), &gate.run.owner).await
            }
            _ => dial_allowed(allowed, &gate.names, patience).await.map(RoutedConnection::from),
        };
        let reached = reached.map_err(|error| Refusal::of_dial(error, &destination.host.to_string()))?;
        self.address = reached.dialed.address;
        self.is_named_elsewhere = self.address.is_none();
        if reached.proxy.is_none() {
            gate.run.reached(&destination);
        }
        Ok(reached)
    }

    /// Fails if the ledger is not sound or the run's audit quota is used up.
    fn can_be_recorded(&self) -> Result<(), Refusal> {
        match (self.gate.run.ledger.is_sound(), self.gate.run.audit.has_left()) {
            (false, _) => Err(Refusal::NotRecorded),
            (true, false) => Err(Refusal::AuditQuota),
            (true, true) => Ok(()),
        }
    }

    /// Writes the record that the request is allowed. Returns true once it is on the disk.
    async fn recorded(&mut self, rule: u64) -> bool {
        let Some(asked) = self.asked.clone() else { return false };
        let begun = ProxiedRequestStartRecord {
            passage_id: self.passage_id.clone(),
            run_id: self.gate.run.run_id.clone(),
            started_at: self.started_at,
            asked,
            rule,
            generation: self.generation.number,
            credentials: self.credentials.clone(),
            connection: None,
        };
        self.has_begun = true;
        self.gate.run.audit.count(&begun);
        self.gate.run.ledger.begin(begun).await
    }

    /// Writes a record. A denial that repeats the one before is only counted.
    fn enter(&self, record: ProxiedRequestRecord) {
        let run = &self.gate.run;
        // Part that equal denials have in common. It can always be serialized.
        let key = || {
            let common = (&record.asked, &record.outcome, record.rule, record.generation);
            serde_json::to_string(&common).unwrap_or_default()
        };
        let key = (!self.has_begun).then(key);
        let told = (&record, record.passage_id.as_str());
        let entered = run.audit.enter(&run.run_id, told, (key, record.started_at));
        entered.folded.into_iter().for_each(|folded| run.ledger.record_folded(folded));
        match entered.is_whole {
            true => run.ledger.record(record),
            false => run.ledger.count(&record),
        }
    }

    /// Answers with the reason of the refusal. Returns true if another request may follow.
    pub(super) async fn refuse<S>(
        &mut self,
        client: &mut Client<S>,
        refusal: Refusal,
        (keeps_alive, has_body): (bool, bool),
    ) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.note(&refusal);
        self.tell(client, &refusal, (keeps_alive, has_body)).await
    }

    /// Notes the reason of the refusal for the record.
    fn note(&mut self, refusal: &Refusal) {
        self.note_kept_out(refusal);
        let reason = ReasonCode::of(refusal.recorded_code());
        self.outcome = match refusal.status() {
            502.. => failed(refusal.recorded_code()),
            _ => ProxiedRequestOutcome::Denied { reason },
        };
    }

    async fn tell<S>(
        &mut self,
        client: &mut Client<S>,
        refusal: &Refusal,
        (keeps_alive, has_body): (bool, bool),
    ) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.gate.pace.wait().await;
        self.gate.run.audit.wait().await;
        self.status = Some(refusal.status());
        client.send(&answer::refused(refusal, keeps_alive, has_body)).await.is_ok() && keeps_alive
    }

    /// Returns true if the current policy still allows this request or tunnel, at its address and with its injected
    /// credentials.
    pub(super) fn is_still_allowed(&self, destination: &Destination) -> bool {
        self.still_allowed(destination).is_some()
    }

    /// Returns the decision of the current policy, if it still allows this request or tunnel.
    pub(super) fn still_allowed(&self, destination: &Destination) -> Option<AllowedDestination<Destination>> {
        let generation = Arc::clone(&self.policy.borrow());
        let allowed = generation.config.policy.decide(destination.clone(), self.wanted()).ok()?;
        let is_blind = self.request.is_none() && allowed.is_inspected();
        let is_filled = self.credentials.iter().all(|name| allowed.credentials().contains(name));
        let may_say_that = match &self.request {
            Some((method, _)) => !self.has_content || allowed.may_have_content(method),
            None => true,
        };
        let leads_there = match self.address {
            Some(address) => {
                let own = is_of_this_machine(address).then_some(address);
                allowed.clone().vet(&[address], own.as_slice()).is_ok()
            }
            // With another upstream proxy, or with none, the name could resolve to other addresses.
            None => self.is_named_elsewhere && self.generation.config.through == generation.config.through,
        };
        (!is_blind && is_filled && leads_there && may_say_that).then_some(allowed)
    }
}

impl Drop for ProxiedRequest<'_> {
    fn drop(&mut self) {
        let record = ProxiedRequestRecord {
            passage_id: self.passage_id.clone(),
            run_id: self.gate.run.run_id.clone(),
            started_at: self.started_at,
            asked: self.asked.clone(),
            outcome: self.outcome.clone(),
            generation: self.generation.number,
            rule: self.rule,
            address: self.address,
            tls_name: self.tls_name.as_deref().map(Excerpt::of),
            status: self.status,
            sent_bytes: self.sent.get(),
            received_bytes: self.received.get(),
            total_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            connection: None,
        };
        self.enter(record);
    }
}

fn failed(code: &'static str) -> ProxiedRequestOutcome {
    ProxiedRequestOutcome::Failed { code: ReasonCode::of(code) }
}
