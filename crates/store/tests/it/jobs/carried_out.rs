//! Progress reports of a job's owner.

use super::on_both_engines;
use super::world::{StoreFixture, assignment, now, started, starting};
use belljar_contract::id::RunId;
use belljar_contract::worker::event::{JobEventKind, Stream};
use belljar_contract::worker::state::JobState;
use belljar_policy::lifecycle::{Fence, LifecycleRefusal};
use belljar_store::jobs::{ChangeError, JobNews, RunStart};
use std::time::Duration;

fn saying(happenings: Vec<(jiff::Timestamp, JobEventKind)>) -> JobNews {
    JobNews { started: None, happenings }
}

fn said(text: &str) -> JobEventKind {
    JobEventKind::Log { stream: Stream::Stdout, text: text.to_owned() }
}

on_both_engines! {
    async fn a_job_that_has_begun_says_in_which_run_and_until_when(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.claimed(&wanted).await;
        let (run_id, at, deadline) = (RunId::from_uuid(uuid::Uuid::new_v4()), now(), now());
        let begun = RunStart { run_id, at, deadline };
        world.jobs.tell(&wanted.job_id, claimed.fence(), starting(begun.clone())).await.unwrap();
        let job = world.job(&wanted.job_id).await;
        assert_eq!(job.life.state, JobState::InProgress);
        assert_eq!((job.run_id, job.started_at, job.deadline), (Some(begun.run_id), Some(at), Some(deadline)));
        // A repeated report changes nothing.
        world.jobs.tell(&wanted.job_id, claimed.fence(), starting(started())).await.unwrap();
        assert_eq!(world.story(&wanted.job_id).await, ["accepted 0", "in_progress 1"]);
    }

    async fn time_that_a_job_is_given_is_its_own_from_then_on_and_time_that_it_is_not_changes_nothing(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let before = world.job(&wanted.job_id).await.deadline.unwrap();
        let later = before + jiff::Span::new().seconds(60);
        for (granted, deadline) in [(false, before), (true, later)] {
            let asked = JobEventKind::Extension { asked_seconds: 60, granted, deadline: later, reason: None };
            world.jobs.tell(&wanted.job_id, claimed.fence(), saying(vec![(now(), asked)])).await.unwrap();
            assert_eq!(world.job(&wanted.job_id).await.deadline, Some(deadline));
        }
    }

    async fn events_are_read_on_from_any_of_them(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let told = (0..5).map(|number| (now(), said(&number.to_string()))).collect();
        world.jobs.tell(&wanted.job_id, claimed.fence(), saying(told)).await.unwrap();
        let texts = |events: Vec<belljar_contract::worker::event::JobEvent>| -> String {
            let texts = events.into_iter().map(|event| match event.happening {
                JobEventKind::Log { text, .. } => text,
                other => other.kind().to_owned() + " ",
            });
            texts.collect()
        };
        let jobs = &world.jobs;
        assert_eq!(texts(jobs.events_after(&wanted.job_id, 0, 100).await.unwrap()), "status status 01234");
        assert_eq!(texts(jobs.events_after(&wanted.job_id, 4, 100).await.unwrap()), "234");
        assert_eq!(texts(jobs.events_after(&wanted.job_id, 4, 2).await.unwrap()), "23");
        assert_eq!(texts(jobs.events_after(&wanted.job_id, 7, 100).await.unwrap()), "");
    }

    async fn whoever_tells_at_the_same_time_events_have_an_order_without_gaps(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let mut tellers = Vec::new();
        for number in 0..20 {
            let (jobs, job_id, fence) = (world.elsewhere().await, wanted.job_id.clone(), claimed.fence());
            tellers.push(tokio::spawn(async move {
                match number {
                    10 => jobs.cancel(&job_id, Duration::ZERO, now()).await.map(drop),
                    _ => jobs.tell(&job_id, fence, saying(vec![(now(), said("a")), (now(), said("b"))])).await,
                }
            }));
        }
        for teller in tellers {
            teller.await.unwrap().unwrap();
        }
        assert_eq!(world.story(&wanted.job_id).await.len(), 2 + 19 * 2 + 1);
    }

    async fn who_has_not_the_job_tells_nothing_of_it(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let stale = Fence(claimed.fence().0 - 1);
        let told = world.jobs.tell(&wanted.job_id, stale, saying(vec![(now(), said("a"))])).await;
        assert!(matches!(told, Err(ChangeError::Refused(LifecycleRefusal::Fenced))));
        let started = world.jobs.tell(&wanted.job_id, stale, starting(started())).await;
        assert!(matches!(started, Err(ChangeError::Refused(LifecycleRefusal::Fenced))));
        assert_eq!(world.story(&wanted.job_id).await, ["accepted 0", "in_progress 1"]);
    }
}
