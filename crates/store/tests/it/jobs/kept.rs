//! Retention: what is kept and what is removed.

use super::on_both_engines;
use super::world::{OWNER, StoreFixture, assignment, now, outcome, report};
use belljar_contract::id::JobId;
use belljar_contract::result::Artifact;
use belljar_contract::worker::job::JobOutcome;
use belljar_policy::lifecycle::ReportedEnding;
use belljar_store::jobs::RetentionCutoffs;
use jiff::{SignedDuration, Timestamp};

async fn ended_with(world: &StoreFixture, sha256: &str) -> JobId {
    let wanted = assignment();
    world.accepted(&wanted).await;
    let claimed = world.jobs.claim(OWNER, now()).await.unwrap().unwrap();
    let artifact = Artifact { path: "/job/artifacts/a".to_owned(), sha256: sha256.to_owned(), size_bytes: 7 };
    let outcome = JobOutcome { artifacts: vec![artifact], ..outcome("") };
    world
        .jobs
        .end(&wanted.job_id, claimed.fence(), report(ReportedEnding::Completed, outcome), now())
        .await
        .unwrap();
    wanted.job_id
}

fn in_an_hour() -> Timestamp {
    now() + SignedDuration::from_hours(1)
}

on_both_engines! {
    async fn a_result_that_nobody_has_is_kept_longer_than_one_that_somebody_has(world: StoreFixture) {
        let had = ended_with(&world, "aa").await;
        let not_had = ended_with(&world, "aa").await;
        let running = assignment();
        world.accepted(&running).await;
        world.jobs.acknowledge(&had, None, now()).await.unwrap();
        let retention = RetentionCutoffs { acknowledged_before: in_an_hour(), ended_before: Timestamp::UNIX_EPOCH };
        assert_eq!(world.jobs.expire(retention).await.unwrap(), 1);
        assert_eq!(world.jobs.find(&had).await.unwrap(), None);
        assert_eq!(world.jobs.events_after(&had, 0, 10).await.unwrap(), []);
        // Another job refers to the content, too.
        assert!(world.jobs.is_referenced("aa").await.unwrap());
        assert_eq!(world.jobs.artifact_size(&not_had, "aa").await.unwrap(), Some(7));
        let retention = RetentionCutoffs { ended_before: in_an_hour(), ..retention };
        assert_eq!(world.jobs.expire(retention).await.unwrap(), 1);
        assert!(!world.jobs.is_referenced("aa").await.unwrap());
        assert!(world.jobs.find(&running.job_id).await.unwrap().is_some());
        assert_eq!(world.jobs.expire(retention).await.unwrap(), 0);
    }

    async fn a_file_is_found_by_the_job_that_has_left_it_and_by_no_other(world: StoreFixture) {
        let (one, other) = (ended_with(&world, "aa").await, ended_with(&world, "bb").await);
        assert_eq!(world.jobs.artifact_size(&one, "aa").await.unwrap(), Some(7));
        assert_eq!(world.jobs.artifact_size(&other, "aa").await.unwrap(), None);
    }
}
