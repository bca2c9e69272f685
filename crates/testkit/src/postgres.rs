//! A PostgreSQL server, with a database for each test. It starts in two seconds, so tests share one.

use crate::daemon::{Daemon, Signal};
use crate::kept::run;
use crate::{joined, wait};
use rustix::fs::{AtFlags, CWD, chownat};
use rustix::process::{Gid, Uid};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A server that answers.
#[derive(Debug)]
pub struct Postgres {
    /// The directory of its socket.
    sockets: PathBuf,
    programs: PathBuf,
    /// Server, if this value has started it. It is ended before its folder is dropped.
    server: Option<Daemon>,
    _folder: Option<TempDir>,
}

/// The variable with the folder of one that is started for a whole run of tests.
pub const SHARED_POSTGRES: &str = "BELLJAR_TEST_POSTGRES";

/// User of the server, because it doesn't run as root.
const USER: &str = "postgres";

const STARTS_WITHIN: Duration = Duration::from_secs(60);

const PROGRAMS: &str = "/usr/lib/postgresql";

// === impl Postgres ===

impl Postgres {
    /// The one of this run of tests, or a new one.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start() -> Result<Self, String> {
        match std::env::var_os(SHARED_POSTGRES) {
            Some(folder) => {
                let sockets = joined::place(Path::new(&folder), STARTS_WITHIN)?.into();
                Ok(Self { sockets, programs: programs()?, server: None, _folder: None })
            }
            None => Self::start_own(),
        }
    }

    /// Starts a server exclusively for the caller.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start_own() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let own = Self::own(folder.path())?;
        Ok(Self { _folder: Some(folder), ..own })
    }

    /// Starts one in a folder, for other processes to join.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start_shared(folder: &Path) -> Result<Self, String> {
        let own = Self::own(folder);
        let place = own.as_ref().map(|own| own.sockets.display().to_string());
        joined::tell(folder, place.as_deref().map_err(|why| why.as_str())).and(own)
    }

    /// The URL of a new database on it.
    ///
    /// # Errors
    /// Why it can't be made.
    pub fn database(&self) -> Result<String, String> {
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        run(self.program("createdb").arg("--host").arg(&self.sockets).args(["--username", USER, &name]))?;
        let sockets = self.sockets.display().to_string().replace('/', "%2F");
        Ok(format!("postgres://{USER}@{sockets}/{name}"))
    }

    /// Returns the output of `psql` for a statement in the database of that URL.
    ///
    /// # Errors
    /// The last line of its error output.
    pub fn ask(&self, url: &str, statement: &str) -> Result<String, String> {
        run(self.program("psql").args([
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--command",
            statement,
            url,
        ]))
    }

    /// Kills one of the server's backend processes, like an OOM kill: the server then ends all the others, and
    /// recovers. Returns true if there was one.
    pub fn kill_a_backend(&self) -> bool {
        let ask =
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'belljar' ORDER BY random() LIMIT 1";
        let sockets = self.sockets.display().to_string().replace('/', "%2F");
        let pid = self.ask(&format!("postgres://{USER}@{sockets}/postgres"), ask);
        let pid = pid.ok().and_then(|pid| rustix::process::Pid::from_raw(pid.trim().parse().ok()?));
        pid.is_some_and(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok())
    }

    fn program(&self, name: &str) -> Command {
        Command::new(self.programs.join(name))
    }

    fn own(folder: &Path) -> Result<Self, String> {
        let programs = programs()?;
        let (data, log) = (folder.join("data"), folder.join("log"));
        for path in [&data, &log] {
            std::fs::create_dir(path).map_err(|error| error.to_string())?;
        }
        if rustix::process::geteuid().is_root() {
            let [uid, gid] = ["--user", "--group"].map(|kind| run(Command::new("id").args([kind, USER])));
            let (uid, gid) = (number(&uid?)?, number(&gid?)?);
            for path in [folder, &data, &log] {
                let given = chownat(
                    CWD,
                    path,
                    Some(Uid::from_raw(uid)),
                    Some(Gid::from_raw(gid)),
                    AtFlags::SYMLINK_NOFOLLOW,
                );
                given.map_err(|error| error.to_string())?;
            }
        }
        let initdb = programs.join("initdb").display().to_string();
        let mut initialise = as_user(&initdb);
        initialise.args(["--auth=trust", "--username", USER, "--encoding=UTF8", "--no-sync", "--pgdata"]);
        run(initialise.arg(&data))?;
        let postgres = Self { sockets: folder.to_owned(), programs, server: None, _folder: None };
        let server = postgres.serve()?;
        Ok(Self { server: Some(server), ..postgres })
    }

    /// Kills the server's first process, as if the machine had lost it, and starts another on what it has left.
    ///
    /// # Errors
    /// Why it does not start again.
    pub fn crash(&mut self) -> Result<(), String> {
        let server = self.server.take().ok_or("the server was started by another process")?;
        server.kill();
        drop(server);
        // The backends are signalled by the kernel, and hold shared memory until they have ended.
        let mut served = self.serve();
        wait::until(|| {
            if served.is_err() {
                served = self.serve();
            }
            served.is_ok()
        });
        self.server = Some(served?);
        Ok(())
    }

    /// Has all of its processes stand still, or go on.
    pub fn hold(&self, is_held: bool) {
        let signal = if is_held { Signal::Stop } else { Signal::Continue };
        if let Some(server) = &self.server {
            server.signal_all(signal);
        }
    }

    /// Starts it on the folder of its sockets, and waits until it answers.
    fn serve(&self) -> Result<Daemon, String> {
        let (folder, log) = (&self.sockets, self.sockets.join("log/server"));
        let out = std::fs::File::options().create(true).append(true).open(&log);
        let out = out.map_err(|error| error.to_string())?;
        let errors = out.try_clone().map_err(|error| error.to_string())?;
        let server = self.programs.join("postgres").display().to_string();
        let server = Daemon::start("setpriv", Signal::Quit, |command| {
            command
                .args(identity())
                .args(["--pdeathsig", "QUIT", &server, "-c", "listen_addresses="])
                // After a crash it would have each of its files on the disk first, one by one.
                .args(["-c", "recovery_init_sync_method=syncfs", "-c", "max_connections=200", "-k"])
                .arg(folder)
                .arg("-D")
                .arg(folder.join("data"))
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(out)
                .stderr(errors);
        })?;
        let is_ready = || run(self.program("pg_isready").arg("--host").arg(folder)).is_ok();
        wait::until(|| is_ready() || server.has_ended());
        match server.has_ended() {
            true => {
                let log = std::fs::read_to_string(log).unwrap_or_default();
                Err(format!("postgres: {}", log.lines().last().unwrap_or("ended without output")))
            }
            false => Ok(server),
        }
    }
}

fn as_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(identity()).arg(program);
    command
}

fn identity() -> Vec<&'static str> {
    match rustix::process::geteuid().is_root() {
        true => vec!["--reuid", USER, "--regid", USER, "--clear-groups"],
        false => Vec::new(),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("not an id: {text:?}"))
}

/// Returns the folder in which Debian has the programs of its newest version.
fn programs() -> Result<PathBuf, String> {
    let versions = std::fs::read_dir(PROGRAMS).map_err(|error| format!("{PROGRAMS}: {error}"))?;
    let newest =
        versions.flatten().map(|entry| entry.path().join("bin")).filter(|bin| bin.join("postgres").exists());
    newest.max().ok_or_else(|| format!("{PROGRAMS}: there is no server"))
}
