//! A job has one owner at a time, and tasks take turns.

use super::on_both_engines;
use super::world::{OWNER, World, assignment, assignment_of, now, task_id};
use belljar_contract::worker::state::JobState;
use belljar_store::jobs::ClaimError;
use std::collections::HashSet;

on_both_engines! {
    async fn however_many_ask_for_jobs_each_job_is_given_to_one_of_them(world: World) {
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
                // One that is locked by somebody else is passed over, and may be the last.
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

    async fn a_task_with_many_jobs_does_not_keep_others_waiting(world: World) {
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

    async fn who_comes_late_has_the_turn_that_is_on_and_not_all_that_are_past(world: World) {
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

    async fn a_claim_is_the_beginning_of_an_attempt(world: World) {
        let wanted = assignment();
        let claimed = world.claimed(&wanted).await;
        assert_eq!(claimed.assignment, wanted);
        let job = world.job(&wanted.job_id).await;
        assert_eq!((job.life.state, job.life.attempt), (JobState::Accepted, 1));
        assert_eq!(job.owner.as_deref(), Some(OWNER));
        assert!(world.jobs.claim(OWNER, now()).await.unwrap().is_none());
    }

    async fn an_instance_that_is_not_known_gets_nothing(world: World) {
        world.accepted(&assignment()).await;
        let refused = world.jobs.claim("nobody", now()).await;
        assert!(matches!(refused, Err(ClaimError::GivenUp { .. })));
        assert!(world.jobs.claim(OWNER, now()).await.unwrap().is_some());
    }
}
