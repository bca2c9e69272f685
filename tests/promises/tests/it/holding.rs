//! A sandbox that holds resources while other processes look for them.

use crate::scene::PreparedHost;
use crate::way::{PROBE, StartMethod};
use belljar_promises::attempt::{Attempt, AttemptResult};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Grace period after the end of its input. A process that is still there is killed.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// A probe that has made its attempts and keeps what they opened.
pub(crate) struct HoldingProbe(Child);

// === impl HoldingProbe ===

impl HoldingProbe {
    /// Starts one in a sandbox.
    pub(crate) fn inside(scene: &PreparedHost<'_>, way: StartMethod, attempt: &Attempt) -> Self {
        scene.world.write("lent/held.json", serde_json::to_string(&[attempt]).unwrap());
        Self::start(way.command(scene, &[PROBE, "hold", "/lent/held.json"]))
    }

    /// Starts one on the host, as the user who starts the sandboxes.
    pub(crate) fn outside(scene: &PreparedHost<'_>, attempt: &Attempt) -> Self {
        let file = scene.world.write("outside/held.json", serde_json::to_string(&[attempt]).unwrap());
        let probe = scene.world.path().join("lent/belljar-probe");
        Self::start(scene.leaking(&probe, &["hold", file.to_str().unwrap()]))
    }

    /// Returns the id of the process that was started on the host: belljar, or the probe itself.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Starts the command, and returns once everything is held.
    fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let answer: AttemptResult = serde_json::from_str(&lines.next().unwrap()).unwrap();
        assert!(answer.succeeded(), "what is to be held can't be made: {answer:?}");
        assert_eq!(lines.next().unwrap(), "holding");
        Self(child)
    }
}

impl Drop for HoldingProbe {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // If a process inside holds the other end of its input, it would wait forever.
        let deadline = Instant::now() + GONE_WITHIN;
        while self.0.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
