//! Seats of agents that come from elsewhere, by their tokens. Nothing is remembered of a token being good: for each request it is
//! looked up in the database, which all nodes of it share; and while something that was called by it is under way, again and again.
//!
//! ```text
//! token ─► digest ─► good? ─► the token's seat ─► call
//!                      ▲             │
//!                      └── watch ◄───┘ not good any more, or nobody knows: what is under way ends
//! ```

use crate::denials::Denied;
use crate::job::Workplace;
use belljar_contract::id::AgentId;
use belljar_contract::tool::AgentKind;
use belljar_contract::worker::problem::ProblemKind;
use belljar_gateway::bearer::{NoSeat, Tokens};
use belljar_gateway::seat::Seat;
use belljar_policy::tool::ToolGrants;
use belljar_store::database::DatabaseError;
use belljar_store::tokens::{FindError, Holder, HolderKind, TokenDenied, TokenDigest};
use belljar_tools::caller::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Those who may come, and the seats that they have.
pub(crate) struct RemoteSeats {
    workplace: Arc<Workplace>,
    places: Mutex<HashMap<TokenDigest, Place>>,
}

/// The seat of a token, from its first request on.
struct Place {
    seat: Seat,
    ended: CancellationToken,
    used: Instant,
}

/// Why somebody gets no seat.
#[derive(Debug, thiserror::Error)]
enum SeatError {
    #[error(transparent)]
    Denied(#[from] TokenDenied),
    /// It is good, and for something else.
    #[error("the token is for another door")]
    OtherAudience,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// From so many calls on, each of a token takes its time, and one waits for the other.
const UNPACED_CALLS: u32 = 500;

/// Requests of one token at once.
const MOST_AT_ONCE: usize = 8;

/// So often it is looked whether a token is still good by which something is under way.
const LOOK: Duration = Duration::from_millis(250);

/// Who can't be asked for so long knows nothing. With the pause before it that is less than a second.
const ANSWER_WITHIN: Duration = Duration::from_millis(600);

/// A seat that is not used for so long is cleared away. How often its token has called is forgotten with it; in that time it could
/// have called as often as it may from then on.
const KEPT: Duration = Duration::from_secs(10);

/// What a record says of a token that is good, and not here.
const OTHER_AUDIENCE: &str = "token_other_audience";

// === impl RemoteSeats ===

impl RemoteSeats {
    pub(crate) fn new(workplace: Arc<Workplace>) -> Arc<Self> {
        Arc::new(Self { workplace, places: Mutex::default() })
    }

    async fn find(self: &Arc<Self>, token: &str) -> Result<Seat, SeatError> {
        let digest = TokenDigest::of(token).ok_or(TokenDenied::Malformed)?;
        let holder = self.holder(&digest).await?;
        if let Some(seat) = self.known(&digest) {
            return Ok(seat);
        }
        let caller = self.caller(&digest, holder).await?;
        Ok(self.placed(digest, caller))
    }

    /// Whose the token is, if it is good now.
    async fn holder(&self, digest: &TokenDigest) -> Result<Holder, SeatError> {
        let found = self.workplace.tokens.find_again(digest, self.workplace.now()).await;
        found.map(|record| record.holder).map_err(|error| match error {
            FindError::Denied(denied) => SeatError::Denied(denied),
            FindError::Database(error) => SeatError::Database(error),
        })
    }

    /// The seat that it has already.
    fn known(&self, digest: &TokenDigest) -> Option<Seat> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.get_mut(digest).filter(|place| !place.seat.is_over())?;
        place.used = Instant::now();
        Some(place.seat.clone())
    }

    /// A seat for it, that is watched; or the one that it was given in the meantime.
    fn placed(self: &Arc<Self>, digest: TokenDigest, caller: Caller) -> Seat {
        let ended = self.workplace.stop.child_token();
        let seat = Seat::new(caller, ended.clone()).paced_after(UNPACED_CALLS).with_room_for(MOST_AT_ONCE);
        {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = places.get_mut(&digest).filter(|place| !place.seat.is_over()) {
                place.used = Instant::now();
                return place.seat.clone();
            }
            let place = Place { seat: seat.clone(), ended: ended.clone(), used: Instant::now() };
            places.insert(digest.clone(), place);
        }
        tokio::spawn(Arc::clone(self).watch(digest, ended));
        seat
    }

    /// Takes the seat away when its token is not good any more, and clears it away when nobody uses it.
    async fn watch(self: Arc<Self>, digest: TokenDigest, ended: CancellationToken) {
        loop {
            tokio::select! {
                () = ended.cancelled() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            match self.use_of(&digest) {
                Use::Over => break,
                Use::None => {}
                Use::UnderWay if self.is_good(&digest).await => {}
                Use::UnderWay => break,
            }
        }
        ended.cancel();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever came with it in the meantime has another.
        if places.get(&digest).is_some_and(|place| place.ended.is_cancelled()) {
            places.remove(&digest);
        }
    }

    /// What a seat is used for. One that is over by that is used for nothing from then on.
    fn use_of(&self, digest: &TokenDigest) -> Use {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get(digest) {
            None => Use::Over,
            Some(place) if !place.seat.is_unused() => Use::UnderWay,
            Some(place) if place.used.elapsed() < KEPT => Use::None,
            Some(_) => {
                places.remove(digest);
                Use::Over
            }
        }
    }

    async fn is_good(&self, digest: &TokenDigest) -> bool {
        match tokio::time::timeout(ANSWER_WITHIN, self.holder(digest)).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => {
                tracing::info!(token_id = digest.id(), %error, "what is under way by a token ends");
                false
            }
            Err(_) => {
                tracing::warn!(
                    token_id = digest.id(),
                    "nobody knows whether a token is good: what is under way ends"
                );
                false
            }
        }
    }

    /// Who calls with it.
    async fn caller(&self, digest: &TokenDigest, holder: Holder) -> Result<Caller, SeatError> {
        let of_elsewhere = |kind| (kind, self.workplace.web.lets_anybody_out(), holder.agent_id.clone());
        let (kind, may_reach_out, agent) = match holder.kind {
            HolderKind::Sandbox => {
                let (may_reach_out, agent) = self.of_job(&holder).await?;
                (AgentKind::Sandbox, may_reach_out, agent)
            }
            HolderKind::ProjectManager => of_elsewhere(AgentKind::ProjectManager),
            HolderKind::ProjectAnalyst => of_elsewhere(AgentKind::ProjectAnalyst),
            HolderKind::Operator => of_elsewhere(AgentKind::Operator),
        };
        // Nothing here could hold it to one session: what is written down is not passed over.
        if holder.session.is_some() {
            return Err(SeatError::OtherAudience);
        }
        // Inside a sandbox nobody has a name; by a token of the same kind there is no more to be had than there.
        let actor = (kind != AgentKind::Sandbox).then(|| {
            let name = holder.user.as_ref().map_or_else(|| digest.id(), |user| user.as_str());
            format!("{}:{name}", holder.kind)
        });
        Ok(Caller {
            kind,
            task_id: holder.task_id,
            job_id: holder.job_id,
            run_id: None,
            project_id: holder.project_id.map(String::from),
            user_id: holder.user.map(String::from),
            group_ids: Vec::new(),
            actor,
            grants: ToolGrants { may_reach_out, ..ToolGrants::default() },
            // An operator makes the rules for agents.
            identity: match kind {
                AgentKind::Operator => None,
                _ => self.workplace.tools.identity(agent.as_ref()),
            },
        })
    }

    /// Whether its sandbox may reach out, as far as the job says, and as which agent it is done.
    async fn of_job(&self, holder: &Holder) -> Result<(bool, Option<AgentId>), SeatError> {
        let Some(job_id) = &holder.job_id else { return Ok((false, None)) };
        let Some(job) = self.workplace.jobs.find(job_id).await? else {
            return Err(TokenDenied::Revoked.into());
        };
        let (assignment, _) = self.workplace.jobs.documents(&job).await?;
        Ok((assignment.sandbox.wants_web(), assignment.agent_id))
    }

    fn note(&self, code: &str) {
        let denied = Denied { kind: ProblemKind::Authentication, detail: code.to_owned() };
        self.workplace.denials.note(&denied, "POST", super::REMOTE_PATH);
    }
}

/// What a seat is used for.
enum Use {
    UnderWay,
    None,
    Over,
}

/// [`RemoteSeats`], as the gateway asks them.
pub(crate) struct RemoteTokens(pub(crate) Arc<RemoteSeats>);

impl Tokens for RemoteTokens {
    async fn seat(&self, token: &str) -> Result<Seat, NoSeat> {
        let Self(seats) = self;
        match seats.find(token).await {
            Ok(seat) => return Ok(seat),
            Err(SeatError::Denied(denied)) => seats.note(denied.code()),
            Err(SeatError::OtherAudience) => seats.note(OTHER_AUDIENCE),
            Err(SeatError::Database(error)) => {
                tracing::warn!(error = crate::chain(&error), "nobody knows whether a token is good");
                return Err(NoSeat::NotKnown);
            }
        }
        Err(NoSeat::Unknown)
    }
}
