//! Caller slots of remote agents, by their tokens. A token's validity is not cached: each request looks it up in the database,
//! which the nodes share. While a call by it is under way, it is checked at intervals.
//!
//! ```text
//! token ─► digest ─► valid? ─► the token's slot ─► call
//!                      ▲              │
//!                      └── watch ◄────┘ revoked, expired or can't be checked: calls under way are canceled
//! ```

use crate::denials::DenialReason;
use crate::job::NodeState;
use belljar_contract::id::AgentId;
use belljar_contract::tool::AgentKind;
use belljar_contract::worker::problem::ProblemKind;
use belljar_gateway::bearer::{TokenLookupError, Tokens};
use belljar_gateway::caller_slot::CallerSlot;
use belljar_policy::tool::ToolGrants;
use belljar_store::database::DatabaseError;
use belljar_store::tokens::{FindError, HolderKind, TokenDenied, TokenDigest, TokenHolder};
use belljar_tools::caller::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The remote callers, and their slots.
pub(crate) struct RemoteSlots {
    workplace: Arc<NodeState>,
    places: Mutex<HashMap<TokenDigest, RemoteSlot>>,
}

/// The slot of a token, from its first request on.
struct RemoteSlot {
    seat: CallerSlot,
    ended: CancellationToken,
    used: Instant,
}

/// Reasons why a token gets no slot.
#[derive(Debug, thiserror::Error)]
enum SlotError {
    #[error(transparent)]
    Denied(#[from] TokenDenied),
    /// The token is valid, but for another endpoint.
    #[error("the token is for another door")]
    OtherAudience,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Number of calls of a token from which on they are throttled and served one after the other.
const UNPACED_CALLS: u32 = 500;

/// Maximum number of concurrent requests of one token.
const MOST_AT_ONCE: usize = 8;

/// Interval at which a token is checked while a call by it is under way.
const LOOK: Duration = Duration::from_millis(250);

/// Maximum time of such a check; a slower one counts as failed. With [`LOOK`] before it this is less than a second.
const ANSWER_WITHIN: Duration = Duration::from_millis(600);

/// Time after which an unused slot is removed. The count of its calls is lost then; within that time it could have made as many
/// calls as are not throttled.
const KEPT: Duration = Duration::from_secs(10);

/// Denial code for a valid token of another endpoint.
const OTHER_AUDIENCE: &str = "token_other_audience";

// === impl RemoteSlots ===

impl RemoteSlots {
    pub(crate) fn new(workplace: Arc<NodeState>) -> Arc<Self> {
        Arc::new(Self { workplace, places: Mutex::default() })
    }

    async fn find(self: &Arc<Self>, token: &str) -> Result<CallerSlot, SlotError> {
        let digest = TokenDigest::of(token).ok_or(TokenDenied::Malformed)?;
        let holder = self.holder(&digest).await?;
        if let Some(seat) = self.known(&digest) {
            return Ok(seat);
        }
        let caller = self.caller(&digest, holder).await?;
        Ok(self.placed(digest, caller))
    }

    /// Returns the token's holder, if the token is valid now.
    async fn holder(&self, digest: &TokenDigest) -> Result<TokenHolder, SlotError> {
        let found = self.workplace.tokens.find_again(digest, self.workplace.now()).await;
        found.map(|record| record.holder).map_err(|error| match error {
            FindError::Denied(denied) => SlotError::Denied(denied),
            FindError::Database(error) => SlotError::Database(error),
        })
    }

    /// Returns the slot that it has already.
    fn known(&self, digest: &TokenDigest) -> Option<CallerSlot> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.get_mut(digest).filter(|place| !place.seat.is_over())?;
        place.used = Instant::now();
        Some(place.seat.clone())
    }

    /// Returns a new slot and watches it; or the one that was made meanwhile.
    fn placed(self: &Arc<Self>, digest: TokenDigest, caller: Caller) -> CallerSlot {
        let ended = self.workplace.stop.child_token();
        let seat =
            CallerSlot::new(caller, ended.clone()).paced_after(UNPACED_CALLS).with_room_for(MOST_AT_ONCE);
        {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = places.get_mut(&digest).filter(|place| !place.seat.is_over()) {
                place.used = Instant::now();
                return place.seat.clone();
            }
            let place = RemoteSlot { seat: seat.clone(), ended: ended.clone(), used: Instant::now() };
            places.insert(digest.clone(), place);
        }
        tokio::spawn(Arc::clone(self).watch(digest, ended));
        seat
    }

    /// Removes the slot when its token is no longer valid, or when it is unused.
    async fn watch(self: Arc<Self>, digest: TokenDigest, ended: CancellationToken) {
        loop {
            tokio::select! {
                () = ended.cancelled() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            match self.use_of(&digest) {
                SlotUse::Over => break,
                SlotUse::None => {}
                SlotUse::UnderWay if self.is_good(&digest).await => {}
                SlotUse::UnderWay => break,
            }
        }
        ended.cancel();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        // A request may have got a new slot meanwhile.
        if places.get(&digest).is_some_and(|place| place.ended.is_cancelled()) {
            places.remove(&digest);
        }
    }

    /// Returns the use of a slot, and removes it if it has been unused for too long.
    fn use_of(&self, digest: &TokenDigest) -> SlotUse {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get(digest) {
            None => SlotUse::Over,
            Some(place) if !place.seat.is_unused() => SlotUse::UnderWay,
            Some(place) if place.used.elapsed() < KEPT => SlotUse::None,
            Some(_) => {
                places.remove(digest);
                SlotUse::Over
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
                tracing::warn!(token_id = digest.id(), "token cannot be checked: its calls are canceled");
                false
            }
        }
    }

    /// Returns the caller that a token stands for.
    async fn caller(&self, digest: &TokenDigest, holder: TokenHolder) -> Result<Caller, SlotError> {
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
        // A token that is bound to a session is refused: nothing here could enforce that.
        if holder.session.is_some() {
            return Err(SlotError::OtherAudience);
        }
        // Callers in a sandbox have no name; a token for a sandbox gives no more than that.
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
            // An operator makes the access rules, so they don't apply to it.
            identity: match kind {
                AgentKind::Operator => None,
                _ => self.workplace.tools.identity(agent.as_ref()),
            },
        })
    }

    /// Returns whether the job's sandbox has web access, and the job's agent.
    async fn of_job(&self, holder: &TokenHolder) -> Result<(bool, Option<AgentId>), SlotError> {
        let Some(job_id) = &holder.job_id else { return Ok((false, None)) };
        let Some(job) = self.workplace.jobs.find(job_id).await? else {
            return Err(TokenDenied::Revoked.into());
        };
        let (assignment, _) = self.workplace.jobs.documents(&job).await?;
        Ok((assignment.sandbox.wants_web(), assignment.agent_id))
    }

    fn note(&self, code: &str) {
        let denied = DenialReason { kind: ProblemKind::Authentication, detail: code.to_owned() };
        self.workplace.denials.note(&denied, "POST", super::REMOTE_PATH);
    }
}

/// Use of a slot.
enum SlotUse {
    UnderWay,
    None,
    Over,
}

/// [`RemoteSlots`] as the token store of the gateway.
pub(crate) struct RemoteTokens(pub(crate) Arc<RemoteSlots>);

impl Tokens for RemoteTokens {
    async fn seat(&self, token: &str) -> Result<CallerSlot, TokenLookupError> {
        let Self(seats) = self;
        match seats.find(token).await {
            Ok(seat) => return Ok(seat),
            Err(SlotError::Denied(denied)) => seats.note(denied.code()),
            Err(SlotError::OtherAudience) => seats.note(OTHER_AUDIENCE),
            Err(SlotError::Database(error)) => {
                tracing::warn!(error = crate::chain(&error), "token cannot be checked");
                return Err(TokenLookupError::NotKnown);
            }
        }
        Err(TokenLookupError::Unknown)
    }
}
