//! Long messages of callers and reports of jobs: what is parsed takes many times its length in memory, and takes a processor.
//!
//! A run has one long call and one long report under way. They are read on threads that may wait, never on one that answers other
//! runs or the Worker API, and one at a time for all runs.

use belljar_tools::turns::Turns;
use std::sync::LazyLock;
use tokio::runtime::Handle;
use tokio::task::JoinError;

/// Messages up to this length, in bytes, are short.
pub const LARGEST_SHORT_BYTES: usize = 64 << 10;

/// Long messages of one run that wait or are under way. Its hatch has fewer connections.
const MOST_OF_RUN: usize = 32;

/// Where long messages are read, one at a time.
pub static LONG_MESSAGES: LazyLock<Turns> = LazyLock::new(|| Turns::new(1, MOST_OF_RUN));

/// Awaits work on a thread of its own: what is made of something long takes a processor, and the threads of the runtime are there for
/// everybody.
///
/// # Errors
/// [`JoinError`] when the work has panicked.
pub async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work)).await
}
