//! A backend that is chosen for one sandbox, with its part of a configuration if there is one.

use super::here::Here;
use crate::backend::{Backend, BackendError};
use crate::config::{BackendName, DockerConfig, Sandboxing, SubprocessConfig};
use crate::docker::ImageName;
use crate::state::State;
use belljar_confine::launcher::Launcher;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// A backend, with what has to be said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chosen {
    /// Sandboxes made by the kernel's own means.
    Native,
    /// Programs of the host with less around them.
    Subprocess(Box<SubprocessConfig>),
    /// Containers.
    Docker {
        /// Which, and what they may.
        config: Box<DockerConfig>,
        /// The engine's socket.
        socket: PathBuf,
    },
}

/// Where a chosen backend makes its sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The state directory.
    pub state: PathBuf,
    /// This program's file, which is also the supervisor and PID 1 of containers.
    pub executable: PathBuf,
}

// === impl Chosen ===

impl Chosen {
    /// Programs of the host, by the usual settings.
    pub fn subprocess() -> Self {
        Self::Subprocess(Box::default())
    }

    /// Containers of that image, by the usual settings.
    pub fn docker(image: &ImageName, socket: PathBuf) -> Self {
        let config = DockerConfig { image: image.as_str().to_owned(), ..DockerConfig::default() };
        Self::Docker { config: Box::new(config), socket }
    }

    /// Its name.
    pub fn name(&self) -> BackendName {
        match self {
            Self::Native => BackendName::Native,
            Self::Subprocess(_) => BackendName::Subprocess,
            Self::Docker { .. } => BackendName::Docker,
        }
    }

    /// Makes it, and has it clear away what was left behind.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] when there can't be one.
    pub fn make(&self, launcher: Arc<Launcher>, site: &Site) -> Result<Box<dyn Backend>, BackendError> {
        let mut sandboxing = Sandboxing::default();
        let mut docker_socket = PathBuf::from(Here::DOCKER_SOCKET);
        match self {
            Self::Native => {}
            Self::Subprocess(config) => sandboxing.subprocess.clone_from(config),
            Self::Docker { config, socket } => {
                sandboxing.docker.clone_from(config);
                docker_socket.clone_from(socket);
            }
        }
        let (state, executable) = (State::at(&site.state), site.executable.clone());
        let backend = Here { launcher, state, executable, docker_socket }.make(self.name(), &sandboxing)?;
        // What can't be cleared away is no reason not to begin; what is missing for that, the next call says.
        let _ = backend.reconcile();
        Ok(backend)
    }
}
