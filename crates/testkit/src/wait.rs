//! Waiting for something to come true, instead of for time to pass.

use std::time::{Duration, Instant};

/// Waits until it is true.
///
/// # Panics
/// When it isn't within a minute: then it won't be.
#[track_caller]
pub fn until(mut is_true: impl FnMut() -> bool) {
    let given_up = Instant::now() + Duration::from_secs(60);
    while !is_true() {
        assert!(Instant::now() < given_up, "waited a minute in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}
