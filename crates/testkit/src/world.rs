//! A hermetic world for one test: a folder of its own, an environment made from nothing, and a user.
//!
//! Sandboxes are built differently by root and by an ordinary user, so a test that builds one runs as both where it
//! can ([`World::as_everyone`]).

use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A world.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    program: PathBuf,
    user: User,
}

/// User that runs the programs of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user that runs the tests.
    Own,
    /// An ordinary user that a test run by root becomes.
    Ordinary,
}

/// Outcome of a program.
#[derive(Debug)]
pub struct ProgramOutput {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// An ordinary user that exists on every system.
const UNPRIVILEGED_ID: u32 = 65_534;

// === impl World ===

impl World {
    /// Creates a world in which `program` is run by the user that runs the tests.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self::of(program.into(), User::Own)
    }

    /// Runs a test as the user that runs the tests and, if that is root, also as an ordinary user.
    pub fn as_everyone(program: &str, test: impl Fn(&World)) {
        test(&Self::of(program.into(), User::Own));
        if rustix::process::geteuid().is_root() {
            test(&Self::of(reachable_by_everyone(Path::new(program)), User::Ordinary));
        }
    }

    fn of(program: PathBuf, user: User) -> Self {
        let folder = tempfile::Builder::new().prefix("belljar-test-").tempdir().expect("a temporary folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("an open folder");
        let world = Self { folder, program, user };
        world.give(world.path());
        world
    }

    /// Returns the program under test, at a path that the world's user can access.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the world's user.
    pub fn user(&self) -> User {
        self.user
    }

    /// The world's folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file with this content, below the folder; its parents are made.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        let parent = path.parent().expect("a parent");
        std::fs::create_dir_all(parent).expect("parents");
        for made in parent.ancestors().take_while(|ancestor| ancestor.starts_with(self.path())) {
            self.give(made);
        }
        std::fs::write(&path, content).expect("a file");
        // Servers refuse a token that other users can read.
        if name == "token" || name.ends_with("-token") {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("a private file");
        }
        self.give(&path);
        path
    }

    /// The content of a file below the folder.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The program with these arguments, its environment made from nothing.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&self.program, arguments)
    }

    /// Any program, in the same environment and by the same user.
    pub fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path())
            .env("BELLJAR_STATE_DIR", self.path().join("state"))
            // The test selects the removed layer by a variable; a shipped program ignores it.
            .envs(std::env::vars_os().filter(|(name, _)| name == "BELLJAR_REMOVED_WALLS"))
            .stdin(Stdio::null());
        if self.user == User::Ordinary {
            command.uid(UNPRIVILEGED_ID).gid(UNPRIVILEGED_ID);
        }
        command
    }

    /// Runs the program to its end.
    #[must_use = "assert on the exit code or on the output"]
    pub fn run(&self, arguments: &[&str]) -> ProgramOutput {
        ProgramOutput::from(self.command(arguments).output().expect("a program that starts"))
    }

    /// Returns every path below the folder that is not below `state`, with its content: a snapshot to compare.
    pub fn picture(&self, below: &str) -> Vec<(PathBuf, String)> {
        let mut picture = Vec::new();
        let mut pending = vec![self.path().join(below)];
        while let Some(path) = pending.pop() {
            let metadata = std::fs::symlink_metadata(&path).expect("metadata");
            let content = match metadata.file_type() {
                kind if kind.is_dir() => {
                    pending.extend(
                        std::fs::read_dir(&path)
                            .expect("a directory")
                            .map(|entry| entry.expect("an entry").path()),
                    );
                    String::new()
                }
                kind if kind.is_symlink() => std::fs::read_link(&path).expect("a link").display().to_string(),
                _ => format!("{:?}", std::fs::read(&path).expect("a file")),
            };
            let stamp = (metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), metadata.ino());
            picture.push((path, format!("{stamp:?} {content}")));
        }
        picture.sort();
        picture
    }

    /// Gives a path to the world's user.
    pub fn give(&self, path: &Path) {
        if self.user == User::Ordinary {
            std::os::unix::fs::chown(path, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID))
                .expect("chown by root");
        }
    }
}

/// If the program is in a folder that only root may enter, a copy is used.
fn reachable_by_everyone(program: &Path) -> PathBuf {
    let open = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0);
    if program.ancestors().all(open) {
        return program.to_owned();
    }
    let name = program.file_name().expect("a program has a name");
    let stamp = program.metadata().expect("the program").mtime_nsec();
    let copy = std::env::temp_dir().join(format!("{}-{stamp}", name.display()));
    if !copy.exists() {
        let partial = copy.with_extension(std::process::id().to_string());
        std::fs::copy(program, &partial).expect("a copy");
        std::fs::rename(&partial, &copy).expect("a copy in place");
    }
    copy
}

// === impl ProgramOutput ===

impl ProgramOutput {
    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}; stderr: {}", self.stdout, self.stderr))
    }

    /// Returns the outcome, after checking that the program succeeded.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
