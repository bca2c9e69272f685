//! The image of a job or a session: the node's own programs, or an image of a container engine on this machine.

use crate::daemon::{DaemonError, Settings};
use belljar_contract::image::{ImageReference, InvalidImage};
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::worker::assignment::NATIVE_IMAGE;
use belljar_policy::image::{AllowedImage, ImageDenial, ImagePattern, ImageRules};
use belljar_sandbox::backend::{Backend, BackendError};
use belljar_sandbox::backends::construction::HostContext;
use belljar_sandbox::docker::{DeploymentId, DockerBackend, DockerSettings, ImageName};
use belljar_sandbox::limits::Limits;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

/// Images of a node, and limits of its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSettings {
    /// The allowlist of images.
    pub rules: ImageRules,
    /// Image for requests that name none; `None` for the node's own programs.
    pub default: Option<ImageReference>,
    /// The socket of the container engine.
    pub socket: PathBuf,
    /// The engine's runtime, such as `runsc`; `None` for the engine's default.
    pub runtime: Option<String>,
    /// Resource limits of each container.
    pub limits: Limits,
    /// Isolation layers that a container must have.
    pub required: RequiredLayers,
}

/// The images of a node.
pub(crate) struct Images {
    settings: ImageSettings,
    /// `None` if no image is allowed.
    docker: Option<DockerBackend>,
    /// Images that were added while nodes ran, if adding is allowed.
    added: RwLock<Vec<ImagePattern>>,
}

/// The image of a job or a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// The node's own programs, without an image.
    Native,
    /// An allowed image.
    Of(AllowedImage),
}

/// Reasons why an image can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    /// The name is not a valid image reference.
    #[error("{place}: {source}")]
    Invalid {
        place: &'static str,
        #[source]
        source: InvalidImage,
    },
    /// The image is not on the allowlist.
    #[error("{place}: {denied}")]
    Denied { place: &'static str, denied: ImageDenial },
    /// The image declares volumes, and no limit would apply to what is written there.
    #[error(
        "{place}: the image {image} declares volumes, which could be written without limit, so this node doesn't run it: {}; expected \
         an image without `VOLUME`",
        volumes.join(", ")
    )]
    Volumes { place: &'static str, image: String, volumes: Vec<String> },
}

/// JSON path of the image in a job.
pub(crate) const OF_JOB: &str = "$.sandbox.image";

/// JSON path of the image in a session.
pub(crate) const OF_SESSION: &str = "$.image";

// === impl ImageSettings ===

impl Default for ImageSettings {
    fn default() -> Self {
        Self {
            rules: ImageRules::default(),
            default: None,
            socket: HostContext::DOCKER_SOCKET.into(),
            runtime: None,
            limits: Limits::default(),
            required: RequiredLayers::default(),
        }
    }
}

// === impl Images ===

impl Images {
    /// Doesn't connect to the engine yet.
    pub(crate) fn of(settings: &Settings) -> Result<Self, DaemonError> {
        let images = settings.images.clone();
        if images.rules.allowed.is_empty() {
            return Ok(Self { settings: images, docker: None, added: RwLock::default() });
        }
        let of_engine = DockerSettings {
            socket: images.socket.clone(),
            // A placeholder: each container names its own image.
            image: ImageName::parse("scratch").map_err(|error| DaemonError::Images(error.into()))?,
            deployment: DeploymentId::of(&settings.state),
            runtime: images.runtime.clone(),
            helper: settings.runner.as_path().to_owned(),
        };
        let docker = DockerBackend::new(of_engine, settings.state.clone());
        let docker = docker.map_err(|error| DaemonError::Images(error.into()))?;
        Ok(Self { settings: images, docker: Some(docker), added: RwLock::default() })
    }

    /// Returns the image for a request that names `asked`.
    pub(crate) fn choose(&self, asked: Option<&str>, place: &'static str) -> Result<Image, ImageError> {
        let reference = match asked {
            Some(NATIVE_IMAGE) => return Ok(Image::Native),
            Some(text) => {
                ImageReference::parse(text).map_err(|source| ImageError::Invalid { place, source })?
            }
            None => match &self.settings.default {
                Some(default) => default.clone(),
                None => return Ok(Image::Native),
            },
        };
        let decided = self.rules().decide(reference);
        decided.map(Image::Of).map_err(|denied| ImageError::Denied { place, denied })
    }

    /// Returns the current allowlist: images of the configuration, and those that were added.
    pub(crate) fn rules(&self) -> ImageRules {
        let mut rules = self.settings.rules.clone();
        // On a node without images, adding one has no effect.
        if !rules.allowed.is_empty() {
            rules.allowed.extend(self.added.read().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        }
        rules
    }

    /// Replaces the added images.
    pub(crate) fn allow(&self, added: Vec<ImagePattern>) {
        *self.added.write().unwrap_or_else(PoisonError::into_inner) = added;
    }

    /// Returns the backend that makes containers of an image.
    pub(crate) fn backend_of(&self, image: &AllowedImage) -> Result<DockerBackend, BackendError> {
        let missing = |why: String| BackendError::Unavailable { backend: DockerBackend::NAME, why };
        let docker = self.docker.as_ref().ok_or_else(|| missing("this node runs no images".to_owned()))?;
        let name = ImageName::parse(image.reference().to_string());
        Ok(docker.of_image(name.map_err(|error| missing(error.to_string()))?))
    }

    /// Refuses an image that declares volumes, if the engine has it. Blocks while it queries the engine.
    pub(crate) fn check_volumes(&self, image: &Image, place: &'static str) -> Result<(), ImageError> {
        let Image::Of(allowed) = image else { return Ok(()) };
        let volumes =
            self.backend_of(allowed).map_or_else(|_| Vec::new(), |docker| docker.declared_volumes());
        match volumes.is_empty() {
            true => Ok(()),
            false => Err(ImageError::Volumes { place, image: image.name(), volumes }),
        }
    }

    /// Returns true if no image is allowed, or the engine answers. Blocks meanwhile.
    pub(crate) fn has_engine(&self) -> bool {
        self.docker.as_ref().is_none_or(|docker| docker.check_engine().is_ok())
    }

    /// Returns the resource limits of a container, and the isolation layers that it must have.
    pub(crate) fn bounds(&self) -> (Limits, RequiredLayers) {
        (self.settings.limits, self.settings.required.clone())
    }

    /// Removes the containers of former instances.
    pub(crate) fn reconcile(&self) -> Result<(), BackendError> {
        self.docker.as_ref().map_or(Ok(()), |docker| docker.reconcile().map(drop))
    }
}

// === impl Image ===

impl Image {
    /// Returns the name that reports have.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Native => NATIVE_IMAGE.to_owned(),
            Self::Of(image) => image.reference().to_string(),
        }
    }

    /// Returns the name of the runtime.
    pub(crate) fn runtime(&self) -> &'static str {
        match self {
            Self::Native => NATIVE_RUNTIME,
            Self::Of(_) => DockerBackend::NAME,
        }
    }
}

/// Name of the runtime for the node's own programs.
pub(crate) const NATIVE_RUNTIME: &str = "belljar-native";
