//! A job is accepted durably, once, and only up to the maximum number of waiting jobs.

use super::on_both_engines;
use super::world::{MOST_WAITING, StoreFixture, assignment, now, submission};
use belljar_contract::id::{AgentId, JobId};
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::state::JobState;
use belljar_store::jobs::{AcceptedJob, Submission, SubmitError};
use belljar_store::trust::TrustEvents;

on_both_engines! {
    async fn who_was_told_that_a_job_is_accepted_finds_it_in_the_database(world: StoreFixture) {
        let wanted = assignment();
        let accepted = world.accepted(&wanted).await;
        assert_eq!(accepted.life.state, JobState::Accepted);
        let elsewhere = world.elsewhere().await;
        let found = elsewhere.find(&wanted.job_id).await.unwrap().unwrap();
        assert_eq!(found, accepted);
        assert_eq!(elsewhere.documents(&found).await.unwrap(), (wanted.clone(), None));
        assert_eq!(world.story(&wanted.job_id).await, ["accepted 0"]);
    }

    async fn the_same_again_is_the_same_job(world: StoreFixture) {
        let wanted = assignment();
        let first = world.accepted(&wanted).await;
        assert_eq!(world.submit(&wanted).await.unwrap(), AcceptedJob::Known(first.clone()));
        // The case of an id doesn't matter.
        let upper = JobId::parse(&wanted.job_id.as_str().to_uppercase()).unwrap();
        assert_eq!(world.jobs.find(&upper).await.unwrap(), Some(first.clone()));
        let upper = Assignment { job_id: upper, ..wanted };
        assert_eq!(world.submit(&upper).await.unwrap(), AcceptedJob::Known(first));
    }

    async fn something_else_under_a_jobs_id_is_refused_and_changes_nothing(world: StoreFixture) {
        let wanted = assignment();
        let first = world.accepted(&wanted).await;
        let other = Assignment { max_attempts: 2, ..wanted.clone() };
        let refused = world.submit(&other).await;
        assert!(matches!(refused, Err(SubmitError::OtherJob { job_id }) if job_id == wanted.job_id));
        assert_eq!(world.job(&wanted.job_id).await, first);
    }

    async fn an_idempotency_key_is_for_one_request(world: StoreFixture) {
        let (one, other) = (assignment(), assignment());
        let with_key = |wanted| Submission { idempotency_key: Some("a key".to_owned()), ..submission(wanted) };
        let AcceptedJob::New(first) = world.jobs.submit(with_key(&one)).await.unwrap() else { panic!("known") };
        assert_eq!(world.jobs.submit(with_key(&one)).await.unwrap(), AcceptedJob::Known(first));
        let refused = world.jobs.submit(with_key(&other)).await;
        assert!(matches!(refused, Err(SubmitError::OtherRequest)));
        assert_eq!(world.jobs.find(&other.job_id).await.unwrap(), None);
        // The control: without the key it is accepted.
        world.accepted(&other).await;
    }

    async fn many_who_submit_the_same_at_once_get_one_job(world: StoreFixture) {
        let wanted = assignment();
        let mut submitters = Vec::new();
        for _ in 0..16 {
            let (jobs, submission) = (world.jobs.clone(), submission(&wanted));
            submitters.push(tokio::spawn(async move { jobs.submit(submission).await.unwrap() }));
        }
        let mut new = 0;
        for submitter in submitters {
            new += usize::from(matches!(submitter.await.unwrap(), AcceptedJob::New(_)));
        }
        assert_eq!(new, 1);
        assert_eq!(world.story(&wanted.job_id).await, ["accepted 0"]);
    }

    async fn no_more_wait_than_may_and_one_that_is_taken_makes_room(world: StoreFixture) {
        let few = |wanted: &Assignment| Submission { most_waiting: 2, ..submission(wanted) };
        for _ in 0..2 {
            world.jobs.submit(few(&assignment())).await.unwrap();
        }
        let wanted = assignment();
        let refused = world.jobs.submit(few(&wanted)).await;
        assert!(matches!(refused, Err(SubmitError::Full { waiting: 2 })));
        assert_eq!(world.jobs.find(&wanted.job_id).await.unwrap(), None);
        world.jobs.claim(super::world::OWNER, now()).await.unwrap().unwrap();
        world.jobs.submit(few(&wanted)).await.unwrap();
    }

    async fn job_that_is_refused_hires_no_agent_and_one_that_is_accepted_does_once(world: StoreFixture) {
        let agent = AgentId::parse("worker").unwrap();
        let (kind, at) = (TrustEventKind::AgentHired { level: None }, now());
        let hired = |digit| TrustEvent {
            at, event_id: uuid::Uuid::from_u128(digit), agent_id: agent.clone(), kind: kind.clone(),
        };
        let hiring = |wanted: &Assignment, digit| Submission { hired: Some(hired(digit)), ..submission(wanted) };
        let recorded = async || TrustEvents::new(world.database.clone()).of(&agent).await.unwrap();
        let wanted = assignment();
        world.accepted(&wanted).await;
        let other = Assignment { max_attempts: 2, ..wanted.clone() };
        assert!(matches!(world.jobs.submit(hiring(&other, 1)).await, Err(SubmitError::OtherJob { .. })));
        let full = Submission { most_waiting: 1, ..hiring(&assignment(), 1) };
        // Another process without a cached count counts the waiting jobs.
        let elsewhere = world.elsewhere().await;
        assert!(matches!(elsewhere.submit(full).await, Err(SubmitError::Full { .. })));
        assert_eq!(recorded().await, []);
        // Controls: an accepted job hires its agent. The next one was submitted without knowing that, and hires no
        // second time.
        for digit in [1, 2] {
            assert!(matches!(world.jobs.submit(hiring(&assignment(), digit)).await, Ok(AcceptedJob::New(_))));
            assert_eq!(recorded().await, [hired(1)]);
        }
    }

    async fn one_that_is_refused_does_not_take_those_with_it_that_come_at_the_same_time(world: StoreFixture) {
        let first = assignment();
        world.accepted(&first).await;
        let mut submitters = Vec::new();
        for number in 0..40 {
            let wanted = match number % 2 {
                0 => assignment(),
                _ => Assignment { max_attempts: 3, ..first.clone() },
            };
            let (jobs, submission) = (world.jobs.clone(), submission(&wanted));
            submitters.push(tokio::spawn(async move { jobs.submit(submission).await.is_ok() }));
        }
        for (number, submitter) in submitters.into_iter().enumerate() {
            assert_eq!(submitter.await.unwrap(), number % 2 == 0);
        }
        let page = world.jobs.page(&belljar_store::jobs::JobListFilter::default(), 100).await.unwrap();
        assert_eq!(page.jobs.len(), 21);
        assert!(page.jobs.len() < MOST_WAITING as usize);
    }
}
