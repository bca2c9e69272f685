//! Whether it is worth asking for a job: each that is asked for in vain costs the database as much as one that is there.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// What is known of the jobs that wait.
#[derive(Debug)]
pub(super) struct Queue {
    /// Jobs that came by way of this node, or were given back by it, since the queue was seen to be empty.
    told: AtomicUsize,
    /// There may be others, until it is seen to be empty.
    may_have_more: AtomicBool,
    news: Notify,
}

/// So often it is looked for jobs that came by way of another node, or were given up by one.
const LOOK: Duration = Duration::from_secs(1);

// === impl Queue ===

impl Default for Queue {
    /// Nobody knows what is there from before.
    fn default() -> Self {
        Self { told: AtomicUsize::new(0), may_have_more: AtomicBool::new(true), news: Notify::new() }
    }
}

impl Queue {
    /// There is one more.
    pub(super) fn add(&self) {
        self.told.fetch_add(1, Ordering::SeqCst);
        self.news.notify_one();
    }

    /// Waits until there may be one. As many are known to be there, for [`Queue::is_empty`].
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

    /// One is taken.
    pub(super) fn took_one(&self) {
        // It may be one that nobody has told of.
        let _ = self.told.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |told| told.checked_sub(1));
    }

    /// None was there, when so many were known of: others have them, or they were given up. Those that have come meanwhile are
    /// still to be asked for.
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

    fn known(queue: &Queue) -> Option<usize> {
        match pin!(queue.has_some()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(known) => Some(known),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn each_job_is_asked_for_once_and_nobody_asks_in_vain() {
        let queue = Queue::default();
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
    async fn a_job_that_comes_while_none_was_found_is_asked_for() {
        let queue = Queue::default();
        queue.add();
        let before = known(&queue).unwrap();
        queue.add();
        queue.is_empty(before);
        assert_eq!(known(&queue), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_tells_of_is_looked_for() {
        let queue = Queue::default();
        queue.is_empty(0);
        let begun = tokio::time::Instant::now();
        assert_eq!(queue.has_some().await, 0);
        assert_eq!(begun.elapsed(), LOOK);
    }
}
