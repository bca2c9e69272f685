//! Failpoints: places at which a test kills the process, as if by `kill -9`, or holds it while another process is
//! killed. They are before and after each durable write, and between the steps of an attempt.
//!
//! An ordinary build has none of this: there [`reached`] does nothing. The feature `failpoints` is enabled by no
//! shipped crate (`xtask/src/tidy/features.rs`). With it, the variable `BELLJAR_FAILPOINT` names the place at which the
//! process is killed, as `PLACE@N` for the N-th time that the place is reached. `BELLJAR_FAILPOINT_SOCKET` is the path
//! of a socket. Each place that is reached is reported there, with one connection each, and its thread is blocked until
//! the connection is closed.

#![forbid(unsafe_code)]

/// Database writes, each with a place before and one after the commit: `WRITE.before` and `WRITE.after`.
pub const WRITES: &[&str] = &[
    "register",
    "announce",
    "beat",
    "submit",
    "claim",
    "tell",
    "end",
    "cancel",
    "leave",
    "acknowledge",
    "forget",
    "callback",
    "callback_tried",
    "take_callbacks",
    "expire",
];

/// Steps between writes.
pub const STEPS: &[&str] = &[
    "migrate.before",
    "migrate.after",
    "run.folder_made",
    "run.job_written",
    "run.launched",
    "run.ended",
    "artifact.stored",
    "audit.announced",
    "audit.written",
    "audit.stored",
    "audit.confirmed",
    "run.collected",
    "recovery.cleared",
    "folder.before_removal",
    "folder.after_removal",
];

/// Writes of approvals, each with a place before and one after.
pub const APPROVALS: &[&str] = &["approval_ask", "approval_decide", "approval_use"];

/// Steps by which the changes of a run are stored, and removed.
pub const KEPT: &[&str] = &["kept.before_move", "kept.moved", "kept.removed"];

/// Steps by which kept changes are applied.
pub const APPLY: &[&str] = &["kept.apply_noted", "kept.file_applied", "kept.applied", "kept.apply_recorded"];

/// Steps of a push of git.
pub const PUSHES: &[&str] = &[
    "git_note.before",
    "git_note.after",
    "git_commit.made",
    "git_push_begun.before",
    "git_push_begun.after",
    "git_push.before",
    "git_push.after",
    "git_push_record.before",
    "git_push_record.after",
];

/// Steps from a push to its pull request.
pub const PULL_REQUESTS: &[&str] = &[
    "git_pull_request_begun.before",
    "git_pull_request_begun.after",
    "git_pull_request.before",
    "git_pull_request.after",
    "git_pull_request_record.before",
    "git_pull_request_record.after",
    "git_pull_request_note.before",
    "git_pull_request_note.after",
];

/// Marks a place as reached. If the process is to be killed there, this doesn't return.
#[inline]
pub fn reached(_place: &str) {
    #[cfg(feature = "failpoints")]
    armed::reached(_place);
}

/// Runs code whose places are ignored, for example a self-test of the process: only the places of jobs can be armed.
pub fn unseen<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(feature = "failpoints")]
    let _unseen = armed::IgnoreGuard::begin();
    work()
}

/// Marks the place before a write as reached.
#[inline]
pub fn before(_write: &str) {
    #[cfg(feature = "failpoints")]
    armed::reached(&format!("{_write}.before"));
}

/// Marks the place after a write as reached.
#[inline]
pub fn after(_write: &str) {
    #[cfg(feature = "failpoints")]
    armed::reached(&format!("{_write}.after"));
}

#[cfg(feature = "failpoints")]
pub use armed::{SOCKET, VARIABLE};

#[cfg(feature = "failpoints")]
mod armed {
    use std::cell::Cell;
    use std::ffi::OsString;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Variable with the armed place, and the number of the pass at which it kills.
    pub const VARIABLE: &str = "BELLJAR_FAILPOINT";

    /// The variable with the path of the socket.
    pub const SOCKET: &str = "BELLJAR_FAILPOINT_SOCKET";

    thread_local! {
        static IS_UNSEEN: Cell<bool> = const { Cell::new(false) };
    }

    /// Guard during whose lifetime this thread's places are ignored.
    pub(super) struct IgnoreGuard;

    impl IgnoreGuard {
        pub(super) fn begin() -> Self {
            IS_UNSEEN.set(true);
            Self
        }
    }

    impl Drop for IgnoreGuard {
        fn drop(&mut self) {
            IS_UNSEEN.set(false);
        }
    }

    static DIRECTOR: OnceLock<Option<OsString>> = OnceLock::new();
    static ARMED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static TIMES: AtomicU32 = AtomicU32::new(0);

    pub(super) fn reached(place: &str) {
        if IS_UNSEEN.get() {
            return;
        }
        if let Some(director) = DIRECTOR.get_or_init(|| std::env::var_os(SOCKET)) {
            hold(director, place);
        }
        let Some((armed, time)) = ARMED.get_or_init(read) else { return };
        if armed == place && TIMES.fetch_add(1, Ordering::SeqCst) + 1 == *time {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    }

    /// Reports a place and waits for the test to close the connection. If the test is over, this returns at once.
    fn hold(director: &OsString, place: &str) {
        let Ok(mut stream) = UnixStream::connect(director) else { return };
        let _ = stream.write_all(format!("{place}\n").as_bytes());
        let _ = stream.read(&mut [0]);
    }

    fn read() -> Option<(String, u32)> {
        let text = std::env::var(VARIABLE).ok()?;
        let (place, time) = text.split_once('@').unwrap_or((&text, "1"));
        Some((place.to_owned(), time.parse().ok()?))
    }
}
