//! A server that speaks S3: moto's, from PyPI. It takes any credentials, so it is no witness of how requests are signed.

use crate::clients::environment;
use crate::daemon::{Daemon, Signal};
use crate::http::HttpRequest;
use crate::wait;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Stdio;
use tempfile::TempDir;

/// A server that answers.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    _server: Daemon,
    _folder: TempDir,
}

const REQUIREMENTS: &str = include_str!("s3/requirements.txt");

/// Makes what it takes, if that isn't there yet.
///
/// # Errors
/// Why it can't be had here.
pub fn install() -> Result<std::path::PathBuf, String> {
    environment("moto", REQUIREMENTS, false)
}

// === impl S3 ===

impl S3 {
    /// Starts one.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start() -> Result<Self, String> {
        let environment = install()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        drop(listener);
        let python = environment.join("bin/python").display().to_string();
        let server = Daemon::start(&python, Signal::Kill, |command| {
            command
                .arg(environment.join("bin/moto_server"))
                .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        })?;
        wait::until(|| server.has_ended() || HttpRequest::new("GET", "/").send(address).is_ok());
        match server.has_ended() {
            true => Err("moto_server has ended".to_owned()),
            false => Ok(Self { address, _server: server, _folder: folder }),
        }
    }

    /// A new bucket's URL.
    pub fn bucket(&self, name: &str) -> String {
        let made = HttpRequest::new("PUT", &format!("/{name}")).send(self.address).expect("an answer");
        assert_eq!(made.status, 200, "{}", String::from_utf8_lossy(&made.body));
        format!("s3://{name}")
    }

    /// The variables by which it is found.
    pub fn environment(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.address);
        let variables = [
            ("AWS_ENDPOINT", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "tests"),
            ("AWS_SECRET_ACCESS_KEY", "tests-secret"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }
}
