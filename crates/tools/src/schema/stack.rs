//! A stack that is deep enough for what recurses over a schema's subschemas.

use std::io;
use std::thread;

/// So many subschemas nest no deeper than any thread's stack holds.
const FEW: usize = 100;

/// Enough for the deepest nesting that a schema may have, in bytes: the library compiles at most nine references within each other, each
/// with a text of at most 128 levels, and takes less than 10 KiB for a level.
const DEEP_BYTES: usize = 64 << 20;

/// Does something that recurses over so many subschemas where the stack is deep enough for it.
pub(super) fn enough_for<T: Send>(subschemas: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if subschemas <= FEW {
        return Ok(work());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("schema".to_owned()).stack_size(DEEP_BYTES);
        let done = thread.spawn_scoped(scope, work)?.join();
        done.map_err(|_| io::Error::other("the thread has panicked"))
    })
}
