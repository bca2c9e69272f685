//! A canary sandbox: one of the node's own programs, run as a job is, from the node's actual state directory. `/readyz` and
//! job admission depend on the outcome of the last one.
//!
//! ```text
//! start ─► first canary ─► verdict ◄── canary ◄── /readyz, where the verdict is older than FRESH, or bad and older than RETRY
//!                             ▲          │
//!                             └──────────┴─ nothing for PATIENCE: the node can't make sandboxes
//! ```
//! Only the start of the node waits for a canary: a process that launches sandboxes may be stopped for good.

use crate::daemon::Settings;
use belljar_confine::launcher::Launcher;
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::isolation::RequiredLayers;
use belljar_files::host_path::HostPath;
use belljar_sandbox::enclosure::{EnclosureMaker, EnclosureSite};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::command::{CommandRequest, CommandWatch, carry_out_command};
use belljar_sandbox::run::{RUNNER_INSIDE, RunError, StartedRun};
use belljar_sandbox::spec::Lent;
use belljar_sandbox::state::StateDirectory;
use belljar_sandbox::streams::Stream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Makes canary sandboxes, one at a time, and keeps the outcome of the last one.
pub(crate) struct Canary {
    state: StateDirectory,
    launcher: Arc<Launcher>,
    runner: HostPath,
    limits: Limits,
    required: RequiredLayers,
    seen: Mutex<CanaryState>,
}

/// Outcome of the last canary, and the begin of the current one.
#[derive(Debug, Default)]
struct CanaryState {
    /// When the last one ended, and whether it had run.
    last: Option<(Instant, bool)>,
    /// When the canary that is under way began.
    since: Option<Instant>,
}

/// Reasons why a canary failed.
#[derive(Debug, thiserror::Error)]
enum CanaryError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the program of the canary sandbox ended with exit code {exit_code}{}", why(.message.as_deref()))]
    Ended { exit_code: i32, message: Option<String> },
}

/// Watches nothing.
struct NoopWatcher;

/// Age at which a good verdict is checked again.
const FRESH: Duration = Duration::from_secs(10);

/// Age at which a bad verdict is checked again.
const RETRY: Duration = Duration::from_secs(2);

/// Maximum duration of a canary.
const PATIENCE: Duration = Duration::from_secs(10);

/// Interval at which its end is polled.
const LOOK: Duration = Duration::from_millis(2);

/// Maximum number of bytes of each output stream that are kept.
const OUTPUT_BYTES: usize = 4_096;

fn why(message: Option<&str>) -> String {
    message.map_or_else(String::new, |message| format!(": {message}"))
}

// === impl Canary ===

impl Canary {
    pub(crate) fn new(settings: &Settings, launcher: &Arc<Launcher>) -> Arc<Self> {
        Arc::new(Self {
            state: settings.state.clone(),
            launcher: Arc::clone(launcher),
            runner: settings.runner.clone(),
            limits: settings.limits,
            required: settings.required.clone(),
            seen: Mutex::default(),
        })
    }

    /// Returns true if the last canary succeeded and none hangs. Begins another one if the verdict is old.
    pub(crate) fn is_well(self: &Arc<Self>) -> bool {
        let now = Instant::now();
        let mut seen = self.locked();
        if seen.is_due(now) {
            match self.begin() {
                Ok(()) => seen.since = Some(now),
                Err(error) => {
                    tracing::error!(%error, "there is no thread for a canary sandbox");
                    seen.last = Some((now, false));
                }
            }
        }
        seen.is_well(now)
    }

    /// Returns true if the last canary succeeded and none hangs. Begins another one if it failed and is due.
    pub(crate) fn was_well(self: &Arc<Self>) -> bool {
        let was_well = self.locked().is_well(Instant::now());
        was_well || self.is_well()
    }

    /// Begins the first canary, and waits for its end.
    pub(crate) async fn settled(self: &Arc<Self>) {
        self.is_well();
        self.left().await;
    }

    /// Waits for the end of the canary that is under way, for at most [`PATIENCE`].
    pub(crate) async fn left(&self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && self.locked().since.is_some() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Makes a canary, on a thread of its own. The process doesn't wait for it when it ends.
    fn begin(self: &Arc<Self>) -> std::io::Result<()> {
        let canary = Arc::clone(self);
        let thread = std::thread::Builder::new().name("belljar-canary".to_owned());
        let spawned = thread.spawn(move || {
            let tried = belljar_failpoint::unseen(|| canary.try_one());
            canary.ended(tried.as_ref().err());
        });
        spawned.map(drop)
    }

    fn ended(&self, error: Option<&CanaryError>) {
        let mut seen = self.locked();
        let was_well = seen.last.is_none_or(|(_, has_run)| has_run);
        *seen = CanaryState { last: Some((Instant::now(), error.is_none())), since: None };
        drop(seen);
        match error {
            Some(error) if was_well => {
                let closed = closed_ancestor(self.state.path()).map(|path| path.display().to_string());
                tracing::error!(
                    error = crate::chain(error),
                    closed,
                    "a canary sandbox did not run: jobs would fail; sandboxes have other users, and every directory above the state \
                     directory must let them through (mode o+x)"
                );
            }
            None if !was_well => tracing::info!("a canary sandbox runs again"),
            _ => {}
        }
    }

    fn try_one(&self) -> Result<(), CanaryError> {
        let request = CommandRequest {
            job_id: JobId::from_uuid(Uuid::now_v7()),
            task_id: TaskId::from_uuid(Uuid::now_v7()),
            argv: [format!("/{RUNNER_INSIDE}"), "--version".to_owned()].into(),
            provision: Provision {
                lent: [Lent { path: self.runner.clone(), inside: RUNNER_INSIDE.to_owned() }].into(),
                limits: self.limits,
                required: self.required.clone(),
                hatches: [Hatch::Status].into(),
                ..Provision::default()
            },
            timeout: PATIENCE,
            max_output_bytes: OUTPUT_BYTES,
        };
        let site = EnclosureSite { state: &self.state, maker: EnclosureMaker::Launcher(&self.launcher) };
        let finished = carry_out_command(request, &site, &mut NoopWatcher)?;
        let (exit_code, failure) = (finished.exit_code, finished.failure);
        // If the folder can't be removed now, a later start finds it by its name.
        let _ = finished.folder.remove();
        match exit_code {
            0 => Ok(()),
            exit_code => {
                Err(CanaryError::Ended { exit_code, message: failure.map(|failure| failure.message) })
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, CanaryState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outermost directory above that path that other users can't search (mode without `o+x`).
fn closed_ancestor(path: &Path) -> Option<&Path> {
    const OTHERS_PASS: u32 = 0o001;
    let is_closed =
        |path: &&Path| path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & OTHERS_PASS == 0);
    let above: Vec<_> = path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
    above.into_iter().rev().find(is_closed)
}

// === impl CanaryState ===

impl CanaryState {
    fn is_due(&self, now: Instant) -> bool {
        let is_old =
            |(at, has_run): (Instant, bool)| now.duration_since(at) >= if has_run { FRESH } else { RETRY };
        self.since.is_none() && self.last.is_none_or(is_old)
    }

    fn is_well(&self, now: Instant) -> bool {
        let hangs = self.since.is_some_and(|since| now.duration_since(since) >= PATIENCE);
        !hangs && self.last.is_some_and(|(_, has_run)| has_run)
    }
}

// === impl NoopWatcher ===

impl CommandWatch for NoopWatcher {
    fn begun(&mut self, _begun: StartedRun) {}

    fn printed(&mut self, _stream: Stream, _bytes: &[u8]) {}

    fn is_to_stop(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_healthy_after_a_good_canary_and_not_while_one_hangs() {
        let now = Instant::now();
        let (hung, due) = (now + PATIENCE, now + FRESH);
        let mut seen = CanaryState::default();
        assert!(seen.is_due(now) && !seen.is_well(now), "nothing is known yet");
        seen.since = Some(now);
        assert!(!seen.is_due(hung) && !seen.is_well(now));
        seen = CanaryState { last: Some((now, true)), since: None };
        assert!(!seen.is_due(now + RETRY) && seen.is_due(due) && seen.is_well(due));
        seen.since = Some(now);
        assert!(seen.is_well(now + RETRY) && !seen.is_well(hung));
        seen = CanaryState { last: Some((now, false)), since: None };
        assert!(seen.is_due(now + RETRY) && !seen.is_well(now));
    }
}
