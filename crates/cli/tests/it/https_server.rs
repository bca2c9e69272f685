//! HTTPS servers in Python, at `localhost`, with a certificate that no system CA has signed.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running server. Dropping it kills it.
pub(crate) struct HttpsServer {
    folder: TempDir,
    server: Child,
    port: u16,
}

const CERTIFICATE: &str = "authority.pem";

// === impl HttpsServer ===

impl HttpsServer {
    /// Runs a script with its folder, which has `authority.pem` and `key.pem`, and with `arguments`. The script prints its
    /// port. `fill` writes the content that the server serves into the folder.
    pub(crate) fn start(script: &str, arguments: &[&str], fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join(CERTIFICATE), cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        fill(folder.path());
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(folder.path()).args(arguments).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { folder, server, port: line.trim().parse().unwrap() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Returns the file with its certificate, which is self-signed.
    pub(crate) fn authority(&self) -> PathBuf {
        self.file(CERTIFICATE)
    }

    /// Returns a file of its folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
