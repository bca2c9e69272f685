//! Client of the container engine, over its local socket. All HTTP is in here.
//!
//! Callers block; their requests run on a small runtime of the engine's own. So a caller may be on any thread, even on one
//! of another runtime.

use super::settings::ImageName;
use crate::backend::BackendError;
use belljar_trusted::socket::{self, Server};
use bollard::container::LogOutput;
use bollard::errors::Error as EngineError;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerStatsResponse, ContainerSummary,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, ContainerArchiveInfoOptionsBuilder, EventsOptionsBuilder,
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, StatsOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::{Stream, StreamExt};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

/// An engine.
#[derive(Debug)]
pub(super) struct Engine {
    socket: PathBuf,
    runtime: Runtime,
    client: Mutex<Option<Docker>>,
}

/// Bytes to PID 1.
pub(super) type InitInput = Pin<Box<dyn AsyncWrite + Send>>;

/// Bytes of PID 1.
pub(super) type InitOutput = Pin<Box<dyn Stream<Item = Result<Vec<u8>, EngineError>> + Send>>;

/// The streams of PID 1.
pub(super) struct AttachedStreams {
    pub(super) input: InitInput,
    pub(super) output: InitOutput,
}

/// An image that is there.
#[derive(Debug)]
pub(super) struct LocalImage {
    /// Id of the image. The image that a name stands for may change; the id doesn't.
    pub(super) id: String,
    /// Directories that every container of it could write on the host's disk.
    pub(super) volumes: Vec<String>,
}

/// Why the engine did not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineRequestError {
    /// No engine answers at the socket.
    #[error("no engine answers at {}", socket.display())]
    Unreachable {
        socket: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The engine has no such object.
    #[error("the engine has no such object")]
    Missing,
    /// The engine refuses, or can't carry out the request.
    #[error("the engine refused the request")]
    Refused(#[source] EngineError),
    /// The engine takes too long.
    #[error("the engine does not answer in time")]
    Silent,
}

/// Checks that no sandbox is taken for an engine.
async fn check(path: &Path) -> std::io::Result<()> {
    socket::check(path)?;
    let server = UnixStream::connect(path).await?.peer_cred()?;
    Ok(socket::check_server(path, Server { uid: server.uid(), pid: server.pid() })?)
}

/// The engine may be busy with others.
const PATIENCE: Duration = Duration::from_secs(120);

// === impl Engine ===

impl Engine {
    /// Does not ask yet: an engine that starts later is as good.
    pub(super) fn at(socket: &Path) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("belljar-docker")
            .enable_all()
            .build()?;
        Ok(Self { socket: socket.to_owned(), runtime, client: Mutex::new(None) })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs something beside everything else.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
    }

    /// Kills a container without waiting. A caller whose container lives on may ask again.
    pub(super) fn kill(&self, id: &str) {
        let Ok(client) = self.client() else { return };
        let id = id.to_owned();
        self.spawn(async move { drop(client.kill_container(&id, None).await) });
    }

    /// Runs something and waits for it.
    fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineRequestError> {
        let (tell, told) = sync_channel(1);
        self.runtime.spawn(async move {
            let _ = tell.send(tokio::time::timeout(PATIENCE, future).await);
        });
        match told.recv() {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(error))) => Err(self.refused(error)),
            Ok(Err(_)) | Err(_) => Err(EngineRequestError::Silent),
        }
    }

    fn refused(&self, error: EngineError) -> EngineRequestError {
        match error {
            EngineError::DockerResponseServerError { status_code: 404, .. } => EngineRequestError::Missing,
            EngineError::DockerResponseServerError { .. } => EngineRequestError::Refused(error),
            source => EngineRequestError::Unreachable { socket: self.socket.clone(), source: source.into() },
        }
    }

    fn client(&self) -> Result<Docker, EngineRequestError> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let (path, socket) = (self.socket.to_string_lossy().into_owned(), self.socket.clone());
        let connected = self.wait(async move {
            check(&socket).await?;
            let client = Docker::connect_with_unix(&path, PATIENCE.as_secs(), API_DEFAULT_VERSION)?;
            client.negotiate_version().await
        });
        // Before it has answered, everything that goes wrong is about reaching it.
        let connected = connected.map_err(|error| match error {
            EngineRequestError::Refused(source) => {
                EngineRequestError::Unreachable { socket: self.socket.clone(), source: source.into() }
            }
            error => error,
        })?;
        *client = Some(connected.clone());
        Ok(connected)
    }

    /// Checks that the engine answers.
    pub(super) fn ping(&self) -> Result<(), EngineRequestError> {
        let client = self.client()?;
        self.wait(async move { client.ping().await.map(drop) })
    }

    pub(super) fn image(&self, name: &ImageName) -> Result<LocalImage, EngineRequestError> {
        let (client, asked) = (self.client()?, name.as_str().to_owned());
        let found = self.wait(async move { client.inspect_image(&asked).await })?;
        // Some engines look for a digest alone, in any repository.
        if let Some(wanted) = in_repository(name.as_str())
            && !found.repo_digests.iter().flatten().any(|known| in_repository(known) == Some(wanted))
        {
            return Err(EngineRequestError::Missing);
        }
        let volumes = found.config.and_then(|config| config.volumes).unwrap_or_default();
        Ok(LocalImage {
            id: found.id.ok_or(EngineRequestError::Missing)?,
            volumes: volumes.into_iter().collect(),
        })
    }

    pub(super) fn create(&self, body: ContainerCreateBody) -> Result<String, EngineRequestError> {
        let client = self.client()?;
        self.wait(async move { client.create_container(None, body).await.map(|created| created.id) })
    }

    pub(super) fn attach(&self, id: &str) -> Result<AttachedStreams, EngineRequestError> {
        let (client, id) = (self.client()?, id.to_owned());
        let options = AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true).build();
        let attached = self.wait(async move { client.attach_container(&id, Some(options)).await })?;
        let bytes =
            |output: Result<LogOutput, EngineError>| output.map(|output| output.into_bytes().to_vec());
        Ok(AttachedStreams { input: attached.input, output: Box::pin(attached.output.map(bytes)) })
    }

    pub(super) fn start(&self, id: &str) -> Result<(), EngineRequestError> {
        let (client, id) = (self.client()?, id.to_owned());
        self.wait(async move { client.start_container(&id, None).await })
    }

    pub(super) fn inspect(&self, id: &str) -> Result<ContainerInspectResponse, EngineRequestError> {
        let (client, id) = (self.client()?, id.to_owned());
        self.wait(async move { client.inspect_container(&id, None).await })
    }

    /// Returns true if a container has a file at a path, or a link.
    pub(super) fn has_file(&self, id: &str, path: &str) -> Result<bool, EngineRequestError> {
        let (client, id) = (self.client()?, id.to_owned());
        let options = ContainerArchiveInfoOptionsBuilder::new().path(path).build();
        match self.wait(async move { client.get_container_archive_info(&id, Some(options)).await }) {
            Ok(_) => Ok(true),
            Err(EngineRequestError::Missing) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn stats(&self, id: &str) -> Result<ContainerStatsResponse, EngineRequestError> {
        let (client, id) = (self.client()?, id.to_owned());
        let options = StatsOptionsBuilder::new().stream(false).one_shot(true).build();
        let stats = self.wait(async move { client.stats(&id, Some(options)).next().await.transpose() })?;
        stats.ok_or(EngineRequestError::Missing)
    }

    /// Kills what runs in it and removes it; one that is gone already is as good.
    pub(super) fn remove(&self, id: &str) -> Result<(), EngineRequestError> {
        let (client, id) = (self.client()?, id.to_owned());
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.wait(async move { client.remove_container(&id, Some(options)).await }) {
            Err(EngineRequestError::Missing) => Ok(()),
            removed => removed,
        }
    }

    /// The containers, running or not, that have all of these labels.
    pub(super) fn list(&self, labels: Vec<String>) -> Result<Vec<ContainerSummary>, EngineRequestError> {
        let client = self.client()?;
        let filters = HashMap::from([("label".to_owned(), labels)]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        self.wait(async move { client.list_containers(Some(options)).await })
    }

    /// Watches for an OOM kill in the container: calls back, and kills the rest.
    pub(super) fn kill_on_out_of_memory(
        &self,
        id: &str,
        tell: impl FnOnce() + Send + 'static,
    ) -> Result<(), EngineRequestError> {
        let (client, id) = (self.client()?, id.to_owned());
        let filters = HashMap::from([
            ("container".to_owned(), vec![id.clone()]),
            ("event".to_owned(), vec!["oom".to_owned(), "destroy".to_owned()]),
        ]);
        // Events from before the engine received this request are reported as well.
        let since = jiff::Timestamp::now().as_second().to_string();
        let options = EventsOptionsBuilder::new().since(&since).filters(&filters).build();
        self.spawn(async move {
            let mut events = Box::pin(client.events(Some(options)));
            if let Some(Ok(event)) = events.next().await
                && event.action.as_deref() == Some("oom")
            {
                tell();
                let _ = client.kill_container(&id, None).await;
            }
        });
        Ok(())
    }
}

/// The repository, as engines shorten it, and the digest of a name that has one.
fn in_repository(name: &str) -> Option<(&str, &str)> {
    const HUB: [&str; 2] = ["docker.io/library/", "docker.io/"];
    let (repository, digest) = name.split_once('@')?;
    let repository = HUB.into_iter().find_map(|hub| repository.strip_prefix(hub)).unwrap_or(repository);
    let tag = repository.rfind(':').filter(|at| !repository[*at..].contains('/'));
    Some((&repository[..tag.unwrap_or(repository.len())], digest))
}

impl From<EngineRequestError> for BackendError {
    fn from(error: EngineRequestError) -> Self {
        match error {
            EngineRequestError::Missing => Self::Gone,
            error => Self::Reach(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_its_repository_however_that_is_written() {
        let same = [
            "docker.io/library/tools@sha256:1",
            "docker.io/tools@sha256:1",
            "tools@sha256:1",
            "tools:latest@sha256:1",
        ];
        for name in same {
            assert_eq!(in_repository(name), Some(("tools", "sha256:1")), "{name}");
        }
        let port = "registry:5000/tools@sha256:1";
        assert_eq!(in_repository(port), Some(("registry:5000/tools", "sha256:1")));
        assert_eq!(in_repository("tools:latest"), None);
    }
}
