//! Queue for CPU- or memory-intensive work, shared fairly between runs.
//!
//! ```text
//! run A: request ─┐
//!        request ─┴─ one at a time ─► Turn ─┐
//! run B: request ─── one at a time ─► Turn ─┴─► first come, first served, with limited concurrency
//! ```
//! A run has at most one request in the common queue, so it delays each other run by the work of at most one request. The work is
//! done on blocking threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

/// A queue for one kind of work. Clones share it.
#[derive(Debug, Clone)]
pub struct TurnQueue(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    places: Arc<Semaphore>,
    most_of_run: usize,
    runs: Mutex<HashMap<String, RunRequests>>,
}

/// Requests of one run.
#[derive(Debug)]
struct RunRequests {
    turn: Arc<Semaphore>,
    requests: usize,
}

/// Turn of a request. Other requests of the same run wait until all clones are dropped.
#[derive(Debug, Clone)]
pub struct Turn(Arc<TurnState>);

#[derive(Debug)]
struct TurnState {
    _turn: OwnedSemaphorePermit,
    request: Request,
}

/// A request that is waiting or has its turn.
#[derive(Debug)]
struct Request {
    queue: Arc<Queue>,
    run: String,
}

/// The run has reached its limit of waiting requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this run has reached its limit of {most} such requests; try again when one of them has ended")]
pub struct TooManyWaitingError {
    most: usize,
}

// === impl TurnQueue ===

impl TurnQueue {
    /// Creates a queue with a limit of concurrent work, and a limit of waiting or running requests per run.
    pub fn new(at_once: usize, most_of_run: usize) -> Self {
        let places = Arc::new(Semaphore::new(at_once));
        Self(Arc::new(Queue { places, most_of_run, runs: Mutex::default() }))
    }

    /// Waits until no other request of the run has its turn.
    ///
    /// # Errors
    /// [`TooManyWaitingError`] when the run has reached its limit of requests.
    pub async fn enter(&self, run: &str) -> Result<Turn, TooManyWaitingError> {
        let Self(queue) = self;
        let most = queue.most_of_run;
        let turn = queue.begin(run).ok_or(TooManyWaitingError { most })?;
        let request = Request { queue: Arc::clone(queue), run: run.to_owned() };
        // The semaphore is never closed.
        let turn = turn.acquire_owned().await.map_err(|_| TooManyWaitingError { most })?;
        Ok(Turn(Arc::new(TurnState { _turn: turn, request })))
    }
}

// === impl Queue ===

impl Queue {
    fn runs(&self) -> MutexGuard<'_, HashMap<String, RunRequests>> {
        // The map is always consistent, so poisoning is ignored.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, and returns the semaphore of its run; `None` if there are too many.
    fn begin(&self, run: &str) -> Option<Arc<Semaphore>> {
        let mut runs = self.runs();
        let first = || RunRequests { turn: Arc::new(Semaphore::new(1)), requests: 0 };
        let run = runs.entry(run.to_owned()).or_insert_with(first);
        if run.requests >= self.most_of_run {
            return None;
        }
        run.requests += 1;
        Some(Arc::clone(&run.turn))
    }

    fn end(&self, name: &str) {
        let mut runs = self.runs();
        let Some(run) = runs.get_mut(name) else { return };
        run.requests = run.requests.saturating_sub(1);
        if run.requests == 0 {
            runs.remove(name);
        }
    }
}

// === impl Turn ===

impl Turn {
    /// Runs a closure on a blocking thread once a place is free. If the caller is canceled, the turn and the place are held until
    /// the work has ended.
    ///
    /// # Errors
    /// [`JoinError`] when the work panics.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let turn = self.clone();
        // The semaphore is never closed.
        let place = Arc::clone(&self.0.request.queue.places).acquire_owned().await;
        let working = move || {
            let (_turn, _place) = (turn, place);
            work()
        };
        tokio::task::spawn_blocking(working).await
    }
}

// === impl Request ===

impl Drop for Request {
    fn drop(&mut self) {
        self.queue.end(&self.run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use std::sync::mpsc;

    /// Makes a run do work, and waits until its requests are queued.
    async fn asked(turns: &TurnQueue, run: &str, tell: mpsc::Sender<String>) {
        let turn = turns.enter(run).await.unwrap();
        let name = run.to_owned();
        turn.work(move || tell.send(name)).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn run_with_many_requests_delays_other_runs_by_one_request() {
        let turns = TurnQueue::new(1, 60);
        let (tell, told) = mpsc::channel();
        // The only place is taken until all of them are waiting.
        let (go_on, held) = mpsc::channel::<()>();
        let first = turns.enter("first").await.unwrap();
        let mut begun = Box::pin(first.work(move || held.recv()));
        assert!(begun.as_mut().now_or_never().is_none());
        let mut many: Vec<_> = (0..60).map(|_| Box::pin(asked(&turns, "many", tell.clone()))).collect();
        assert!(many.iter_mut().all(|request| request.as_mut().now_or_never().is_none()));
        let mut one = Box::pin(asked(&turns, "one", tell));
        assert!(one.as_mut().now_or_never().is_none());
        go_on.send(()).unwrap();
        begun.await.unwrap().unwrap();
        tokio::join!(join_all(many), one);
        let order: Vec<_> = told.try_iter().collect();
        assert_eq!((order.len(), order.iter().position(|run| run == "one")), (61, Some(1)), "{order:?}");
    }

    #[tokio::test]
    async fn waiting_requests_are_limited_per_run() {
        let turns = TurnQueue::new(1, 2);
        let first = turns.enter("many").await.unwrap();
        let mut second = Box::pin(turns.enter("many"));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(turns.enter("many").await.unwrap_err(), TooManyWaitingError { most: 2 });
        turns.enter("other").await.unwrap();
        // Control: after one has ended, the next one may enter.
        drop(first);
        let second = second.await.unwrap();
        assert!(turns.enter("many").now_or_never().is_none());
        drop(second);
        turns.enter("many").await.unwrap();
        assert!(turns.0.runs().is_empty());
    }

    #[tokio::test]
    async fn canceled_caller_keeps_its_turn_until_its_work_ends() {
        let turns = TurnQueue::new(1, 2);
        let (go_on, held) = mpsc::channel::<()>();
        let turn = turns.enter("run").await.unwrap();
        let mut working = Box::pin(turn.work(move || held.recv()));
        assert!(working.as_mut().now_or_never().is_none());
        drop(working);
        drop(turn);
        assert!(turns.enter("run").now_or_never().is_none());
        go_on.send(()).unwrap();
        turns.enter("run").await.unwrap();
    }
}
