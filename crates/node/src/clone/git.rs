//! The host's git, with settings that have nothing run, and a bound on its time.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Git, for one directory.
pub(super) struct Git<'g> {
    directory: &'g Path,
    is_canceled: &'g dyn Fn() -> bool,
    deadline: Instant,
}

/// Whose settings it heeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// The user's: that is where its credentials are.
    Host,
    /// Nobody's.
    Nothing,
}

/// Git can't do its part.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It can't be started.
    #[error("can't run git")]
    Start {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It can't be watched.
    #[error("can't watch git")]
    Watch {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It has failed.
    #[error("git {step} failed: {said}")]
    Failed {
        /// What it was to do.
        step: String,
        /// The last that it said.
        said: String,
    },
    /// It took too long.
    #[error("git {step} took too long")]
    OutOfTime {
        /// What it was to do.
        step: String,
    },
    /// Somebody wanted it to stop.
    #[error("canceled")]
    Canceled,
}

/// What holds whatever else is set.
const SAFE: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.logAllRefUpdates=false",
    "http.followRedirects=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=true",
    "maintenance.auto=false",
    "gc.auto=0",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
];

/// Variables that say who the host's user is for servers. All others of git's would have it work somewhere else, or
/// write down what it does.
const KEPT: [&str; 6] =
    ["GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_CONFIG_GLOBAL", "GIT_SSL_CAINFO"];

/// All its steps together.
const LONGEST: Duration = Duration::from_secs(900);

const TICK: Duration = Duration::from_millis(50);

/// As much of what it says is kept.
const LAST_BYTES: usize = 4 << 10;

// === impl Git ===

impl<'g> Git<'g> {
    /// Git for that directory, if there is any.
    pub(super) fn find(directory: &'g Path, is_canceled: &'g dyn Fn() -> bool) -> Result<Self, GitError> {
        let git = Self { directory, is_canceled, deadline: Instant::now() + LONGEST };
        git.run(Trust::Nothing, &["version"])?;
        Ok(git)
    }

    /// Runs it. Settings may stand in front of the step.
    pub(super) fn run(&self, trust: Trust, arguments: &[&str]) -> Result<(), GitError> {
        let step = arguments.iter().find(|argument| !argument.starts_with('-') && !argument.contains('='));
        let step = step.copied().unwrap_or_default().to_owned();
        let mut command = self.command(trust);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Its helpers end with it.
        command.process_group(0);
        let mut child = command.spawn().map_err(|source| GitError::Start { source })?;
        let said = self.listen(&mut child, &step);
        if said.is_err() {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let status = child.wait().map_err(|source| GitError::Watch { source })?;
        let said = said?;
        match status.success() {
            true => Ok(()),
            false => Err(GitError::Failed { step, said }),
        }
    }

    fn command(&self, trust: Trust) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.directory);
        for setting in SAFE {
            command.args(["-c", setting]);
        }
        let is_kept = |name: &OsString| {
            let Some(name) = name.to_str() else { return false };
            // Settings that were handed on in variables, one by one.
            let is_setting = name == "GIT_CONFIG_COUNT"
                || name.starts_with("GIT_CONFIG_KEY_")
                || name.starts_with("GIT_CONFIG_VALUE_");
            trust == Trust::Host && (KEPT.contains(&name) || is_setting)
        };
        let of_git = |name: &OsString| name.as_encoded_bytes().starts_with(b"GIT_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| of_git(name) && !is_kept(name)) {
            command.env_remove(name);
        }
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        match trust {
            Trust::Host => {
                let asks =
                    std::env::var_os("GIT_SSH_COMMAND").is_some() || std::env::var_os("GIT_SSH").is_some();
                if !asks {
                    command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
                }
            }
            Trust::Nothing => {
                command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_NO_LAZY_FETCH", "1");
            }
        }
        command
    }

    /// Hears it out, within its time; what it said last.
    fn listen(&self, child: &mut Child, step: &str) -> Result<String, GitError> {
        let Some(errors) = child.stderr.take() else { return Ok(String::new()) };
        let errors = OwnedFd::from(errors);
        let (mut last, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            if Instant::now() >= self.deadline {
                return Err(GitError::OutOfTime { step: step.to_owned() });
            }
            if (self.is_canceled)() {
                return Err(GitError::Canceled);
            }
            let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&errors, PollFlags::IN)], Some(&tick)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(GitError::Watch { source: errno.into() }),
            }
            match rustix::io::retry_on_intr(|| rustix::io::read(&errors, &mut buffer)) {
                Ok(0) | Err(_) => return Ok(last_line(&last)),
                Ok(read) => last.extend_from_slice(&buffer[..read]),
            }
            last.drain(..last.len().saturating_sub(LAST_BYTES));
        }
    }
}

/// The last line that says why.
fn last_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let why = lines().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
    why.or_else(|| lines().next_back()).unwrap_or("nothing was said").to_owned()
}
