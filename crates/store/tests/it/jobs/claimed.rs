//! A job has one owner at a time, and tasks take turns.

use super::on_both_engines;
use super::world::{OWNER, StoreFixture, assignment, assignment_of, now, task_id};
use belljar_contract::id::JobId;
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::state::JobState;
use belljar_store::jobs::{ClaimError, Instance, JobFilter, JobRecord};
use std::collections::HashSet;
use std::sync::Arc;

/// An instance that can run one job.
struct OneJobInstance(JobId);

impl JobFilter for OneJobInstance {
    fn runs(&self, assignment: &Assignment) -> bool {
        assignment.job_id == self.0
    }

    fn gives_up(&self, _: &JobRecord, _: &Assignment, _: &[Instance]) -> bool {
        false
    }
}

on_both_engines! {
    async fn however_many_ask_for_jobs_each_job_is_given_to_one_of_them(world: StoreFixture) {
        const JOBS: usize = 200;
        for _ in 0..JOBS {
            world.accepted(&assignment()).await;
        }
        let mut owners = Vec::new();
        for number in 0..8 {
            let instance = format!("owner-{number}");
            world.register(&instance).await;
            let jobs = world.elsewhere().await;
            owners.push(tokio::spawn(async move {
                let mut taken = Vec::new();
                let mut in_vain = 0;
                // A job whose row is locked by another transaction is skipped, and may be the last one.
                while in_vain < 3 {
                    match jobs.claim(&instance, now()).await.unwrap() {
                        Some(claimed) => taken.push(claimed.job.job_id),
                        None => in_vain += 1,
                    }
                }
                assert_eq!(jobs.owned_by(&instance).await.unwrap().len(), taken.len());
                taken
            }));
        }
        let mut taken = Vec::new();
        for owner in owners {
            taken.extend(owner.await.unwrap());
        }
        assert_eq!(taken.len(), JOBS);
        assert_eq!(taken.into_iter().collect::<HashSet<_>>().len(), JOBS);
    }

    async fn a_task_with_many_jobs_does_not_keep_others_waiting(world: StoreFixture) {
        let (greedy, modest) = (task_id(), task_id());
        for _ in 0..10 {
            world.accepted(&assignment_of(&greedy)).await;
        }
        for _ in 0..3 {
            world.accepted(&assignment_of(&modest)).await;
        }
        let mut order = Vec::new();
        while let Some(claimed) = world.jobs.claim(OWNER, now()).await.unwrap() {
            order.push(if claimed.job.task_id == modest { 'm' } else { 'g' });
        }
        assert_eq!(order.into_iter().collect::<String>(), "gmgmgmggggggg");
    }

    async fn who_comes_late_has_the_turn_that_is_on_and_not_all_that_are_past(world: StoreFixture) {
        let (early, late) = (task_id(), task_id());
        for _ in 0..4 {
            world.accepted(&assignment_of(&early)).await;
        }
        for _ in 0..3 {
            world.jobs.claim(OWNER, now()).await.unwrap().unwrap();
        }
        for _ in 0..3 {
            world.accepted(&assignment_of(&late)).await;
        }
        let mut order = Vec::new();
        while let Some(claimed) = world.jobs.claim(OWNER, now()).await.unwrap() {
            order.push(if claimed.job.task_id == late { 'l' } else { 'e' });
        }
        assert_eq!(order.into_iter().collect::<String>(), "elll");
    }

    async fn a_claim_is_the_beginning_of_an_attempt(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.claimed(&wanted).await;
        assert_eq!(claimed.assignment, wanted);
        let job = world.job(&wanted.job_id).await;
        assert_eq!((job.life.state, job.life.attempt), (JobState::Accepted, 1));
        assert_eq!(job.owner.as_deref(), Some(OWNER));
        assert!(world.jobs.claim(OWNER, now()).await.unwrap().is_none());
    }

    async fn a_job_that_does_not_fit_waits_for_an_instance_that_it_fits(world: StoreFixture) {
        // More jobs than are examined at once.
        let unfit: Vec<_> = (0..40).map(|_| assignment()).collect();
        for job in &unfit {
            world.accepted(job).await;
        }
        let fit = assignment();
        world.accepted(&fit).await;
        let only = |wanted: &Assignment| Arc::new(OneJobInstance(wanted.job_id.clone())) as Arc<dyn JobFilter>;
        let claimed = world.jobs.claim_fitting(OWNER, only(&fit), now()).await.unwrap().unwrap();
        assert_eq!(claimed.assignment, fit);
        for _ in 0..2 {
            assert!(world.jobs.claim_fitting(OWNER, only(&fit), now()).await.unwrap().is_none());
        }
        // The control: another instance claims the jobs that this one has skipped.
        world.register("other").await;
        let elsewhere = world.elsewhere().await;
        let claimed = elsewhere.claim_fitting("other", only(&unfit[7]), now()).await.unwrap().unwrap();
        assert_eq!((claimed.assignment, claimed.job.owner.as_deref()), (unfit[7].clone(), Some("other")));
        let claimed = world.jobs.claim_fitting(OWNER, only(&unfit[0]), now()).await.unwrap().unwrap();
        assert_eq!(claimed.assignment, unfit[0]);
    }

    async fn what_an_instance_can_run_is_known_to_others_as_long_as_it_is(world: StoreFixture) {
        world.register("other").await;
        world.jobs.announce("other", "first").await.unwrap();
        world.jobs.announce("other", "second").await.unwrap();
        let known = || async {
            let all = world.elsewhere().await.instances().await.unwrap();
            all.into_iter().map(|instance| (instance.id, instance.abilities)).collect::<Vec<_>>()
        };
        let other = ("other".to_owned(), Some("second".to_owned()));
        assert!(known().await.contains(&other) && known().await.contains(&(OWNER.to_owned(), None)));
        assert!(world.jobs.announce("unknown", "anything").await.is_err());
        assert!(world.jobs.forget("other").await.unwrap());
        world.register("other").await;
        assert!(known().await.contains(&("other".to_owned(), None)));
    }

    async fn an_instance_that_is_not_known_gets_nothing(world: StoreFixture) {
        world.accepted(&assignment()).await;
        let refused = world.jobs.claim("unknown", now()).await;
        assert!(matches!(refused, Err(ClaimError::GivenUp { .. })));
        assert!(world.jobs.claim(OWNER, now()).await.unwrap().is_some());
    }
}
