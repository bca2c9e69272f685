//! Takes tables of `poll`: threads that wait for many descriptors.

use super::call_named;
use std::sync::mpsc;

/// Number of descriptors that each thread waits for.
const OF_EACH: usize = 4_000;

/// Starts up to `most` waiting threads, and returns how many could wait. They live as long as this process.
pub(super) fn take(most: u64) -> Result<u64, String> {
    raise_limit();
    let (tell, told) = mpsc::channel();
    let mut took = 0;
    while took < most {
        let tell = tell.clone();
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || {
                let _ = tell.send(wait_for_many());
                std::thread::park();
            })
            .map_err(|error| error.to_string())?;
        if !told.recv().map_err(|error| error.to_string())? {
            break;
        }
        took += 1;
    }
    Ok(took)
}

/// Polls without waiting, and returns true if the call succeeded. A sandbox still counts the thread until it exits.
fn wait_for_many() -> bool {
    // struct pollfd: standard input, no event
    let descriptors = vec![0_u64; OF_EACH];
    let list = descriptors.as_ptr().expose_provenance() as u64;
    call_named(libc::SYS_poll, [list, OF_EACH as u64, 0, 0, 0, 0]).is_ok()
}

fn raise_limit() {
    let mut limit = [0_u64; 2];
    let call = |new, old| call_named(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE.into(), new, old, 0, 0]);
    if call(0, limit.as_mut_ptr().expose_provenance() as u64).is_ok() {
        let [_, hard] = limit;
        let _ = call([hard, hard].as_ptr().expose_provenance() as u64, 0);
    }
}
