//! `SearXNG` itself, whose results come from a server of the test.

use crate::clients::environment;
use crate::daemon::{Daemon, Signal};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A SearXNG that answers.
#[derive(Debug)]
pub struct Searxng {
    address: SocketAddr,
    /// Server, which is ended before its folder is dropped.
    _server: Daemon,
    _folder: TempDir,
}

const REQUIREMENTS: &str = include_str!("searxng/requirements.txt");
const SETTINGS: &str = include_str!("searxng/settings.yml");

const STARTS_WITHIN: Duration = Duration::from_secs(100);

/// Makes what it takes, if that isn't there yet.
///
/// # Errors
/// Why it can't be had here.
pub fn install() -> Result<PathBuf, String> {
    environment("searxng", REQUIREMENTS, false)
}

// === impl Searxng ===

impl Searxng {
    /// Starts one that queries the server at that port of this machine: `/pages?q=…`, which answers `{"found": [{"at",
    /// "name", "about"}]}`.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start(engine: u16) -> Result<Self, String> {
        let environment = install()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let address = free_port()?;
        let settings =
            SETTINGS.replace("PORT", &address.port().to_string()).replace("ENGINE", &engine.to_string());
        let file = folder.path().join("settings.yml");
        std::fs::write(&file, settings).map_err(|error| error.to_string())?;
        let log = File::create(folder.path().join("log")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let python = environment.join("bin/python");
        let server = Daemon::start(&python.display().to_string(), Signal::Kill, |command| {
            command
                .args(["-m", "searx.webapp"])
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", folder.path())
                .env("TMPDIR", folder.path())
                .env("SEARXNG_SETTINGS_PATH", &file)
                .stdin(Stdio::null())
                .stdout(log)
                .stderr(errors);
        })?;
        let given_up = Instant::now() + STARTS_WITHIN;
        while !is_alive(address) {
            if server.has_ended() || Instant::now() > given_up {
                let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
                return Err(format!("searxng: {}", log.lines().last().unwrap_or("doesn't answer")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Self { address, _server: server, _folder: folder })
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Another program may take it before this one does, which then is not the one that answers.
fn free_port() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}

fn is_alive(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\nHost: searxng\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(12).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.ends_with(" 200"))
}
