//! Runs the host's git, with settings that prevent it from running other programs, and with limits on its time, its memory and
//! what it takes of the disk.

mod bounds;
mod heard;

use super::environment::{HostEnv, UserGitSettings};
use super::obeyed;
use super::quarantine::alternate;
use super::reach;
use belljar_egress::git::PinnedRemote;
use belljar_trusted::command::{harmless, trusted_search_path};
use belljar_trusted::trusted_file::UntrustedFileError;
use bounds::{DiskBudget, MEMORY_BYTES, limit_memory};
use heard::GitOutput;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Git for one repository.
pub(super) struct Git<'g> {
    place: RepositoryLocation,
    env: &'g HostEnv,
    is_canceled: &'g dyn Fn() -> bool,
    deadline: Instant,
}

/// The repository that git works on.
#[derive(Debug, Clone)]
enum RepositoryLocation {
    /// A bare one of the host's own; git doesn't search for others.
    Bare(PathBuf),
    /// A bare one, with new objects in another directory.
    Quarantined { repository: PathBuf, objects: PathBuf },
    /// A bare one, with files of the host's own as its work tree.
    Beside { repository: PathBuf, files: PathBuf },
    /// A directory that the host is laying out.
    Directory(PathBuf),
}

/// Errors of git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git can't be started.
    #[error("can't run git")]
    Start {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Its output can't be read.
    #[error("can't watch git")]
    Watch {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Git has failed.
    #[error("git {step} failed: {said}")]
    Failed {
        /// The subcommand.
        step: String,
        /// Its last message, without secrets.
        said: String,
    },
    /// ssh could not connect.
    #[error("git {step} failed: {said}")]
    Unreached {
        /// The subcommand.
        step: String,
        /// ssh's message.
        said: String,
    },
    /// Its standard input can't be written.
    #[error("can't hand git what it is to read")]
    Feed {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Its output can't be parsed.
    #[error("git {step} said something else than it should")]
    Unreadable {
        /// The subcommand.
        step: String,
    },
    /// It exceeded its time limit.
    #[error("git {step} took too long")]
    OutOfTime {
        /// The subcommand.
        step: String,
    },
    /// Its output exceeds [`MOST_BYTES`].
    #[error("git {step} said too much")]
    TooMuch {
        /// The subcommand.
        step: String,
    },
    /// It exceeded its memory limit.
    #[error("git {step} needed more than {} GiB of memory, which no ordinary repository takes", MEMORY_BYTES >> 30)]
    OutOfMemory {
        /// The subcommand.
        step: String,
    },
    /// It has filled the disk up to the reserve.
    #[error("git {step} was ended: it has filled the disk up to what is kept free for records")]
    DiskFull {
        /// The subcommand.
        step: String,
    },
    /// It was canceled.
    #[error("canceled")]
    Canceled,
    /// A sandbox or another user could write a file that it would obey.
    #[error("can't have git obey the user's settings")]
    Untrusted {
        /// The file, and its writer.
        #[from]
        source: UntrustedFileError,
    },
}

/// Settings that override any other.
const SAFE: [&str; 24] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.logAllRefUpdates=false",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "core.pager=cat",
    "core.editor=false",
    "diff.external=",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "push.useBitmaps=false",
    "commit.gpgSign=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=true",
    "maintenance.auto=false",
    "gc.auto=0",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
    "safe.bareRepository=explicit",
    "advice.defaultBranchName=false",
];

/// Exit codes of success; some subcommands exit with 1 if there was no match.
const DONE: [i32; 1] = [0];
const DONE_OR_NONE: [i32; 2] = [0, 1];

/// Maximum duration of all its steps together.
const LONGEST: Duration = Duration::from_secs(900);

/// Interval between checks. A fast disk takes less than the reserve in that time.
const TICK: Duration = Duration::from_millis(20);

/// Maximum number of bytes of its standard error that are kept.
const LAST_BYTES: usize = 4 << 10;

/// Maximum size of its standard output, in bytes.
const MOST_BYTES: usize = 256 << 20;

// === impl RepositoryLocation ===

impl RepositoryLocation {
    /// Returns true if a file is in the repository itself, which belongs to the host.
    fn holds(&self, file: &Path) -> bool {
        let place = self.repository();
        // The user's settings are read with `/` as the directory.
        place.parent().is_some() && file.starts_with(place)
    }

    fn repository(&self) -> &Path {
        let (Self::Bare(place)
        | Self::Quarantined { repository: place, .. }
        | Self::Beside { repository: place, .. }
        | Self::Directory(place)) = self;
        place
    }
}

// === impl Git ===

impl<'g> Git<'g> {
    /// Returns git for a bare repository.
    pub(super) fn bare(repository: &Path, env: &'g HostEnv, is_canceled: &'g dyn Fn() -> bool) -> Self {
        Self::at(RepositoryLocation::Bare(repository.to_owned()), env, is_canceled)
    }

    /// Returns git for a bare repository, with new objects in that directory. It reads the repository's objects, too.
    pub(super) fn quarantined(
        repository: &Path,
        objects: &Path,
        env: &'g HostEnv,
        is_canceled: &'g dyn Fn() -> bool,
    ) -> Self {
        let place = RepositoryLocation::Quarantined {
            repository: repository.to_owned(),
            objects: objects.to_owned(),
        };
        Self::at(place, env, is_canceled)
    }

    /// Returns git for a directory that the host is laying out, and only the host has written to.
    pub(super) fn in_directory(
        directory: &Path,
        env: &'g HostEnv,
        is_canceled: &'g dyn Fn() -> bool,
    ) -> Self {
        Self::at(RepositoryLocation::Directory(directory.to_owned()), env, is_canceled)
    }

    /// Returns git for a bare repository and a few files that the host has laid out beside it.
    pub(super) fn beside(&self, repository: &Path, files: &Path) -> Self {
        let place = RepositoryLocation::Beside { repository: repository.to_owned(), files: files.to_owned() };
        Self { place, ..*self }
    }

    fn at(place: RepositoryLocation, env: &'g HostEnv, is_canceled: &'g dyn Fn() -> bool) -> Self {
        Self { place, env, is_canceled, deadline: Instant::now() + LONGEST }
    }

    /// Runs a subcommand, and returns its standard output.
    pub(super) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Vec<u8>, GitError> {
        self.feed(arguments, |_| Ok(()))
    }

    /// Runs a subcommand with standard input. If the input can't be written, git is killed.
    pub(super) fn feed<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        feed: impl FnOnce(&mut dyn Write) -> std::io::Result<()> + Send,
    ) -> Result<Vec<u8>, GitError> {
        self.to_the_end((self.command(arguments), step(arguments)), &DONE, feed)
    }

    /// Runs a subcommand with standard input that exits with 1 if nothing matched.
    pub(super) fn filter<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        feed: impl FnOnce(&mut dyn Write) -> std::io::Result<()> + Send,
    ) -> Result<Vec<u8>, GitError> {
        self.to_the_end((self.command(arguments), step(arguments)), &DONE_OR_NONE, feed)
    }

    /// Runs a subcommand at a remote, with the user's credentials.
    pub(super) fn reach<A: AsRef<OsStr>>(
        &self,
        pinned: &PinnedRemote,
        arguments: &[A],
    ) -> Result<Vec<u8>, GitError> {
        let settings = self.settings()?;
        obeyed::check(&settings, self.env, pinned.remote().scheme())?;
        let mut ways = reach::ways(pinned).into_iter();
        loop {
            let way = ways.next().unwrap_or_default();
            match self.reach_by(pinned, (way, &settings), arguments) {
                // Nothing was sent to that address, so the next one may be tried.
                Err(GitError::Unreached { .. }) if !ways.as_slice().is_empty() => {}
                reached => return reached,
            }
        }
    }

    fn reach_by<A: AsRef<OsStr>>(
        &self,
        pinned: &PinnedRemote,
        (way, settings): (Option<IpAddr>, &UserGitSettings),
        arguments: &[A],
    ) -> Result<Vec<u8>, GitError> {
        let mut command = self.blank();
        command.args(reach::settings(pinned)).args(arguments);
        command.envs(harmless(self.env.for_servers()));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_CONFIG_COUNT", settings.kept.len().to_string());
        for (at, (name, value)) in settings.kept.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), name).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command.env("GIT_SSH_COMMAND", reach::ssh_command((pinned, way), settings));
        command.env("NO_PROXY", "*").env("no_proxy", "*");
        self.to_the_end((command, step(arguments)), &DONE, |_| Ok(()))
    }

    /// Returns the user's settings with identity and credentials, from files that no other user can write.
    pub(super) fn settings(&self) -> Result<UserGitSettings, GitError> {
        let mut command = self.blank();
        let list = ["config", "--list", "--includes", "--show-origin", "-z"];
        command.args(list).envs(self.env.for_settings());
        let listed = self.to_the_end((command, "config".to_owned()), &DONE, |_| Ok(()))?;
        let settings = UserGitSettings::read(&listed, self.env);
        let of_user = settings.origins.iter().filter(|origin| !self.place.holds(origin));
        of_user.into_iter().try_for_each(|origin| obeyed::check_origin(origin))?;
        Ok(settings)
    }

    fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = self.blank();
        command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    /// Returns git without any settings or environment.
    fn blank(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear();
        if let Some(path) = self.env.path() {
            // Git itself, and the programs that it starts, are found by it.
            command.env("PATH", std::env::join_paths(trusted_search_path(path)).unwrap_or_default());
        }
        match &self.place {
            RepositoryLocation::Bare(repository) => command.arg("--git-dir").arg(repository).current_dir("/"),
            RepositoryLocation::Quarantined { repository, objects } => command
                .env("GIT_OBJECT_DIRECTORY", objects)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&repository.join("objects")))
                .arg("--git-dir")
                .arg(repository)
                .current_dir("/"),
            RepositoryLocation::Beside { repository, files } => {
                command.arg("--git-dir").arg(repository).arg("--work-tree").arg(files).current_dir(files)
            }
            RepositoryLocation::Directory(directory) => command.arg("-C").arg(directory),
        };
        for setting in SAFE {
            command.args(["-c", setting]);
        }
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ADVICE", "0")
            .env("LC_ALL", "C");
        command
    }

    fn to_the_end(
        &self,
        (mut command, step): (Command, String),
        done: &[i32],
        feed: impl FnOnce(&mut dyn Write) -> std::io::Result<()> + Send,
    ) -> Result<Vec<u8>, GitError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its helpers are killed with it.
        command.process_group(0);
        let disk = DiskBudget::of(self.place.repository());
        let mut child = command.spawn().map_err(|source| GitError::Start { source })?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let end = || group.map(|group| kill_process_group(group, Signal::KILL));
        // It has read nothing of the repository yet, and started nothing.
        if let Err(errno) = group.map_or(Err(Errno::SRCH), limit_memory) {
            let _ = (end(), child.wait());
            return Err(GitError::Start { source: errno.into() });
        }
        let stdin = child.stdin.take();
        let (heard, fed) = std::thread::scope(|scope| {
            let feeding = scope.spawn(move || match stdin {
                Some(stdin) => {
                    let mut to = BufWriter::with_capacity(64 << 10, stdin);
                    feed(&mut to).and_then(|()| to.flush()).inspect_err(|_| {
                        // Git is killed before its input ends, so that it doesn't take a part for the whole.
                        let _ = end();
                    })
                }
                None => Ok(()),
            });
            let heard = self.listen(&mut child, &step, &disk);
            if heard.is_err() {
                let _ = end();
            }
            (heard, feeding.join().unwrap_or_else(|_| Err(Errno::IO.into())))
        });
        let status = child.wait().map_err(|source| GitError::Watch { source })?;
        let heard = heard?;
        match (status.code().is_some_and(|code| done.contains(&code)), fed) {
            // Git may succeed without reading all of its input.
            (true, Ok(())) => Ok(heard.stdout),
            (true, Err(source)) => Err(GitError::Feed { source }),
            (false, Err(source)) if source.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(GitError::Feed { source })
            }
            (false, _) if heard.is_out_of_memory() => Err(GitError::OutOfMemory { step }),
            (false, _) => Err(match heard.unreached() {
                Some(said) => GitError::Unreached { step, said },
                None => GitError::Failed { step, said: heard.why() },
            }),
        }
    }

    /// Reads its output to the end, within the time limit and the limit on the disk.
    fn listen(&self, child: &mut Child, step: &str, disk: &DiskBudget) -> Result<GitOutput, GitError> {
        let mut open: Vec<(OwnedFd, bool)> = Vec::new();
        open.extend(child.stdout.take().map(|stream| (OwnedFd::from(stream), true)));
        open.extend(child.stderr.take().map(|stream| (OwnedFd::from(stream), false)));
        let mut heard = GitOutput { stdout: Vec::new(), stderr: Vec::new() };
        let mut buffer = vec![0; 64 << 10];
        while !open.is_empty() {
            if Instant::now() >= self.deadline {
                return Err(GitError::OutOfTime { step: step.to_owned() });
            }
            if (self.is_canceled)() {
                return Err(GitError::Canceled);
            }
            disk.check(step)?;
            let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
            let mut polled: Vec<PollFd<'_>> = open
                .iter()
                .map(|(stream, _)| PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN))
                .collect();
            match poll(&mut polled, Some(&tick)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(GitError::Watch { source: errno.into() }),
            }
            let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
            let mut at = ready.into_iter();
            open.retain(|(stream, is_answer)| {
                if !at.next().unwrap_or_default() {
                    return true;
                }
                match rustix::io::retry_on_intr(|| rustix::io::read(stream, &mut buffer)) {
                    Ok(0) | Err(_) => false,
                    Ok(read) => {
                        let to = if *is_answer { &mut heard.stdout } else { &mut heard.stderr };
                        to.extend_from_slice(&buffer[..read]);
                        true
                    }
                }
            });
            if heard.stdout.len() > MOST_BYTES {
                return Err(GitError::TooMuch { step: step.to_owned() });
            }
            heard.stderr.drain(..heard.stderr.len().saturating_sub(LAST_BYTES));
        }
        Ok(heard)
    }
}

// === impl GitError ===

impl GitError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "git_unavailable",
            Self::Watch { .. } | Self::Feed { .. } | Self::Unreadable { .. } | Self::TooMuch { .. } => {
                "git_failed"
            }
            Self::Failed { .. } | Self::Unreached { .. } => "git_refused",
            Self::OutOfTime { .. } => "git_timeout",
            Self::OutOfMemory { .. } => "git_out_of_memory",
            Self::DiskFull { .. } => "disk_full",
            Self::Canceled => "canceled",
            Self::Untrusted { .. } => "git_untrusted",
        }
    }
}

/// Returns the subcommand: the first word that is no option or setting.
fn step<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let words = arguments.iter().map(|argument| argument.as_ref().to_string_lossy());
    words
        .into_iter()
        .find(|word| !word.starts_with('-') && !word.contains('='))
        .unwrap_or_default()
        .into_owned()
}
