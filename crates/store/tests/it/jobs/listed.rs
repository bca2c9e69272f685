//! Jobs are listed in pages, the last accepted first.

use super::on_both_engines;
use super::world::{StoreFixture, assignment_of, now, task_id};
use belljar_contract::id::ProjectId;
use belljar_contract::worker::state::JobState;
use belljar_store::jobs::{JobListFilter, JobListPage};
use std::time::Duration;

fn ids(page: &JobListPage) -> Vec<String> {
    page.jobs.iter().map(|job| job.job_id.to_string()).collect()
}

on_both_engines! {
    async fn pages_have_every_job_once_also_when_more_come_meanwhile(world: StoreFixture) {
        let task = task_id();
        let mut wanted = Vec::new();
        for _ in 0..7 {
            wanted.push(world.accepted(&assignment_of(&task)).await.job_id.to_string());
        }
        wanted.reverse();
        let first = world.jobs.page(&JobListFilter::default(), 3).await.unwrap();
        world.accepted(&assignment_of(&task)).await;
        let next = |page: &JobListPage| JobListFilter { before: page.next, ..JobListFilter::default() };
        let second = world.jobs.page(&next(&first), 3).await.unwrap();
        let third = world.jobs.page(&next(&second), 3).await.unwrap();
        assert_eq!([ids(&first), ids(&second), ids(&third)].concat(), wanted);
        assert_eq!(third.next, None);
    }

    async fn a_task_is_bound_to_the_first_project_that_writes_to_it(world: StoreFixture) {
        let project = |name: &str| ProjectId::parse(name).unwrap();
        let (mean, median, task) = (project("mean"), project("median"), task_id());
        assert!(!world.jobs.is_of_other_project(&task, &mean).await.unwrap(), "an unused task is of no project");
        let other = world.elsewhere().await;
        let (one, two) = futures_util::join!(
            world.jobs.bind_to_project(&task, &mean),
            other.bind_to_project(&task, &median)
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(one, two, "exactly one of them gets the task");
        let (winner, loser) = if one { (mean, median) } else { (median, mean) };
        assert!(world.jobs.bind_to_project(&task, &winner).await.unwrap());
        assert!(!world.jobs.bind_to_project(&task, &loser).await.unwrap());
        assert!(world.jobs.is_of_other_project(&task, &loser).await.unwrap());
        // A task with a job of no project can't be bound.
        let of_none = world.accepted(&assignment_of(&task_id())).await.task_id;
        assert!(!world.jobs.bind_to_project(&of_none, &winner).await.unwrap());
    }

    async fn a_page_that_ends_with_the_last_job_is_the_last(world: StoreFixture) {
        let task = task_id();
        for _ in 0..3 {
            world.accepted(&assignment_of(&task)).await;
        }
        assert_eq!(world.jobs.page(&JobListFilter::default(), 3).await.unwrap().next, None);
    }

    async fn a_filter_is_for_the_task_and_for_the_state(world: StoreFixture) {
        let (one, other) = (task_id(), task_id());
        let of_one = world.accepted(&assignment_of(&one)).await.job_id;
        let canceled = world.accepted(&assignment_of(&one)).await.job_id;
        world.accepted(&assignment_of(&other)).await;
        world.jobs.cancel(&canceled, Duration::ZERO, now()).await.unwrap();
        let count = async |task_id: Option<_>, state| {
            ids(&world.jobs.page(&JobListFilter { task_id, state, ..JobListFilter::default() }, 10).await.unwrap())
        };
        assert_eq!(count(None, None).await.len(), 3);
        assert_eq!(count(Some(one.clone()), None).await, [canceled.to_string(), of_one.to_string()]);
        assert_eq!(count(None, Some(JobState::Canceled)).await, [canceled.to_string()]);
        assert_eq!(count(Some(one), Some(JobState::Accepted)).await, [of_one.to_string()]);
        assert_eq!(count(Some(other), Some(JobState::Canceled)).await, Vec::<String>::new());
    }
}
