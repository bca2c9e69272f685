//! Runs a future with a time limit.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::error::Elapsed;

/// Returns the result of a future if it completes in time. Most futures are ready at once; those cost no look at the clock.
pub(crate) async fn within<F: Future>(patience: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let first = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context)));
    match first.await {
        Poll::Ready(given) => Ok(given),
        Poll::Pending => tokio::time::timeout(patience, future).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn within_returns_a_timely_result_and_times_out_otherwise() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let begun = Instant::now();
        let (at_once, later, never) = runtime.block_on(async {
            let patience = Duration::from_millis(50);
            let later = tokio::time::sleep(Duration::from_millis(1));
            (
                within(Duration::ZERO, async { 1 }).await,
                within(Duration::from_secs(600), later).await,
                within(patience, std::future::pending::<()>()).await,
            )
        });
        assert!(at_once == Ok(1) && later.is_ok() && never.is_err());
        assert!(begun.elapsed() >= Duration::from_millis(50));
    }
}
