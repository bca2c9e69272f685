//! A sandbox with the one program that it is for, on any backend.
//!
//! ```text
//! Site ─► Maker::Itself, Launcher ─► native::start ─► the sandbox lasts as long as its program
//!         Maker::Docker ───────────► create, exec ──► the container lasts until it is ended
//! ```

use crate::backend::{BackendError, Execution, Sandbox};
use crate::docker::DockerBackend;
use crate::limits::Limit;
use crate::native::{self, HostUser, RunningSandbox, StartError};
use crate::run::RunWorkspace;
use crate::spec::{Program, SandboxSpec};
use crate::state::StateDirectory;
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::{Identity, Stdio};
use belljar_confine::sealed::{ProgramOutcome, SandboxEnding};
use belljar_confine::stage::Timings;
use belljar_contract::isolation::Isolation;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::process::Signal;

/// Site at which sandboxes are made.
#[derive(Debug, Clone, Copy)]
pub struct EnclosureSite<'s> {
    /// State directory of the host.
    pub state: &'s StateDirectory,
    /// Maker of the sandbox.
    pub maker: EnclosureMaker<'s>,
}

/// Maker of a sandbox.
#[derive(Debug, Clone, Copy)]
pub enum EnclosureMaker<'s> {
    /// This process, which must have a single thread.
    Itself,
    /// A launcher that was started while this process was small.
    Launcher(&'s Launcher),
    /// A container engine: what is run is a program of an image.
    Docker(&'s DockerBackend),
}

/// A running sandbox. Dropping it ends everything in it.
#[derive(Debug)]
pub enum Enclosure {
    /// A native sandbox. It lasts as long as its program.
    Native(Box<RunningSandbox>),
    /// A container. It lasts until it is ended.
    Container {
        /// The program in the container.
        execution: Box<dyn Execution>,
        /// The container.
        sandbox: Box<dyn Sandbox>,
        /// The workspace, if it is to be looked at after the end.
        workspace: Option<OwnedFd>,
    },
}

/// Why there is no sandbox, or why its end isn't known.
#[derive(Debug, thiserror::Error)]
pub enum EnclosureError {
    /// A native one can't be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A container can't be made, reached or cleared away.
    #[error(transparent)]
    Container(#[from] BackendError),
    /// The host can't wait for it.
    #[error("can't watch the sandbox")]
    Watch {
        /// Why.
        #[source]
        source: rustix::io::Errno,
    },
}

// === impl EnclosureMaker ===

impl EnclosureMaker<'_> {
    /// Returns the owner of a run's folder on the host, for a sandbox of that user. Containers have an owner of their own.
    pub fn owner(self, user: HostUser) -> Identity {
        match self {
            Self::Itself | Self::Launcher(_) => user.identity(),
            Self::Docker(_) => DockerBackend::owner_of_copies(),
        }
    }
}

// === impl EnclosureSite ===

impl EnclosureSite<'_> {
    /// Starts a program in a native sandbox, through the launcher if there is one.
    ///
    /// # Errors
    /// [`StartError`]; nothing of the sandbox is left then.
    pub fn start(
        &self,
        spec: &SandboxSpec,
        program: &Program,
        stdio: Stdio,
    ) -> Result<Enclosure, StartError> {
        let launcher = match self.maker {
            EnclosureMaker::Launcher(launcher) => Some(launcher),
            EnclosureMaker::Itself | EnclosureMaker::Docker(_) => None,
        };
        Ok(Enclosure::Native(Box::new(native::start_by(launcher, spec, self.state, program, stdio)?)))
    }
}

// === impl Enclosure ===

impl Enclosure {
    /// Returns the state of every layer, in force or not.
    pub fn isolation(&self) -> &Isolation {
        match self {
            Self::Native(running) => &running.isolation,
            Self::Container { sandbox, .. } => sandbox.isolation(),
        }
    }

    /// Returns the duration of each stage of its launch, as far as that is known.
    pub fn timings(&self) -> Timings {
        match self {
            Self::Native(running) => running.launched.timings.clone(),
            Self::Container { .. } => Timings::default(),
        }
    }

    /// The listening sockets of its hatches. They are given out once.
    pub fn take_hatches(&mut self) -> Vec<OwnedFd> {
        match self {
            Self::Native(running) => std::mem::take(&mut running.launched.hatches),
            Self::Container { sandbox, .. } => sandbox.take_hatches(),
        }
    }

    /// Returns its workspace, for a job that names artifacts in it. It is returned only once.
    pub fn take_workspace(&mut self) -> Option<OwnedFd> {
        match self {
            Self::Native(running) => running.launched.exported.take(),
            Self::Container { workspace, .. } => workspace.take(),
        }
    }

    /// Opens the workspace of a job while it runs; `None` if the host can't reach it.
    pub fn open_workspace(&self, owner: Identity) -> Option<RunWorkspace> {
        let workspace = match self {
            Self::Native(running) => running.launched.exported.as_ref(),
            Self::Container { workspace, .. } => workspace.as_ref(),
        };
        let root = workspace?.try_clone().ok()?;
        Some(RunWorkspace { root: root.into(), owner })
    }

    /// Becomes readable when its program has ended.
    pub fn ending(&self) -> BorrowedFd<'_> {
        match self {
            Self::Native(running) => running.launched.sealed.ending(),
            Self::Container { execution, .. } => execution.ending(),
        }
    }

    /// Asks its program to end.
    ///
    /// # Errors
    /// [`EnclosureError`] when it can't be reached.
    pub fn terminate(&mut self) -> Result<(), EnclosureError> {
        match self {
            Self::Native(running) => running.launched.sealed.terminate(),
            Self::Container { execution, .. } => execution.signal(Signal::TERM.as_raw())?,
        }
        Ok(())
    }

    /// Kills its program.
    ///
    /// # Errors
    /// [`EnclosureError`] when it can't be reached.
    pub fn kill(&mut self) -> Result<(), EnclosureError> {
        match self {
            Self::Native(running) => running.launched.sealed.kill(),
            Self::Container { execution, .. } => execution.kill()?,
        }
        Ok(())
    }

    /// Waits until its program has ended, and returns its ending.
    ///
    /// # Errors
    /// [`EnclosureError`] when the end can't be determined.
    pub fn wait(&mut self) -> Result<SandboxEnding, EnclosureError> {
        match self {
            Self::Native(running) => {
                running.launched.sealed.wait().map_err(|source| EnclosureError::Watch { source })
            }
            Self::Container { execution, .. } => {
                let ending = execution.wait_until(None)?;
                ending.ok_or(EnclosureError::Container(BackendError::Gone))
            }
        }
    }

    /// Returns the limit that has ended it, if one has.
    pub fn ended_by(&self, outcome: ProgramOutcome) -> Option<Limit> {
        match self {
            Self::Native(running) => running.ended_by(outcome),
            Self::Container { sandbox, .. } => sandbox.ended_by(),
        }
    }

    /// Ends everything that is left in it; back when nothing of it is there any more.
    ///
    /// # Errors
    /// [`EnclosureError`] for a container that can't be cleared away.
    pub fn end(self) -> Result<(), EnclosureError> {
        match self {
            Self::Native(running) => drop(running),
            Self::Container { execution, sandbox, workspace: _ } => {
                drop(execution);
                sandbox.destroy()?;
            }
        }
        Ok(())
    }
}
