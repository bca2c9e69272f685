//! Roots that are not the host's: a Debian made by `debootstrap`, and a Docker engine with an image of it.
//!
//! Made once for a checkout and kept in its target folder; tests share them. Each function says why, if it can't.

use crate::wait;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A Docker engine of its own, ended when dropped.
#[derive(Debug)]
pub struct Docker {
    engine: Child,
    folder: TempDir,
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
    /// Starts an engine without network that has [`IMAGE`].
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start() -> Result<Self, String> {
        let root = debian()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = |name: &str| folder.path().join(name);
        let log = File::create(path("log")).map_err(|error| error.to_string())?;
        let engine = Command::new("dockerd")
            .arg("--data-root")
            .arg(path("data"))
            .arg("--exec-root")
            .arg(path("exec"))
            .arg("--pidfile")
            .arg(path("pid"))
            .arg(format!("--host=unix://{}", path("socket").display()))
            .args(["--iptables=false", "--ip6tables=false", "--bridge=none"])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("dockerd: {error}"))?;
        let mut docker = Self { engine, folder };
        wait::until(|| {
            docker.command(&["version"]).is_ok() || docker.engine.try_wait().is_ok_and(|end| end.is_some())
        });
        docker.command(&["version"])?;
        let archive = docker.folder.path().join("image.tar");
        run(Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg("."))?;
        let archive = archive.display().to_string();
        docker.command(&["import", &archive, IMAGE])?;
        Ok(docker)
    }

    /// Runs a `docker` command; returns what it wrote.
    ///
    /// # Errors
    /// The last line of what it complained of.
    pub fn command(&self, arguments: &[&str]) -> Result<String, String> {
        let host = format!("unix://{}", self.folder.path().join("socket").display());
        run(Command::new("docker").env("DOCKER_HOST", host).args(arguments))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.engine);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.engine.wait();
    }
}
