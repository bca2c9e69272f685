//! Callbacks are delivered in order until the receiver has the result, whichever instance delivers them.

use super::on_both_engines;
use super::world::{OWNER, StoreFixture, assignment, now, outcome, report, submission};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::event::JobEventKind;
use belljar_policy::lifecycle::ReportedEnding;
use belljar_store::jobs::{Callback, CallbackAnswer, Submission};

const URL: &str = "http://127.0.0.1:1/status";

fn with_callback(wanted: &Assignment) -> Submission {
    Submission { callback: Some((URL.to_owned(), OWNER.to_owned())), ..submission(wanted) }
}

on_both_engines! {
    async fn states_are_told_in_order_and_the_last_acknowledges_the_result(world: StoreFixture) {
        let wanted = assignment();
        world.jobs.submit(with_callback(&wanted)).await.unwrap();
        let claimed = world.jobs.claim(OWNER, now()).await.unwrap().unwrap();
        let report = report(ReportedEnding::Completed, outcome("a"));
        world.jobs.end(&wanted.job_id, claimed.fence(), report, now()).await.unwrap();
        let states = world.jobs.states_after(&wanted.job_id, 0).await.unwrap();
        assert_eq!(states.len(), 2);
        assert!(states.iter().all(|event| matches!(event.happening, JobEventKind::Status { .. })));
        let heard = async |event, heard| {
            world.jobs.note_callback_heard(&wanted.job_id, OWNER, (event, heard), now()).await.unwrap()
        };
        assert!(heard(states[0].id, CallbackAnswer::Event).await);
        assert_eq!(world.job(&wanted.job_id).await.acknowledged_at, None);
        assert!(heard(states[1].id, CallbackAnswer::Result).await);
        assert!(world.job(&wanted.job_id).await.acknowledged_at.is_some());
        // It is over.
        assert!(!heard(states[1].id, CallbackAnswer::Result).await);
        world.jobs.forget(OWNER).await.unwrap();
        assert_eq!(world.jobs.take_callbacks("another").await.unwrap(), []);
    }

    async fn what_an_instance_leaves_untold_is_told_by_another_from_where_it_was(world: StoreFixture) {
        let wanted = assignment();
        world.jobs.submit(with_callback(&wanted)).await.unwrap();
        assert_eq!(world.jobs.take_callbacks("another").await.unwrap(), []);
        assert_eq!(world.jobs.callbacks_of(OWNER).await.unwrap().len(), 1);
        world.jobs.note_callback_heard(&wanted.job_id, OWNER, (1, CallbackAnswer::Event), now()).await.unwrap();
        world.jobs.note_callback_tried(&wanted.job_id, OWNER).await.unwrap();
        world.jobs.forget(OWNER).await.unwrap();
        let taken = world.jobs.take_callbacks("another").await.unwrap();
        assert_eq!(taken, [Callback { job_id: wanted.job_id.clone(), url: URL.to_owned(), told: 1 }]);
        // The previous owner was only paused; its report is rejected.
        let late = world.jobs.note_callback_heard(&wanted.job_id, OWNER, (2, CallbackAnswer::Result), now()).await;
        assert!(!late.unwrap());
        assert_eq!(world.job(&wanted.job_id).await.acknowledged_at, None);
    }
}
