//! Tests of earned trust with many agents: a full record of one agent has no effect on others.

use crate::judged::milestones;
use belljar_contract::access::AccessLevel;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{Quality, TrustEvent, TrustEventKind};
use belljar_gateway::access::{RuleBasedAccess, TrustFollower, TrustRecords};
use belljar_policy::access::AccessRules;
use belljar_store::database::{Database, Location};
use belljar_store::trust::{MORE, MOST, TrustEvents};
use belljar_tools::caller::Identity;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Fills an agent's record by repeating its last event, as recording each event would take an hour.
const FILL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
    INSERT INTO trust_events (agent_id, event_id, at_ms, event) \
    SELECT ?2, 'filled-' || i, at_ms, event \
    FROM n, (SELECT at_ms, event FROM trust_events WHERE agent_id = ?2 ORDER BY at_ms DESC LIMIT 1)";

#[tokio::test]
async fn agent_with_a_full_trust_record_keeps_its_level_and_others_still_earn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agents.db");
    let events = TrustEvents::new(Database::open(&Location::File(path.clone())).await.unwrap());
    let access = Arc::new(RuleBasedAccess::new(AccessRules::default(), BTreeMap::new()));
    let earning = TrustFollower::new(TrustRecords::new(events.clone(), milestones()), Arc::clone(&access));
    let agent = |name: &str| AgentId::parse(name).unwrap();
    let level = |name: &str| access.of(&Identity::Agent(agent(name))).agent.permissions.level();
    let begun = Timestamp::now();
    let after = |seconds| begun + SignedDuration::from_secs(seconds);
    let done = async |name: &str, at| {
        let quality = Some(Quality::from_steps(9_000));
        let kind = TrustEventKind::TaskCompleted { category: None, difficulty: None, quality };
        let event = TrustEvent { at, event_id: Uuid::now_v7(), agent_id: agent(name), kind };
        events.record(&event).await.unwrap();
    };
    for name in ["before", "full", "later"] {
        earning.hire(&agent(name), after(0)).await.unwrap();
        done(name, after(1)).await;
    }
    earning.look(after(2)).await.unwrap();
    assert_eq!(["before", "full", "later"].map(level), [AccessLevel::Restricted; 3]);

    let room = i64::try_from(MOST + 2 * MORE).unwrap();
    done("full", after(3)).await;
    rusqlite::Connection::open(&path).unwrap().execute(FILL, (room, "full")).unwrap();
    for name in ["before", "later"] {
        done(name, after(3)).await;
        done(name, after(4)).await;
    }
    // Nothing more can be recorded of the agent, and nothing has to be.
    earning.look(after(5)).await.unwrap();
    assert_eq!(["before", "full", "later"].map(level), [AccessLevel::Standard; 3]);
}
