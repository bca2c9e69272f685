//! A job ends once, whether its owner, a client or another node ends it.

use super::on_both_engines;
use super::world::{OWNER, StoreFixture, assignment, now, outcome, report, started};
use belljar_contract::failure::FailureCode;
use belljar_contract::id::{AgentId, JobId};
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::event::{JobEventKind, Stream};
use belljar_contract::worker::state::JobState;
use belljar_policy::lifecycle::{Fence, LifecycleRefusal, ReportedEnding};
use belljar_store::jobs::{ChangeError, FinalReport, JobEnd, JobNews, ReleaseReason};
use belljar_store::trust::TrustEvents;
use std::time::Duration;

on_both_engines! {
    async fn what_came_of_a_job_is_kept_with_its_digest(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let told = report(ReportedEnding::Completed, outcome("done\n"));
        let ended = world.jobs.end(&wanted.job_id, claimed.fence(), told, now()).await.unwrap();
        let JobEnd::Now(job) = ended else { panic!("before") };
        assert_eq!((job.life.state, &job.owner), (JobState::Completed, &None));
        let elsewhere = world.elsewhere().await;
        assert_eq!(elsewhere.find(&wanted.job_id).await.unwrap().unwrap(), job);
        let (_, kept) = elsewhere.documents(&job).await.unwrap();
        assert_eq!(kept.as_ref(), Some(&outcome("done\n")));
        let digest = belljar_store::jobs::Outcome::new(&kept.unwrap()).unwrap();
        assert_eq!(job.outcome_sha256.as_deref(), Some(digest.sha256()));
        assert_eq!(world.story(&wanted.job_id).await, ["accepted 0", "in_progress 1", "completed 1"]);
    }

    async fn what_was_not_told_before_is_told_with_the_end(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.claimed(&wanted).await;
        let said = JobEventKind::Log { stream: Stream::Stderr, text: "a".to_owned() };
        let untold = JobNews { started: Some(started()), happenings: vec![(now(), said)] };
        let report = FinalReport { untold, ..report(ReportedEnding::Completed, outcome("a")) };
        world.jobs.end(&wanted.job_id, claimed.fence(), report.clone(), now()).await.unwrap();
        let story = ["accepted 0", "in_progress 1", "log", "completed 1"];
        assert_eq!(world.story(&wanted.job_id).await, story);
        // An owner that got no answer repeats its report.
        world.jobs.end(&wanted.job_id, claimed.fence(), report, now()).await.unwrap();
        assert_eq!(world.story(&wanted.job_id).await, story);
    }

    async fn what_the_end_of_a_job_says_of_its_agent_is_recorded_with_it_and_once(world: StoreFixture) {
        let agent = AgentId::parse("worker").unwrap();
        let kind = TrustEventKind::TaskFailed { category: None };
        let event = |at| TrustEvent {
            at,
            event_id: uuid::Uuid::from_u128(7),
            agent_id: agent.clone(),
            kind: kind.clone(),
        };
        let ends = |ending, at| FinalReport { trust: Some(event(at)), ..report(ending, outcome("a")) };
        let at = now();
        let later = at + jiff::SignedDuration::from_secs(1);
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let (jobs, id, fence) = (&world.jobs, &wanted.job_id, claimed.fence());
        let events = TrustEvents::new(world.database.clone());
        jobs.end(id, fence, ends(ReportedEnding::Failed, at), at).await.unwrap();
        assert_eq!(events.of(&agent).await.unwrap(), [event(at)]);
        // An owner that got no answer repeats its report, later, or with another end.
        jobs.end(id, fence, ends(ReportedEnding::Failed, later), later).await.unwrap();
        jobs.end(id, fence, ends(ReportedEnding::Completed, later), later).await.unwrap_err();
        assert_eq!(events.of(&agent).await.unwrap(), [event(at)]);
        // If the trust event exists already, the end of another job adds no second one, and is recorded nevertheless.
        let other = assignment();
        let claimed = world.started(&other).await;
        jobs.end(&other.job_id, claimed.fence(), ends(ReportedEnding::Failed, later), later).await.unwrap();
        assert_eq!(events.of(&agent).await.unwrap(), [event(at)]);
        assert_eq!(world.job(&other.job_id).await.life.state, JobState::Failed);
    }

    async fn the_same_end_told_again_changes_nothing_and_another_is_refused(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let (jobs, id, fence) = (&world.jobs, &wanted.job_id, claimed.fence());
        jobs.end(id, fence, report(ReportedEnding::Completed, outcome("a")), now()).await.unwrap();
        let first = world.job(id).await;
        let again = jobs.end(id, fence, report(ReportedEnding::Completed, outcome("a")), now()).await.unwrap();
        assert_eq!(again, JobEnd::Before(first.clone()));
        let other = jobs.end(id, fence, report(ReportedEnding::Completed, outcome("b")), now()).await;
        assert!(matches!(other, Err(ChangeError::OtherOutcome)));
        let other = jobs.end(id, fence, report(ReportedEnding::Failed, outcome("a")), now()).await;
        assert!(matches!(other, Err(ChangeError::Refused(LifecycleRefusal::Over { .. }))));
        assert_eq!(world.job(id).await, first);
        assert_eq!(world.story(id).await, ["accepted 0", "in_progress 1", "completed 1"]);
    }

    async fn of_many_ends_at_once_there_is_one(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let mut tellers = Vec::new();
        for number in 0..10 {
            let (jobs, id, fence) = (world.elsewhere().await, wanted.job_id.clone(), claimed.fence());
            let told = report(ReportedEnding::Completed, outcome(&number.to_string()));
            tellers.push(tokio::spawn(async move { jobs.end(&id, fence, told, now()).await.is_ok() }));
        }
        let mut taken = 0;
        for teller in tellers {
            taken += usize::from(teller.await.unwrap());
        }
        assert_eq!(taken, 1);
        assert_eq!(world.story(&wanted.job_id).await.len(), 3);
    }

    async fn a_job_that_waits_is_over_when_it_is_canceled(world: StoreFixture) {
        let wanted = assignment();
        world.accepted(&wanted).await;
        let canceled = world.jobs.cancel(&wanted.job_id, Duration::ZERO, now()).await.unwrap();
        assert_eq!(canceled.life.state, JobState::Canceled);
        let (_, kept) = world.jobs.documents(&canceled).await.unwrap();
        assert_eq!(kept.unwrap().failure_code, Some(FailureCode::Canceled));
        assert!(world.jobs.claim(OWNER, now()).await.unwrap().is_none());
        assert_eq!(world.story(&wanted.job_id).await, ["accepted 0", "cancel_requested", "canceled 0"]);
        // A repeated request changes nothing.
        assert_eq!(world.jobs.cancel(&wanted.job_id, Duration::ZERO, now()).await.unwrap(), canceled);
    }

    async fn a_job_that_somebody_has_is_canceled_by_them(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let asked = world.jobs.cancel(&wanted.job_id, Duration::ZERO, now()).await.unwrap();
        assert_eq!((asked.life.state, asked.life.cancel_requested), (JobState::InProgress, true));
        let told = report(ReportedEnding::Canceled, outcome("so far"));
        world.jobs.end(&wanted.job_id, claimed.fence(), told, now()).await.unwrap();
        assert_eq!(
            world.story(&wanted.job_id).await,
            ["accepted 0", "in_progress 1", "cancel_requested", "canceled 1"]
        );
    }

    async fn a_job_whose_owner_is_gone_is_not_begun_again_unless_it_may_be(world: StoreFixture) {
        let once = assignment();
        let claimed = world.started(&once).await;
        let left = world.jobs.leave(&once.job_id, claimed.fence(), ReleaseReason::Gone, now()).await.unwrap();
        assert_eq!(left.life.state, JobState::NodeFailure);
        let (_, kept) = world.jobs.documents(&left).await.unwrap();
        assert_eq!(kept.unwrap().failure_code, Some(FailureCode::NodeFailure));

        let twice = Assignment { max_attempts: 2, ..assignment() };
        let first = world.started(&twice).await;
        let left = world.jobs.leave(&twice.job_id, first.fence(), ReleaseReason::Gone, now()).await.unwrap();
        assert_eq!((left.life.state, left.started_at), (JobState::Accepted, None));
        let second = world.jobs.claim(OWNER, now()).await.unwrap().unwrap();
        assert_eq!((second.job.job_id.clone(), second.job.life.attempt), (twice.job_id.clone(), 2));
        // The previous owner was only paused.
        let told = report(ReportedEnding::Completed, outcome("late"));
        let late = world.jobs.end(&twice.job_id, first.fence(), told, now()).await;
        assert!(matches!(late, Err(ChangeError::Refused(LifecycleRefusal::Fenced))));
        world.jobs.leave(&twice.job_id, second.fence(), ReleaseReason::Gone, now()).await.unwrap();
        assert_eq!(
            world.story(&twice.job_id).await,
            ["accepted 0", "in_progress 1", "accepted 1", "node_failure 2"]
        );
    }

    async fn what_was_not_begun_is_given_back_as_it_was(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.claimed(&wanted).await;
        let back = world.jobs.leave(&wanted.job_id, claimed.fence(), ReleaseReason::Unbegun, now()).await.unwrap();
        assert_eq!((back.life.state, back.life.attempt), (JobState::Accepted, 0));
        let again = world.jobs.claim(OWNER, now()).await.unwrap().unwrap();
        assert!(again.fence() > claimed.fence());
    }

    async fn a_result_is_acknowledged_when_there_is_one_and_it_is_that_one(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.started(&wanted).await;
        let (jobs, id) = (&world.jobs, &wanted.job_id);
        let early = jobs.acknowledge(id, None, now()).await;
        assert!(matches!(early, Err(ChangeError::NotOver { .. })));
        jobs.end(id, claimed.fence(), report(ReportedEnding::Completed, outcome("a")), now()).await.unwrap();
        let other = jobs.acknowledge(id, Some("0".repeat(64)), now()).await;
        assert!(matches!(other, Err(ChangeError::OtherOutcome)));
        let digest = world.job(id).await.outcome_sha256;
        let at = now();
        let known = jobs.acknowledge(id, digest, at).await.unwrap();
        assert_eq!(known.acknowledged_at, Some(at));
        // The first acknowledgement counts.
        assert_eq!(jobs.acknowledge(id, None, now()).await.unwrap(), known);
    }

    async fn what_is_told_of_a_job_that_nobody_knows_is_refused(world: StoreFixture) {
        let id = JobId::from_uuid(uuid::Uuid::new_v4());
        let unknown = |done: Result<(), ChangeError>| matches!(done, Err(ChangeError::Unknown { .. }));
        let told = report(ReportedEnding::Completed, outcome(""));
        assert!(unknown(world.jobs.end(&id, Fence(1), told, now()).await.map(drop)));
        assert!(unknown(world.jobs.cancel(&id, Duration::ZERO, now()).await.map(drop)));
        assert!(unknown(world.jobs.leave(&id, Fence(1), ReleaseReason::Gone, now()).await.map(drop)));
        assert!(unknown(world.jobs.acknowledge(&id, None, now()).await.map(drop)));
        assert_eq!(world.jobs.find(&id).await.unwrap(), None);
        assert_eq!(world.jobs.events_after(&id, 0, 10).await.unwrap(), []);
    }
}
