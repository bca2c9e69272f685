//! Trust events of agents, on both engines.

use crate::jobs::on_both_engines;
use crate::jobs::world::{StoreFixture, now};
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_store::database::{Database, Location};
use belljar_store::trust::{MOST, RecordError, RecordResult, TrustEvents};
use uuid::Uuid;

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn event(name: &str, kind: TrustEventKind) -> TrustEvent {
    TrustEvent { at: now(), event_id: Uuid::now_v7(), agent_id: agent(name), kind }
}

on_both_engines! {
    async fn an_event_is_recorded_once_and_never_changed(world: StoreFixture) {
        let events = TrustEvents::new(world.database.clone());
        let hired = event("a", TrustEventKind::AgentHired { level: None });
        assert_eq!(events.record(&hired).await.unwrap(), RecordResult::Now);
        assert_eq!(events.record(&hired).await.unwrap(), RecordResult::Before);
        let other = TrustEvent { kind: TrustEventKind::SecurityIncident, ..hired.clone() };
        let refused = events.record(&other).await;
        assert!(matches!(refused, Err(RecordError::Another { event_id }) if event_id == hired.event_id));
        assert_eq!(events.of(&agent("a")).await.unwrap(), [hired]);
        assert_eq!(events.of(&agent("b")).await.unwrap(), []);
    }

    async fn events_come_in_the_order_of_their_times(world: StoreFixture) {
        let events = TrustEvents::new(world.database.clone());
        let first = event("a", TrustEventKind::AgentHired { level: None });
        let second = TrustEvent {
            at: first.at + std::time::Duration::from_secs(1),
            ..event("a", TrustEventKind::SecurityIncident)
        };
        for one in [&second, &first, &event("b", TrustEventKind::Evaluated)] {
            events.record(one).await.unwrap();
        }
        assert_eq!(events.of(&agent("a")).await.unwrap(), [first, second]);
        let known: Vec<_> = events.agents().await.unwrap().into_iter().collect();
        assert_eq!(known, [(agent("a"), 2), (agent("b"), 1)]);
    }

    async fn of_many_who_record_one_event_at_once_one_does(world: StoreFixture) {
        let events = TrustEvents::new(world.database.clone());
        let hired = event("a", TrustEventKind::AgentHired { level: None });
        let all = futures_util::future::join_all((0..8).map(|_| events.record(&hired))).await;
        let first = all.iter().filter(|recorded| matches!(recorded, Ok(RecordResult::Now))).count();
        assert_eq!((first, all.iter().all(Result::is_ok)), (1, true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_trust_record_still_accepts_failures_and_incidents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agents.db");
    let database = Database::open(&Location::File(path.clone())).await.unwrap();
    let events = TrustEvents::new(database);
    let done = || TrustEventKind::TaskCompleted { category: None, difficulty: None, quality: None };
    events.record(&event("a", done())).await.unwrap();
    // Fills the record directly, because recording the events one by one takes an hour.
    let fill = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
                INSERT INTO trust_events (agent_id, event_id, at_ms, event) \
                SELECT 'a', 'filled-' || i, at_ms, event FROM n, (SELECT at_ms, event FROM trust_events LIMIT 1)";
    rusqlite::Connection::open(&path).unwrap().execute(fill, [i64::try_from(MOST).unwrap()]).unwrap();
    assert_eq!(events.agents().await.unwrap()[&agent("a")], MOST);
    assert!(matches!(events.record(&event("a", done())).await, Err(RecordError::TooMany)));
    for kind in [TrustEventKind::TaskFailed { category: None }, TrustEventKind::SecurityIncident] {
        assert_eq!(events.record(&event("a", kind)).await.unwrap(), RecordResult::Now);
    }
    // The control: another agent is not affected.
    assert_eq!(events.record(&event("b", done())).await.unwrap(), RecordResult::Now);
}
