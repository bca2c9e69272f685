//! Decides whether to try a claim: an unsuccessful claim costs the database as much as a successful one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Knowledge about waiting jobs.
#[derive(Debug)]
pub(super) struct WaitingJobs {
    /// Number of jobs that this node accepted or gave back since the queue was seen empty.
    told: AtomicUsize,
    /// True until the queue is seen empty.
    may_have_more: AtomicBool,
    news: Notify,
}

/// Interval at which the queue is polled for jobs that other nodes accepted or gave up.
const LOOK: Duration = Duration::from_secs(1);

// === impl WaitingJobs ===

impl Default for WaitingJobs {
    /// There may be jobs from before the start.
    fn default() -> Self {
        Self { told: AtomicUsize::new(0), may_have_more: AtomicBool::new(true), news: Notify::new() }
    }
}

impl WaitingJobs {
    /// Adds a waiting job.
    pub(super) fn add(&self) {
        self.told.fetch_add(1, Ordering::SeqCst);
        self.news.notify_one();
    }

    /// Waits until there may be a job. Returns the number of known jobs, for [`WaitingJobs::is_empty`].
    pub(super) async fn has_some(&self) -> usize {
        loop {
            let told = self.told.load(Ordering::SeqCst);
            if told > 0 || self.may_have_more.load(Ordering::SeqCst) {
                return told;
            }
            if tokio::time::timeout(LOOK, self.news.notified()).await.is_err() {
                self.may_have_more.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Notes that a job was claimed.
    pub(super) fn took_one(&self) {
        // It may be a job that was not announced here.
        let _ = self.told.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |told| told.checked_sub(1));
    }

    /// Notes that a claim found no job when `known` jobs were known: other nodes have them, or they were canceled. Jobs that
    /// were added meanwhile are still to be claimed.
    pub(super) fn is_empty(&self, known: usize) {
        self.may_have_more.store(false, Ordering::SeqCst);
        let less = |told: usize| Some(told.saturating_sub(known));
        let _ = self.told.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn known(queue: &WaitingJobs) -> Option<usize> {
        match pin!(queue.has_some()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(known) => Some(known),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn each_waiting_job_is_claimed_once_without_idle_queries() {
        let queue = WaitingJobs::default();
        assert_eq!(known(&queue), Some(0), "something may be there from before");
        queue.is_empty(0);
        assert_eq!(known(&queue), None);
        queue.add();
        queue.add();
        assert_eq!(known(&queue), Some(2));
        queue.took_one();
        assert_eq!(known(&queue), Some(1));
        queue.took_one();
        assert_eq!(known(&queue), None);
    }

    #[tokio::test]
    async fn job_submitted_during_an_empty_query_is_claimed() {
        let queue = WaitingJobs::default();
        queue.add();
        let before = known(&queue).unwrap();
        queue.add();
        queue.is_empty(before);
        assert_eq!(known(&queue), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn queue_is_polled_for_unannounced_jobs() {
        let queue = WaitingJobs::default();
        queue.is_empty(0);
        let begun = tokio::time::Instant::now();
        assert_eq!(queue.has_some().await, 0);
        assert_eq!(begun.elapsed(), LOOK);
    }
}
