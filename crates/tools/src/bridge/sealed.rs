//! A server's program in a sandbox of its own: without network, and with only those host files that it needs or the configuration
//! grants.

use super::config::StdioConfig;
use super::error::BridgeError;
use belljar_contract::isolation::RequiredLayers;
use belljar_sandbox::backend::{Backend, Execution, Sandbox, SandboxRequest};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::{Lent, Program};
use belljar_sandbox::streams::PipedStreams;
use std::ffi::OsString;
use tokio::net::unix::pipe::{Receiver, Sender};

/// A program that was found on the host.
#[derive(Debug, Clone)]
pub struct ServerProgram {
    /// The command that starts it, with its interpreters' arguments.
    pub command: Vec<OsString>,
    /// Host files to mount: those that it needs, and the configured ones.
    pub lent: Vec<Lent>,
    /// Its workspace.
    pub workspace: WorkspaceChoice,
    /// Value of `PATH` inside.
    pub search_path: String,
}

/// The host's ends of a program's streams.
pub(super) struct Pipes {
    pub(super) input: Sender,
    pub(super) output: Receiver,
    pub(super) errors: Receiver,
}

/// A program in a sandbox. Dropping it ends both.
#[derive(Debug)]
pub(super) struct SandboxedServer {
    // Declared before its sandbox, so that it is dropped first.
    execution: Box<dyn Execution>,
    sandbox: Box<dyn Sandbox>,
}

// === impl SandboxedServer ===

impl SandboxedServer {
    /// Makes a sandbox, and starts the program in it. Blocks.
    pub(super) fn start(
        backend: &dyn Backend,
        wanted: SandboxRequest,
        program: &Program,
    ) -> Result<(Self, PipedStreams), BridgeError> {
        let (theirs, ours) = PipedStreams::make().map_err(|errno| BridgeError::Start(Box::new(errno)))?;
        let sandbox = backend.create(wanted).map_err(|error| BridgeError::Start(Box::new(error)))?;
        let execution = sandbox.exec(program, theirs).map_err(|error| BridgeError::Start(Box::new(error)))?;
        Ok((Self { execution, sandbox }, ours))
    }

    /// Ends it. Returns when the sandbox is gone. Blocks.
    pub(super) fn end(self) {
        drop(self.execution);
        if let Err(error) = self.sandbox.destroy() {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the sandbox of an MCP server was not removed completely"
            );
        }
    }
}

// === impl Pipes ===

impl Pipes {
    /// Registers the streams with the current runtime.
    pub(super) fn of(spoken: PipedStreams) -> std::io::Result<Self> {
        Ok(Self {
            input: Sender::from_owned_fd(spoken.input)?,
            output: Receiver::from_owned_fd(spoken.output)?,
            errors: Receiver::from_owned_fd(spoken.errors)?,
        })
    }
}

/// Returns the sandbox request for that program.
pub(super) fn wanted(
    found: &ServerProgram,
    config: &StdioConfig,
    required: RequiredLayers,
) -> SandboxRequest {
    let path = ("PATH".to_owned(), found.search_path.clone());
    let provision = Provision {
        lent: found.lent.clone(),
        env: config.env.clone().into_iter().chain([path]).collect(),
        limits: config.limits(),
        required,
        ..Provision::default()
    };
    SandboxRequest { workspace: found.workspace.clone(), provision }
}
