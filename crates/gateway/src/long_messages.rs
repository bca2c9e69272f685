//! Long messages of callers and long reports of jobs: parsing takes many times their length in memory, and much processor time.
//!
//! A run has at most one long call and one long report under way. They are parsed on blocking threads, which serve neither other
//! runs nor the Worker API, and one at a time for all runs.

use belljar_tools::turn_queue::TurnQueue;
use std::sync::LazyLock;
use tokio::runtime::Handle;
use tokio::task::JoinError;

/// Maximum length of a short message, in bytes.
pub const LARGEST_SHORT_BYTES: usize = 64 << 10;

/// Maximum number of long messages of one run that wait or are under way. Its hatch has fewer connections.
const MOST_OF_RUN: usize = 32;

/// Queue of long messages, which are parsed one at a time.
pub static LONG_MESSAGES: LazyLock<TurnQueue> = LazyLock::new(|| TurnQueue::new(1, MOST_OF_RUN));

/// Runs a future on a blocking thread, so that processor-intensive work doesn't occupy the runtime's threads.
///
/// # Errors
/// [`JoinError`] when the work has panicked.
pub async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work)).await
}
