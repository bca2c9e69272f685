//! Foreign root file systems: a Debian made by `debootstrap`, and a Docker engine with an image of it.
//!
//! Made once for a checkout and kept in its target folder; tests share them. Each function returns the reason if it
//! fails.

use crate::daemon::{Daemon, Signal};
use crate::kept::run;
use crate::wait;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A Docker engine, exclusively for the holder of this value.
#[derive(Debug)]
pub struct Docker {
    socket: PathBuf,
    /// Engine, if this value has started it. It is ended before its folder and the lock are dropped.
    engine: Option<Daemon>,
    folder: Option<TempDir>,
    _lock: File,
}

/// The image that [`Docker`] has.
pub const IMAGE: &str = "belljar/debian";

/// Variable with the folder of an engine that is started for a whole run of tests, because starting one for each takes
/// seconds.
pub const SHARED_ENGINE: &str = "BELLJAR_TEST_ENGINE";

/// Maximum number of attempts to start an engine.
const MOST_STARTS: usize = 5;

/// The engine's socket in its folder, and why it could not be started.
const SOCKET: &str = "socket";
const FAILURE: &str = "failure";

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
    // One test creates it, the others wait.
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

// === impl Docker ===

impl Docker {
    /// An engine without network that has [`IMAGE`], and no container: the one of this run of tests, or a new one. What it
    /// stores is kept for the next one; there is one at a time in a checkout, and others wait for it.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start() -> Result<Self, String> {
        let root = debian()?;
        let store = root.with_file_name("docker");
        let docker = match std::env::var_os(SHARED_ENGINE) {
            Some(folder) => Self::join(Path::new(&folder), &store)?,
            None => {
                let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
                let docker = Self::own(folder.path(), &store)?;
                Self { folder: Some(folder), ..docker }
            }
        };
        docker.furnish(&root)?;
        Ok(docker)
    }

    /// Starts an engine with a store of its own, which may be killed.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start_own() -> Result<Self, String> {
        let root = debian()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let docker = Self::own(folder.path(), &folder.path().join("store"))?;
        docker.furnish(&root)?;
        Ok(Self { folder: Some(folder), ..docker })
    }

    /// Kills the engine, and starts another on what it has left.
    ///
    /// # Errors
    /// Why it does not start again.
    pub fn crash(&mut self) -> Result<(), String> {
        let folder = self.folder.as_ref().ok_or("the engine was started by another process")?.path();
        self.engine.take().ok_or("there is no engine")?.kill();
        // Processes of the killed engine may hold resources for a moment.
        let mut next = engine(&folder.join("store"), folder)?;
        for _ in 0..MOST_STARTS {
            wait::until(|| answers(&self.socket).is_ok() || next.has_ended());
            if !next.has_ended() {
                break;
            }
            next = engine(&folder.join("store"), folder)?;
        }
        self.engine = Some(next);
        let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        answers(&self.socket).map_err(|why| format!("{why}: {}", log().lines().last().unwrap_or_default()))
    }

    /// Loads the image, and removes what a killed test has left.
    fn furnish(&self, root: &Path) -> Result<(), String> {
        for id in self.command(&["ps", "--all", "--quiet"])?.lines() {
            self.command(&["rm", "--force", id])?;
        }
        if self.command(&["image", "inspect", IMAGE]).is_err() {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let archive = folder.path().join("image.tar");
            run(Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg("."))?;
            self.command(&["import", &archive.display().to_string(), IMAGE])?;
        }
        Ok(())
    }

    /// Starts an engine in a folder, for other processes to join.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start_shared(folder: &Path) -> Result<Self, String> {
        let docker = debian().and_then(|root| Self::own(folder, &root.with_file_name("docker")));
        docker.inspect_err(|why| {
            // Otherwise the waiting processes would wait for the timeout.
            let _ = std::fs::write(folder.join(FAILURE), why);
        })
    }

    fn own(folder: &Path, store: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(store).map_err(|error| error.to_string())?;
        let lock = lock(store, "lock")?;
        let (engine, socket) = (engine(store, folder)?, folder.join(SOCKET));
        wait::until(|| answers(&socket).is_ok() || engine.has_ended());
        answers(&socket)?;
        Ok(Self { socket, engine: Some(engine), folder: None, _lock: lock })
    }

    fn join(folder: &Path, store: &Path) -> Result<Self, String> {
        let (socket, failure) = (folder.join(SOCKET), folder.join(FAILURE));
        let lock = lock(store, "user")?;
        wait::until(|| answers(&socket).is_ok() || failure.exists());
        match std::fs::read_to_string(failure) {
            Ok(why) => Err(why),
            Err(_) => Ok(Self { socket, engine: None, folder: None, _lock: lock }),
        }
    }

    /// Runs a `docker` command; returns what it wrote.
    ///
    /// # Errors
    /// The last line of what it complained of.
    pub fn command(&self, arguments: &[&str]) -> Result<String, String> {
        command(&self.socket, arguments)
    }

    /// The engine's socket.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }
}

fn command(socket: &Path, arguments: &[&str]) -> Result<String, String> {
    let host = format!("unix://{}", socket.display());
    run(Command::new("docker").env("DOCKER_HOST", host).args(arguments))
}

fn answers(socket: &Path) -> Result<(), String> {
    command(socket, &["version"]).map(drop)
}

fn lock(store: &Path, extension: &str) -> Result<File, String> {
    let lock = File::create(store.with_extension(extension)).map_err(|error| error.to_string())?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
    Ok(lock)
}

fn engine(store: &Path, folder: &Path) -> Result<Daemon, String> {
    let log = File::create(folder.join("log")).map_err(|error| error.to_string())?;
    Daemon::start("dockerd", Signal::Terminate, |command| {
        command
            .arg("--shutdown-timeout=1")
            .arg("--data-root")
            .arg(store)
            .arg("--exec-root")
            .arg(folder.join("exec"))
            .arg("--pidfile")
            .arg(folder.join("pid"))
            .arg(format!("--host=unix://{}", folder.join(SOCKET).display()))
            .args(["--iptables=false", "--ip6tables=false", "--bridge=none"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
    })
}
