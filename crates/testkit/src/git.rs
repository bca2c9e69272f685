//! Real servers of git: `git http-backend` behind nginx, over TLS and with a password, and `sshd` with keys.

mod https;
mod ssh;

pub use https::{HttpsServer, HttpsSite};
pub use ssh::SshServer;

use crate::world::World;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Repositories that a server serves, in a world's folder.
#[derive(Debug)]
pub struct Repositories {
    root: PathBuf,
}

/// A server, which ends with this.
#[derive(Debug)]
struct ServerProcess(Child);

// === impl Repositories ===

impl Repositories {
    /// Creates an empty set of repositories.
    pub fn in_world(world: &World) -> Self {
        let root = world.path().join("served");
        std::fs::create_dir_all(&root).expect("a folder");
        Self { root }
    }

    /// Returns the folder of the repositories.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes a repository with a branch `main` of these files, and a log of all changes of branches.
    pub fn make(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let (work, bare) = (self.root.join(format!("{name}.work")), self.root.join(name));
        git(&self.root, &["init", "--quiet", "--initial-branch=main", &work.display().to_string()]);
        for (path, content) in files {
            let path = work.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
            std::fs::write(path, content).expect("a file");
        }
        git(&work, &["add", "--all", "--force"]);
        git(&work, &["commit", "--quiet", "--message", "first"]);
        git(&self.root, &["clone", "--quiet", "--bare", &work.display().to_string(), name]);
        git(&bare, &["config", "core.logAllRefUpdates", "always"]);
        git(&bare, &["config", "http.receivepack", "true"]);
        std::fs::remove_dir_all(work).expect("gone");
        bare
    }
}

/// Runs git in a directory, without any user's settings, and returns its output.
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nonexistent");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "safe.directory=*", "-C"]);
    let ran = command.arg(directory).args(arguments).output().expect("git");
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Returns all refs of a repository, a line each.
pub fn refs(repository: &Path) -> Vec<String> {
    let listed = git(repository, &["for-each-ref", "--format=%(refname)"]);
    listed.lines().map(str::to_owned).collect()
}

/// Returns how often a branch of a repository was changed, by the repository's own log.
pub fn updates(repository: &Path, branch: &str) -> usize {
    let log = repository.join("logs/refs/heads").join(branch);
    std::fs::read_to_string(log).map(|log| log.lines().count()).unwrap_or_default()
}

/// Returns a port that no process listens at.
fn free_port(address: Ipv4Addr) -> u16 {
    TcpListener::bind((address, 0)).expect("a port").local_addr().expect("its address").port()
}

/// A program, wherever root has it.
fn program(name: &str) -> Result<PathBuf, String> {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let found = places.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists());
    found.ok_or_else(|| format!("{name} is not installed"))
}

// === impl ServerProcess ===

impl ServerProcess {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().expect("a server that starts"))
    }

    fn is_over(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Nginx ends its own children when it is asked to.
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        let _ = self.0.wait();
    }
}
