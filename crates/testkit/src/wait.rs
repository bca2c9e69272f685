//! Waiting for something to come true, instead of for time to pass.

use std::time::{Duration, Instant};

/// Waits until it is true.
///
/// # Panics
/// When it isn't within a minute: then it won't be.
#[track_caller]
pub fn until(mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(60), "condition was not met within a minute");
        // Polls often at first, and less often the longer it takes.
        std::thread::sleep((waited / 10).clamp(Duration::from_millis(1), Duration::from_millis(10)));
    }
}
