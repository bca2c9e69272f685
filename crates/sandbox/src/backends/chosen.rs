//! A backend that is chosen for one sandbox, with its part of a configuration if there is one.

use super::construction::{HostContext, subprocess_settings};
use crate::backend::{Backend, BackendError};
use crate::config::{BackendName, DockerConfig, Sandboxing, SubprocessConfig};
use crate::state::StateDirectory;
use crate::subprocess::environment;
use belljar_confine::launcher::Launcher;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// A backend, with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackendChoice {
    /// Sandboxes made by the kernel's own means.
    Native,
    /// Programs of the host with less around them.
    Subprocess(Box<SubprocessConfig>),
    /// Containers.
    Docker {
        /// Settings of the containers.
        config: Box<DockerConfig>,
        /// The engine's socket.
        socket: PathBuf,
    },
}

/// Site at which a chosen backend makes its sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendSite {
    /// The state directory.
    pub state: PathBuf,
    /// This program's file, which is also the supervisor and PID 1 of containers.
    pub executable: PathBuf,
    /// The variables of the host that sandboxes get ([`BackendChoice::host_variables`]): a keeper is started without any.
    pub host_variables: BTreeMap<String, String>,
}

// === impl BackendChoice ===

impl BackendChoice {
    /// Returns the name of the backend.
    pub fn name(&self) -> BackendName {
        match self {
            Self::Native => BackendName::Native,
            Self::Subprocess(_) => BackendName::Subprocess,
            Self::Docker { .. } => BackendName::Docker,
        }
    }

    /// Returns the variables of the host that programs in its sandboxes get: those that the settings allow, for a backend
    /// that passes any on.
    pub fn host_variables(
        &self,
        host: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<String, String> {
        let Self::Subprocess(config) = self else { return BTreeMap::new() };
        // Settings that make no sense make no sandbox either.
        let Ok(settings) = subprocess_settings(config) else { return BTreeMap::new() };
        let texts = environment::let_through(host, &settings)
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        texts.collect()
    }

    /// Makes it, and has it clear away what was left behind.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] when there can't be one.
    pub fn make(
        &self,
        launcher: Arc<Launcher>,
        site: &BackendSite,
    ) -> Result<Box<dyn Backend>, BackendError> {
        let mut sandboxing = Sandboxing::default();
        let mut docker_socket = PathBuf::from(HostContext::DOCKER_SOCKET);
        if let Self::Docker { config, socket } = self {
            sandboxing.docker.clone_from(config);
            docker_socket.clone_from(socket);
        }
        let (state, executable) = (StateDirectory::at(&site.state), site.executable.clone());
        let here = HostContext { launcher, state, executable, docker_socket };
        let backend: Box<dyn Backend> = match self {
            Self::Subprocess(config) => {
                let host = site.host_variables.iter().map(|(name, value)| (name.into(), value.into()));
                Box::new(here.subprocess(config)?.with_environment(host.collect()))
            }
            Self::Native | Self::Docker { .. } => here.make(self.name(), &sandboxing)?,
        };
        // Leftovers that can't be cleared away don't prevent a start; the next call reports what is missing.
        let _ = backend.reconcile();
        Ok(backend)
    }
}
