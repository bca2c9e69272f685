//! Construction of each backend on this very host, from its part of a configuration.

use crate::backend::{Backend, BackendError, with_causes};
use crate::config::{BackendName, DockerConfig, Sandboxing, SubprocessConfig};
use crate::docker::{DeploymentId, DockerBackend, DockerSettings, ImageName, InvalidSetting};
use crate::native::NativeBackend;
use crate::state::StateDirectory;
use crate::subprocess::{SubprocessBackend, SubprocessSettings};
use belljar_confine::launcher::Launcher;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

/// Host parameters that backends need besides their configuration.
#[derive(Debug, Clone)]
pub struct HostContext {
    /// Started while this process was small.
    pub launcher: Arc<Launcher>,
    /// State directory with the sandboxes' folders.
    pub state: StateDirectory,
    /// This program's file, which is also the supervisor and PID 1 of containers.
    pub executable: PathBuf,
    /// The engine's socket.
    pub docker_socket: PathBuf,
}

// === impl HostContext ===

impl HostContext {
    /// The socket of an engine that is where engines are.
    pub const DOCKER_SOCKET: &str = "/var/run/docker.sock";

    /// Makes one backend. Whether it can make sandboxes is not tried.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] when there can't be one.
    pub fn make(&self, name: BackendName, sandboxing: &Sandboxing) -> Result<Box<dyn Backend>, BackendError> {
        let state = self.state.clone();
        match name {
            BackendName::Native => Ok(Box::new(NativeBackend::new(Arc::clone(&self.launcher), state))),
            BackendName::Subprocess => Ok(Box::new(self.subprocess(&sandboxing.subprocess)?)),
            BackendName::Docker => {
                let places = (self.docker_socket.clone(), self.executable.clone());
                let settings = docker_settings(&sandboxing.docker, places, &state)
                    .map_err(|error| unavailable("docker", &error))?;
                Ok(Box::new(DockerBackend::new(settings, state)?))
            }
        }
    }

    /// Makes the one without namespaces, which passes on variables of this process as far as its settings let them through.
    pub(super) fn subprocess(&self, config: &SubprocessConfig) -> Result<SubprocessBackend, BackendError> {
        let settings = subprocess_settings(config).map_err(|error| unavailable("subprocess", &error))?;
        Ok(SubprocessBackend::new(self.executable.clone(), self.state.clone(), settings))
    }
}

fn unavailable(backend: &'static str, why: &dyn Error) -> BackendError {
    BackendError::Unavailable { backend, why: with_causes(why) }
}

/// Translates the configuration. The backend validates it as strictly as its own settings.
pub(super) fn subprocess_settings(
    config: &SubprocessConfig,
) -> Result<SubprocessSettings, serde_json::Error> {
    let mut settings = Map::from_iter([
        ("timeout_seconds".to_owned(), json!(config.timeout.as_secs_f64())),
        ("workspace_only".to_owned(), json!(config.workspace_only)),
        ("restricted_path".to_owned(), json!(config.restricted_path)),
        ("extra_safe_path_prefixes".to_owned(), json!(config.extra_safe_path_prefixes)),
    ]);
    let lists =
        [("env_allowlist", &config.env_allowlist), ("env_denylist_patterns", &config.env_denylist_patterns)];
    // A list that is not written is the backend's own.
    for (name, list) in lists {
        settings.extend(list.as_ref().map(|list| (name.to_owned(), json!(list))));
    }
    serde_json::from_value(Value::Object(settings))
}

fn docker_settings(
    config: &DockerConfig,
    (socket, helper): (PathBuf, PathBuf),
    state: &StateDirectory,
) -> Result<DockerSettings, InvalidSetting> {
    Ok(DockerSettings {
        socket,
        image: ImageName::parse(config.image.clone())?,
        deployment: DeploymentId::of(state),
        runtime: config.runtime.clone(),
        helper,
    })
}
