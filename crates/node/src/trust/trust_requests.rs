//! Trust requests from outside: listing agents, showing one, recording an event, and decisions of operators.

use super::NodeTrust;
use crate::daemon::WallClock;
use belljar_contract::approval::Ruling;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{AgentTrust, ProposedPromotion, TrustEvent, TrustEventKind, TrustState};
use belljar_policy::trust::{IgnoredReason, Replay};
use belljar_store::database::DatabaseError;
use belljar_store::trust::{RecordError, RecordResult};
use jiff::Timestamp;
use std::ops::Bound;
use std::time::Duration;
use uuid::Uuid;

/// Result of recording an event.
#[derive(Debug)]
pub(crate) struct TrustEntry {
    pub(crate) event_id: Uuid,
    pub(crate) is_new: bool,
    /// Reason why it has no effect, if it has none.
    pub(crate) ignored: Option<IgnoredReason>,
    /// State of its agent now.
    pub(crate) state: TrustState,
}

/// Reasons why a trust request fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("agent {agent} was never hired")]
    UnknownAgent { agent: AgentId },
    #[error("no promotion {proposal_id} of {agent} is proposed")]
    UnknownProposal { agent: AgentId, proposal_id: Uuid },
    #[error("the promotion {proposal_id} of {agent} was answered otherwise")]
    Answered { agent: AgentId, proposal_id: Uuid },
    #[error("it is recorded, and changes nothing")]
    Nothing {
        #[source]
        why: IgnoredReason,
    },
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Resolution of the wall clock.
const MOMENT: Duration = Duration::from_millis(1);

// === impl NodeTrust ===

impl NodeTrust {
    /// Returns a page of the agents with records, by name, after `after`; true if there are more.
    pub(crate) async fn states(
        &self,
        (after, limit): (Option<&AgentId>, usize),
        now: Timestamp,
    ) -> Result<(Vec<TrustState>, bool), DatabaseError> {
        let agents = self.book.events().agents().await?;
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut left = agents.range::<AgentId, _>((behind, Bound::Unbounded));
        let mut states = Vec::new();
        for (agent, _) in left.by_ref().take(limit) {
            states.push(self.of(agent, now).await?.trust.state(self.book.config()));
        }
        Ok((states, left.next().is_some()))
    }

    /// Evaluates the events of an agent.
    async fn of(&self, agent: &AgentId, now: Timestamp) -> Result<Replay, DatabaseError> {
        self.book.of(agent, now).await
    }

    /// Returns all trust information of an agent.
    pub(crate) async fn told(&self, agent: &AgentId, now: Timestamp) -> Result<AgentTrust, TrustError> {
        let told = self.of(agent, now).await?.told(self.book.config());
        match told.state.created_at {
            Some(_) => Ok(told),
            None => Err(TrustError::UnknownAgent { agent: agent.clone() }),
        }
    }

    /// Records an event, at the given time or now. An event with a known id is not recorded again: its first time is kept unless
    /// another one is given.
    pub(crate) async fn report(
        &self,
        (agent, event_id, kind): (&AgentId, Uuid, TrustEventKind),
        at: Option<Timestamp>,
        clock: &WallClock,
    ) -> Result<TrustEntry, RecordError> {
        let event = TrustEvent { at: at.unwrap_or_else(|| clock()), event_id, agent_id: agent.clone(), kind };
        let recorded = match self.book.events().record(&event).await {
            Err(RecordError::Another { .. }) if at.is_none() && self.has(&event).await? => {
                RecordResult::Before
            }
            recorded => recorded?,
        };
        self.counted(&event, recorded, clock).await
    }

    /// Records an operator's decision about a known agent.
    pub(crate) async fn say(
        &self,
        (agent, kind): (&AgentId, TrustEventKind),
        clock: &WallClock,
    ) -> Result<TrustEntry, TrustError> {
        self.told(agent, clock()).await?;
        let entered = self.report((agent, Uuid::now_v7(), kind), None, clock).await?;
        match entered.ignored {
            None => Ok(entered),
            Some(why) => Err(TrustError::Nothing { why }),
        }
    }

    /// Records an operator's decision about a promotion. Repeating the same decision has no effect.
    pub(crate) async fn answer(
        &self,
        (agent, proposal_id): (&AgentId, Uuid),
        ruling: Ruling,
        clock: &WallClock,
    ) -> Result<TrustEntry, TrustError> {
        let pending = self.told(agent, clock()).await?.state.pending;
        let is_meant = |one: &&ProposedPromotion| one.proposal_id == proposal_id;
        let Some(proposed) = pending.iter().find(is_meant) else {
            return self.answered((agent, proposal_id), ruling, clock()).await;
        };
        let kind = match ruling {
            Ruling::Approve => proposed.approved(Uuid::now_v7()),
            Ruling::Deny => proposed.denied(Uuid::now_v7()),
        };
        match self.say((agent, kind), clock).await {
            // Another operator has decided at the same time.
            Err(TrustError::Nothing { why: IgnoredReason::NotProposed }) => {
                self.answered((agent, proposal_id), ruling, clock()).await
            }
            said => said,
        }
    }

    /// Returns the earlier decision, if it is the same.
    async fn answered(
        &self,
        (agent, proposal_id): (&AgentId, Uuid),
        ruling: Ruling,
        now: Timestamp,
    ) -> Result<TrustEntry, TrustError> {
        let replayed = self.of(agent, now).await?;
        let events = self.book.events().of(agent).await?;
        let answer = |event: &TrustEvent| match &event.kind {
            TrustEventKind::PromotionApproved { proposal_id: of, .. } if *of == proposal_id => {
                Some((event.event_id, Ruling::Approve))
            }
            TrustEventKind::PromotionDenied { proposal_id: of, .. } if *of == proposal_id => {
                Some((event.event_id, Ruling::Deny))
            }
            _ => None,
        };
        let has_counted = |(event_id, _): &(Uuid, Ruling)| replayed.ignored(*event_id).is_none();
        match events.iter().filter_map(answer).find(has_counted) {
            None => Err(TrustError::UnknownProposal { agent: agent.clone(), proposal_id }),
            Some((_, other)) if other != ruling => {
                Err(TrustError::Answered { agent: agent.clone(), proposal_id })
            }
            Some((event_id, _)) => {
                let state = replayed.trust.state(self.book.config());
                Ok(TrustEntry { event_id, is_new: false, ignored: None, state })
            }
        }
    }

    /// Applies the event here before the request is answered; other nodes apply it within a moment.
    async fn counted(
        &self,
        event: &TrustEvent,
        recorded: RecordResult,
        clock: &WallClock,
    ) -> Result<TrustEntry, RecordError> {
        // Events of one millisecond are ordered by id, so the evaluation must be later than that.
        tokio::time::sleep(MOMENT).await;
        let now = clock();
        if let Some(earning) = &self.earning
            && let Err(error) = earning.look(now).await
        {
            tracing::warn!(error = crate::chain(&error), "what was recorded of an agent counts later");
        }
        let replayed = self.of(&event.agent_id, now).await?;
        Ok(TrustEntry {
            event_id: event.event_id,
            is_new: recorded == RecordResult::Now,
            ignored: replayed.ignored(event.event_id),
            state: replayed.trust.state(self.book.config()),
        })
    }

    async fn has(&self, event: &TrustEvent) -> Result<bool, DatabaseError> {
        let events = self.book.events().of(&event.agent_id).await?;
        Ok(events.iter().any(|known| known.event_id == event.event_id && known.kind == event.kind))
    }
}

impl From<DatabaseError> for TrustError {
    fn from(error: DatabaseError) -> Self {
        Self::Record(error.into())
    }
}
