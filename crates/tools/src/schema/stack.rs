//! Runs recursive functions on a sufficiently large stack.

use std::io;
use std::thread;

/// Number of nested subschemas that fit on the stack of any thread.
const FEW: usize = 100;

/// Stack size for the deepest possible nesting, in bytes: the library compiles at most nine nested references, each with at most
/// 128 levels, and uses less than 10 KiB per level.
const DEEP_BYTES: usize = 64 << 20;

/// Runs a function that recurses over the given number of subschemas on a sufficiently large stack.
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
