//! Queue that runs the host's git for one call at a time. The disk and memory limits of one call are therefore limits for all calls
//! together.

use super::super::execution::{CallerGoneSignal, waiting};
use belljar_tools::answer::Failure;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Queue of calls. A queued call leaves it when its caller stops waiting.
#[derive(Debug)]
pub(in crate::command::mcp) struct GitCallQueue(Arc<Semaphore>);

impl Default for GitCallQueue {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

// === impl GitCallQueue ===

impl GitCallQueue {
    /// Runs `does` on a blocking thread once no other call runs. Signals `CallerGoneSignal` if the caller stops waiting.
    pub(super) async fn done<T: Send + 'static>(
        &self,
        does: impl FnOnce(&CallerGoneSignal) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = Arc::clone(&self.0).acquire_owned().await;
        let turn = turn.map_err(|error| Failure::internal("wait for its turn", &error))?;
        // The handle is dropped when this call ends or is given up.
        let (_waiting, given_up) =
            waiting().map_err(|errno| Failure::internal("watch over the call", &errno))?;
        let done = tokio::task::spawn_blocking(move || {
            // The thread keeps its turn, because it can outlive a call that was given up.
            let _turn = turn;
            does(&given_up)
        });
        done.await.unwrap_or_else(|error| Err(Failure::internal("do it", &error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    #[tokio::test]
    async fn concurrent_git_calls_all_run_and_only_one_at_a_time() {
        let (queue, at_once, most) =
            (GitCallQueue::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let one = || {
            let (at_once, most) = (Arc::clone(&at_once), Arc::clone(&most));
            queue.done(move |_| {
                most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                at_once.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        };
        let served = join_all((0..8).map(|_| one())).await;
        assert_eq!(
            (served.iter().filter(|served| served.is_ok()).count(), most.load(Ordering::SeqCst)),
            (8, 1)
        );
    }

    #[tokio::test]
    async fn canceled_queued_call_never_runs_and_canceled_running_call_keeps_its_turn() {
        let queue = GitCallQueue::default();
        let (go_on, held) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let at_work = tell.clone();
        let mut first = Box::pin(queue.done(move |given_up| {
            let _ = held.recv();
            at_work.send(if given_up.is_so() { "first, given up" } else { "first" }).unwrap();
            Ok(())
        }));
        assert!(first.as_mut().now_or_never().is_none());
        let second = tell.clone();
        let waits =
            queue.done(move |_| second.send("second").map_err(|error| Failure::internal("tell", &error)));
        assert!(waits.now_or_never().is_none());
        drop(first);
        let mut third = Box::pin(
            queue.done(move |_| tell.send("third").map_err(|error| Failure::internal("tell", &error))),
        );
        assert!(third.as_mut().now_or_never().is_none());
        let early = told.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "the first is still at work: {early:?}");
        go_on.send(()).unwrap();
        third.await.unwrap();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), ["first, given up", "third"]);
    }
}
