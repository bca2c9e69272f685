//! Instances show by a heartbeat that they are alive, and are deleted when they own nothing any more.

use super::on_both_engines;
use super::world::{OWNER, StoreFixture, assignment, now};
use belljar_store::jobs::{ClaimError, ReleaseReason};
use std::time::Duration;

on_both_engines! {
    async fn a_beat_is_seen_by_others(world: StoreFixture) {
        let elsewhere = world.elsewhere().await;
        let before = elsewhere.instances().await.unwrap();
        assert!(world.jobs.beat(OWNER).await.unwrap());
        let after = elsewhere.instances().await.unwrap();
        assert_eq!(before.len(), 1);
        assert!(after[0].beat > before[0].beat);
        assert!(!world.jobs.beat("unknown").await.unwrap());
    }

    async fn an_instance_is_not_forgotten_while_it_has_jobs(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        assert!(!world.jobs.forget(OWNER).await.unwrap());
        assert_eq!(world.jobs.owned_by(OWNER).await.unwrap().len(), 1);
        world.jobs.leave(&wanted.job_id, claimed.fence(), ReleaseReason::Gone, now()).await.unwrap();
        assert!(world.jobs.forget(OWNER).await.unwrap());
        assert!(!world.jobs.beat(OWNER).await.unwrap());
        assert!(matches!(world.jobs.claim(OWNER, now()).await, Err(ClaimError::GivenUp { .. })));
    }

    async fn who_takes_a_job_while_it_is_forgotten_has_it_or_is_forgotten(world: StoreFixture) {
        for number in 0..30 {
            let instance = format!("brief-{number}");
            world.register(&instance).await;
            let wanted = assignment();
            world.accepted(&wanted).await;
            let (taker, forgetter) = (world.elsewhere().await, world.jobs.clone());
            let taking = instance.clone();
            let taken = tokio::spawn(async move { taker.claim(&taking, now()).await });
            let forgotten = forgetter.forget(&instance).await.unwrap();
            let taken = taken.await.unwrap();
            assert_eq!(taken.is_err(), forgotten, "{taken:?}");
            assert_eq!(world.jobs.owned_by(&instance).await.unwrap().len(), usize::from(!forgotten));
            world.jobs.cancel(&wanted.job_id, Duration::ZERO, now()).await.unwrap();
        }
    }
}
