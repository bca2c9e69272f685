//! Trust events of agents: stored unchanged, each event once. The level of an agent is computed from all its events
//! elsewhere (`belljar_policy::trust`).

use crate::database::{Database, DatabaseError, Row, Value, to_the_end, unreadable, values};
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The events of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct TrustEvents {
    database: Database,
}

/// Result of recording an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordResult {
    /// The event was recorded.
    Now,
    /// The event had been recorded before.
    Before,
}

/// An event is not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another event has that id.
    #[error("there is another event {event_id} of that agent")]
    Another {
        /// The id.
        event_id: Uuid,
    },
    /// The maximum number of events is reached.
    #[error("as many events are recorded of that agent as may be: {MOST} of its work")]
    TooMany,
    /// The event can't be serialised.
    #[error("the event can't be written down")]
    Unwritten(#[source] serde_json::Error),
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Maximum number of events of an agent before its completed work is no longer recorded.
pub const MOST: u64 = 100_000;

/// Number of events beyond [`MOST`] up to which failures are recorded, and again beyond that for events from people and
/// inspections. An agent that fills its record with completed work can't keep these from counting.
pub const MORE: u64 = 10_000;

const FIND: &str = "SELECT event FROM trust_events WHERE agent_id = $1 AND event_id = $2";

const COUNT: &str = "SELECT count(*) AS events FROM trust_events WHERE agent_id = $1";

const RECORD: &str = "INSERT INTO trust_events (agent_id, event_id, at_ms, event) VALUES ($1, $2, $3, $4)";

/// Records an event within another transaction. An existing event stays as it is; an agent with enough events gets no
/// more.
pub(crate) const RECORD_ONCE: &str = "INSERT INTO trust_events (agent_id, event_id, at_ms, event) SELECT $1, $2, $3, $4 \
    WHERE (SELECT count(*) FROM trust_events WHERE agent_id = $1) < $5 ON CONFLICT (agent_id, event_id) DO NOTHING";

/// Records an event within another transaction, if the agent has no events yet.
pub(crate) const RECORD_FIRST: &str = "INSERT INTO trust_events (agent_id, event_id, at_ms, event) SELECT $1, $2, $3, $4 \
    WHERE NOT EXISTS (SELECT 1 FROM trust_events WHERE agent_id = $1) ON CONFLICT (agent_id, event_id) DO NOTHING";

const ALL: &str = "SELECT event FROM trust_events WHERE agent_id = $1 ORDER BY at_ms, event_id";

const AGENTS: &str = "SELECT agent_id, count(*) AS events FROM trust_events GROUP BY agent_id";

// === impl TrustEvents ===

impl TrustEvents {
    /// Creates the event store on a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Records an event; recording the same again changes nothing. It is on disk when this returns.
    ///
    /// # Errors
    /// [`RecordError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn record(&self, event: &TrustEvent) -> Result<RecordResult, RecordError> {
        let text = serde_json::to_string(event).map_err(RecordError::Unwritten)?;
        let (database, event) = (self.database.clone(), event.clone());
        to_the_end(async move {
            let (agent, id) = (event.agent_id.as_str(), event.event_id.to_string());
            let mut transaction = database.begin().await?;
            // Of two concurrent requests for one event, the second finds it recorded.
            transaction.alone("trust_events").await?;
            let known = transaction.fetch(FIND, values![agent, id.as_str()]).await?;
            if let Some(row) = known.first() {
                return match read(row)? == event {
                    true => Ok(RecordResult::Before),
                    false => Err(RecordError::Another { event_id: event.event_id }),
                };
            }
            let rows = transaction.fetch(COUNT, values![agent]).await?;
            if rows.first().map_or(Ok(0), |row| row.count("events"))? >= most(&event.kind) {
                return Err(RecordError::TooMany);
            }
            transaction.execute(RECORD, values![agent, id, event.at, text]).await?;
            transaction.commit("trust_record").await?;
            Ok(RecordResult::Now)
        })
        .await
    }

    /// Returns all events of an agent, in the order of their times.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn of(&self, agent: &AgentId) -> Result<Vec<TrustEvent>, DatabaseError> {
        self.database.fetch(ALL, values![agent.as_str()]).await?.iter().map(read).collect()
    }

    /// Returns the agents that have events, with their number.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn agents(&self) -> Result<BTreeMap<AgentId, u64>, DatabaseError> {
        let rows = self.database.fetch(AGENTS, values![]).await?;
        rows.iter().map(|row| Ok((row.parsed("agent_id", AgentId::parse)?, row.count("events")?))).collect()
    }
}

/// Returns the number of events of an agent from which on no more of that kind are recorded.
fn most(kind: &TrustEventKind) -> u64 {
    match kind {
        TrustEventKind::AgentHired { .. }
        | TrustEventKind::TaskCompleted { .. }
        | TrustEventKind::JobCompleted { .. } => MOST,
        TrustEventKind::TaskFailed { .. } => MOST + MORE,
        _ => MOST + 2 * MORE,
    }
}

/// Returns the arguments of [`RECORD_ONCE`] for that event.
pub(crate) fn values_of(event: &TrustEvent) -> Result<Vec<Value>, DatabaseError> {
    let mut values = columns_of(event)?;
    values.extend(values![most(&event.kind)]);
    Ok(values)
}

/// Returns the arguments of [`RECORD_FIRST`] for that event.
pub(crate) fn columns_of(event: &TrustEvent) -> Result<Vec<Value>, DatabaseError> {
    let text = serde_json::to_string(event).map_err(|error| unreadable(error.into()))?;
    let (agent, id) = (event.agent_id.as_str(), event.event_id.to_string());
    Ok(values![agent, id, event.at, text])
}

fn read(row: &Row) -> Result<TrustEvent, DatabaseError> {
    serde_json::from_str(&row.text("event")?).map_err(|error| unreadable(error.into()))
}
