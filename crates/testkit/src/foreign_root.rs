//! Roots that are not the host's: a Debian made by `debootstrap`, and a Docker engine with an image of it.
//!
//! Made once for a checkout and kept in its target folder; tests share them. Each function says why, if it can't.

use crate::wait;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A Docker engine of its own, ended when dropped.
#[derive(Debug)]
pub struct Docker {
    // Before the folder that it works in, and before the lock.
    engine: Engine,
    folder: TempDir,
    _lock: File,
}

/// The engine's process, with the thread that waits for it.
#[derive(Debug)]
struct Engine {
    pid: rustix::process::Pid,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The image that [`Docker`] has.
pub const IMAGE: &str = "belljar/debian";

/// The root of a minimal Debian, made by `debootstrap`.
///
/// # Errors
/// Why there is none here.
pub fn debian() -> Result<PathBuf, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("debootstrap needs root".to_owned());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/foreign-roots");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    // One test makes it, the others wait.
    let lock = File::create(folder.join("lock")).map_err(|error| error.to_string())?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
    let root = folder.join("debian");
    if root.exists() {
        return Ok(root);
    }
    let partial = folder.join("partial");
    let _ = std::fs::remove_dir_all(&partial);
    run(Command::new("debootstrap").args(["--variant=minbase", "bookworm"]).arg(&partial))?;
    std::fs::rename(&partial, &root).map_err(|error| error.to_string())?;
    Ok(root)
}

fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{program}: {}", said.lines().last().unwrap_or("failed in silence")))
        }
    }
}

// === impl Docker ===

impl Docker {
    /// Starts an engine without network that has [`IMAGE`]. What it stores is kept for the next one; there is one at a
    /// time in a checkout, and others wait for it.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start() -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let root = debian()?;
        let folder = tempfile::tempdir().map_err(text)?;
        let store = root.with_file_name("docker");
        std::fs::create_dir_all(&store).map_err(text)?;
        let lock = File::create(store.with_extension("lock")).map_err(text)?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| error.to_string())?;
        let engine = Engine::start(&store, folder.path())?;
        let docker = Self { engine, folder, _lock: lock };
        wait::until(|| docker.command(&["version"]).is_ok() || docker.engine.has_ended());
        docker.command(&["version"])?;
        // Those of a test that was killed.
        for id in docker.command(&["ps", "--all", "--quiet"])?.lines() {
            docker.command(&["rm", "--force", id])?;
        }
        if docker.command(&["image", "inspect", IMAGE]).is_err() {
            let archive = docker.folder.path().join("image.tar");
            run(Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg("."))?;
            docker.command(&["import", &archive.display().to_string(), IMAGE])?;
            let _ = std::fs::remove_file(archive);
        }
        Ok(docker)
    }

    /// Runs a `docker` command; returns what it wrote.
    ///
    /// # Errors
    /// The last line of what it complained of.
    pub fn command(&self, arguments: &[&str]) -> Result<String, String> {
        let host = format!("unix://{}", self.socket().display());
        run(Command::new("docker").env("DOCKER_HOST", host).args(arguments))
    }

    /// The engine's socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

// === impl Engine ===

impl Engine {
    /// Should this process be killed, the kernel ends the engine: it looks at the thread that has started it, so that
    /// one lives as long as the engine.
    fn start(store: &Path, folder: &Path) -> Result<Self, String> {
        let log = File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "dockerd", "--shutdown-timeout=1"])
            .arg("--data-root")
            .arg(store)
            .arg("--exec-root")
            .arg(folder.join("exec"))
            .arg("--pidfile")
            .arg(folder.join("pid"))
            .arg(format!("--host=unix://{}", folder.join("socket").display()))
            .args(["--iptables=false", "--ip6tables=false", "--bridge=none"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let child = command.spawn().map_err(|error| format!("setpriv dockerd: {error}"));
            let (child, error) = match child {
                Ok(child) => (Some(child), None),
                Err(error) => (None, Some(error)),
            };
            let pid = child.as_ref().map(rustix::process::Pid::from_child);
            let _ = tell.send(pid.ok_or_else(|| error.unwrap_or_default()));
            if let Some(mut child) = child {
                let _ = child.wait();
            }
        });
        let pid = told.recv().map_err(|error| error.to_string())??;
        Ok(Self { pid, thread: Some(thread) })
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(std::thread::JoinHandle::is_finished)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::TERM);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
