//! An MCP server: the official Python SDK's, from PyPI, with a tool of every kind.

use crate::daemon::{Daemon, Signal};
use crate::http::HttpRequest;
use crate::mcp;
use crate::wait;
use serde_json::Value;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Stdio;
use tempfile::TempDir;

/// A server that answers, at `/mcp`.
#[derive(Debug)]
pub struct McpServer {
    address: SocketAddr,
    /// Server, which is ended before its folder is dropped.
    _server: Daemon,
    folder: TempDir,
}

const PROGRAM: &str = include_str!("mcp_server/server.py");

// === impl McpServer ===

impl McpServer {
    /// Starts a server with that many tools in addition to its own.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start(more: usize) -> Result<Self, String> {
        let environment = mcp::sdk()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = folder.path().join("server.py");
        std::fs::write(&program, PROGRAM).map_err(|error| error.to_string())?;
        let log = File::create(folder.path().join("log")).map_err(|error| error.to_string())?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        drop(listener);
        let python = environment.join("bin/python").display().to_string();
        let server = Daemon::start(&python, Signal::Kill, |command| {
            command
                .arg(&program)
                .arg(address.port().to_string())
                .arg(folder.path())
                .arg(more.to_string())
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log);
        })?;
        wait::until(|| server.has_ended() || HttpRequest::new("GET", "/").send(address).is_ok());
        match server.has_ended() {
            true => {
                let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
                Err(format!("the server of MCP has ended: {}", log.lines().last().unwrap_or_default()))
            }
            false => Ok(Self { address, _server: server, folder }),
        }
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the calls of tools that record them, in order.
    pub fn calls(&self) -> Vec<Value> {
        let lines = std::fs::read_to_string(self.folder.path().join("calls.jsonl")).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}
