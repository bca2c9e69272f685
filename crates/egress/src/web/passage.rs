//! One who wants to get through, from the head of what they ask to the record of what became of it.

use super::answer;
use super::decision::{decide, destination};
use super::forward;
use super::live::Generation;
use super::refusal::Refusal;
use super::run::WebRun;
use super::tunnel;
use crate::client::{Client, Stop};
use crate::http1::{RequestHead, Target};
use crate::pace::Pace;
use crate::proxy::{Answering, Service};
use crate::upstream::names::Names;
use crate::upstream::{Dialed, Patience, dial_allowed, is_of_this_machine};
use belljar_contract::egress::{Asked, PassageBegun, PassageOutcome, PassageRecord};
use belljar_contract::id::PassageId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_policy::egress::{Destination, Host};
use jiff::Timestamp;
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use uuid::Uuid;

/// What all connections of a run share.
pub(crate) struct Gate {
    pub(super) run: Arc<WebRun>,
    names: Rc<Names>,
    pace: Pace,
}

/// Somebody on their way. However it ends, it is written down.
pub(super) struct Passage<'g> {
    pub(super) gate: &'g Gate,
    /// The policy that decides, and those that come after it.
    pub(super) policy: watch::Receiver<Arc<Generation>>,
    passage_id: PassageId,
    started_at: Timestamp,
    since: Instant,
    generation: u64,
    asked: Option<Asked>,
    rule: Option<u64>,
    address: Option<IpAddr>,
    pub(super) tls_name: Option<String>,
    status: Option<u16>,
    /// Counted where bytes pass, so that they are told also of one whose run ends under it.
    pub(super) sent: Rc<Cell<u64>>,
    pub(super) received: Rc<Cell<u64>>,
    outcome: PassageOutcome,
}

/// What is recorded of one whose run has ended under it.
const CUT_OFF: &str = "cut_off";

// === impl Gate ===

impl Gate {
    pub(crate) fn new(run: Arc<WebRun>, names: Rc<Names>) -> Self {
        Self { run, names, pace: Pace::new() }
    }

    /// Answers everything that comes by one connection, until it is closed.
    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) {
        let mut client = Client::new(stream, self.run.limits.times);
        loop {
            let mut passage = Passage::begin(self);
            let keeps_alive = match client.head_for_proxy().await {
                Ok((head, Target::Authority { authority })) => {
                    return passage.tunnel(client, &head, Target::Authority { authority }).await;
                }
                Ok((head, target)) => passage.forward(&mut client, &head, &target).await,
                Err(Stop::Gone) => {
                    passage.forget();
                    break;
                }
                Err(Stop::Faulty(fault)) => passage.refuse(&mut client, fault.into(), (false, true)).await,
            };
            if !keeps_alive || !client.can_go_on() {
                break;
            }
        }
        client.close().await;
    }
}

impl Service for Gate {
    fn tcp(self: Rc<Self>, stream: TcpStream) -> Answering {
        Box::pin(async move { self.serve(stream).await })
    }

    fn local(self: Rc<Self>, stream: UnixStream) -> Answering {
        Box::pin(async move { self.serve(stream).await })
    }
}

// === impl Passage ===

impl<'g> Passage<'g> {
    fn begin(gate: &'g Gate) -> Self {
        let mut policy = gate.run.policy.hear();
        let generation = policy.borrow_and_update().number;
        Self {
            gate,
            policy,
            passage_id: PassageId::from_uuid(Uuid::now_v7()),
            started_at: Timestamp::now(),
            since: Instant::now(),
            generation,
            asked: None,
            rule: None,
            address: None,
            tls_name: None,
            status: None,
            sent: Rc::default(),
            received: Rc::default(),
            outcome: failed(CUT_OFF),
        }
    }

    /// Opens a tunnel, and is back when it is closed.
    async fn tunnel<S>(mut self, mut client: Client<S>, head: &RequestHead, target: Target)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (destination, dialed) = match self.let_through(head, &target).await {
            Ok(through) => through,
            Err(refusal) => {
                self.refuse(&mut client, refusal, (false, true)).await;
                return client.close().await;
            }
        };
        if client.send(answer::ESTABLISHED).await.is_err() {
            return;
        }
        self.status = Some(200);
        self.outcome = match tunnel::run(client, dialed, &destination, &mut self).await {
            Ok(()) => PassageOutcome::Completed,
            Err(end) => failed(end.code()),
        };
    }

    /// Passes one request on. False if no other can follow.
    async fn forward<S>(mut self, client: &mut Client<S>, head: &RequestHead, target: &Target) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let has_body = head.method != "HEAD";
        let (destination, dialed) = match self.let_through(head, target).await {
            Ok(through) => through,
            Err(refusal) => {
                let keeps_alive = head.keeps_alive && head.body == crate::http1::BodyLength::Exact(0);
                return self.refuse(client, refusal, (keeps_alive, has_body)).await;
            }
        };
        match forward::run(client, head, (&destination, dialed), &self).await {
            Ok(forward::Passed { status, keeps_alive }) => {
                (self.status, self.outcome) = (Some(status), PassageOutcome::Completed);
                keeps_alive
            }
            Err(forward::Failed::Refused(refusal)) => {
                let code = refusal.recorded_code();
                self.tell(client, &refusal, (false, has_body)).await;
                self.outcome = failed(code);
                false
            }
            Err(forward::Failed::Cut { status, code }) => {
                (self.status, self.outcome) = (status, failed(code));
                false
            }
        }
    }

    /// A connection to where they want to get to, once it is on the disk that they are let through.
    async fn let_through(
        &mut self,
        head: &RequestHead,
        target: &Target,
    ) -> Result<(Destination, Dialed), Refusal> {
        let gate = self.gate;
        let found = destination(head, target)?;
        let path = (!head.path.is_empty()).then(|| Excerpt::of(&head.path));
        self.asked = Some(Asked {
            method: Excerpt::of(&head.method),
            host: Excerpt::of(&found.host.to_string()),
            port: found.port,
            path,
        });
        let generation = Arc::clone(&self.policy.borrow_and_update());
        self.generation = generation.number;
        let allowed = decide(&generation, found, head, target)?;
        let (destination, rule) = (allowed.value().clone(), allowed.rule() as u64);
        self.rule = Some(rule);
        if !gate.run.ledger.is_sound() {
            return Err(Refusal::NotRecorded);
        }
        if !gate.run.may_send(0) || !gate.run.may_receive(0) {
            return Err(Refusal::Spent);
        }
        let limits = gate.run.limits;
        let patience = Patience { names: limits.names, connect: limits.times.connect };
        // Both take a while, and nothing is sent before both are done.
        let (is_recorded, dialed) =
            tokio::join!(self.recorded(rule), dial_allowed(allowed, &gate.names, patience));
        let dialed = dialed.map_err(|error| Refusal::of_dial(error, &destination.host.to_string()))?;
        self.address = Some(dialed.address);
        if !is_recorded {
            return Err(Refusal::NotRecorded);
        }
        Ok((destination, dialed))
    }

    /// Whether it is on the disk that they are let through.
    async fn recorded(&self, rule: u64) -> bool {
        let Some(asked) = self.asked.clone() else { return false };
        let begun = PassageBegun {
            passage_id: self.passage_id.clone(),
            run_id: self.gate.run.run_id.clone(),
            started_at: self.started_at,
            asked,
            rule,
            generation: self.generation,
        };
        self.gate.run.ledger.begin(begun).await
    }

    /// Says why they aren't let through. Whether another request may follow.
    async fn refuse<S>(
        &mut self,
        client: &mut Client<S>,
        refusal: Refusal,
        (keeps_alive, has_body): (bool, bool),
    ) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if let Refusal::Denied(denied) = &refusal {
            self.gate.run.deny(denied);
        }
        let reason = ReasonCode::of(refusal.recorded_code());
        self.outcome = match refusal.status() {
            502.. => failed(refusal.recorded_code()),
            _ => PassageOutcome::Denied { reason },
        };
        self.tell(client, &refusal, (keeps_alive, has_body)).await
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
        self.status = Some(refusal.status());
        client.send(&answer::refused(refusal, keeps_alive, has_body)).await.is_ok() && keeps_alive
    }

    /// Nobody has asked for anything.
    fn forget(mut self) {
        self.outcome = PassageOutcome::Completed;
    }

    /// Whether the policy that counts now still lets them through, to where they are.
    pub(super) fn is_still_allowed(&mut self, destination: &Destination) -> bool {
        let generation = Arc::clone(&self.policy.borrow_and_update());
        let tunnel = belljar_policy::egress::Asked::Tunnel;
        let allowed = generation.policy.decide(destination.clone(), tunnel);
        let Some(address) = self.address else { return false };
        let own = is_of_this_machine(address).then_some(address);
        allowed
            .is_ok_and(|allowed| !allowed.is_inspected() && allowed.vet(&[address], own.as_slice()).is_ok())
    }

    /// The name that TLS has to show.
    pub(super) fn expected_name(destination: &Destination) -> Option<&str> {
        match &destination.host {
            Host::Name(name) => Some(name.as_str()),
            Host::Address(_) => None,
        }
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        let is_nothing = self.asked.is_none() && self.outcome == PassageOutcome::Completed;
        if is_nothing {
            return;
        }
        self.gate.run.ledger.record(PassageRecord {
            passage_id: self.passage_id.clone(),
            run_id: self.gate.run.run_id.clone(),
            started_at: self.started_at,
            asked: self.asked.clone(),
            outcome: self.outcome.clone(),
            generation: self.generation,
            rule: self.rule,
            address: self.address,
            tls_name: self.tls_name.as_deref().map(Excerpt::of),
            status: self.status,
            sent_bytes: self.sent.get(),
            received_bytes: self.received.get(),
            total_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    }
}

fn failed(code: &'static str) -> PassageOutcome {
    PassageOutcome::Failed { code: ReasonCode::of(code) }
}
