//! What a job or a session runs in: the node's own programs, or an image that a container engine on this machine has.

use crate::daemon::{DaemonError, Settings};
use belljar_contract::image::{ImageReference, InvalidImage};
use belljar_contract::isolation::Required;
use belljar_contract::worker::assignment::NATIVE_IMAGE;
use belljar_policy::image::{AllowedImage, ImageDenied, ImagePattern, ImageRules};
use belljar_sandbox::backend::{Backend, BackendError};
use belljar_sandbox::backends::here::Here;
use belljar_sandbox::docker::{DeploymentId, DockerBackend, DockerSettings, ImageName};
use belljar_sandbox::limits::Limits;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

/// Which images there are, and what a container may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSettings {
    /// Which may be run.
    pub rules: ImageRules,
    /// What runs where nothing is said; the node's own programs if there is none.
    pub default: Option<ImageReference>,
    /// The socket of the container engine.
    pub socket: PathBuf,
    /// The engine's runtime, such as `runsc`; its default if there is none.
    pub runtime: Option<String>,
    /// What each container may use.
    pub limits: Limits,
    /// The layers without which there is no container.
    pub required: Required,
}

/// The images of a node.
pub(crate) struct Images {
    settings: ImageSettings,
    /// Nothing where no image may be run.
    docker: Option<DockerBackend>,
    /// Those that were added while nodes ran, where that may be.
    added: RwLock<Vec<ImagePattern>>,
}

/// What a job or a session runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// The node's own programs.
    Native,
    /// An image's.
    Of(AllowedImage),
}

/// It can't be run in what it asks for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoImage {
    /// That is no image.
    #[error("{place}: {source}")]
    Invalid {
        place: &'static str,
        #[source]
        source: InvalidImage,
    },
    /// Not here.
    #[error("{place}: {denied}")]
    Denied { place: &'static str, denied: ImageDenied },
    /// Nothing would limit what is written there.
    #[error(
        "{place}: the image {image} declares volumes, which could be written without limit, so this node doesn't run it: {}; expected \
         an image without `VOLUME`",
        volumes.join(", ")
    )]
    Volumes { place: &'static str, image: String, volumes: Vec<String> },
}

/// Where a job says it.
pub(crate) const OF_JOB: &str = "$.sandbox.image";

/// Where a session says it.
pub(crate) const OF_SESSION: &str = "$.image";

// === impl ImageSettings ===

impl Default for ImageSettings {
    fn default() -> Self {
        Self {
            rules: ImageRules::default(),
            default: None,
            socket: Here::DOCKER_SOCKET.into(),
            runtime: None,
            limits: Limits::default(),
            required: Required::default(),
        }
    }
}

// === impl Images ===

impl Images {
    /// The engine is not asked for yet.
    pub(crate) fn of(settings: &Settings) -> Result<Self, DaemonError> {
        let images = settings.images.clone();
        if images.rules.allowed.is_empty() {
            return Ok(Self { settings: images, docker: None, added: RwLock::default() });
        }
        let of_engine = DockerSettings {
            socket: images.socket.clone(),
            // Each container is of an image of its own.
            image: ImageName::parse("scratch").map_err(|error| DaemonError::Images(error.into()))?,
            deployment: DeploymentId::of(&settings.state),
            runtime: images.runtime.clone(),
            helper: settings.runner.as_path().to_owned(),
        };
        let docker = DockerBackend::new(of_engine, settings.state.clone());
        let docker = docker.map_err(|error| DaemonError::Images(error.into()))?;
        Ok(Self { settings: images, docker: Some(docker), added: RwLock::default() })
    }

    /// What is run by somebody who asks for that.
    pub(crate) fn choose(&self, asked: Option<&str>, place: &'static str) -> Result<Image, NoImage> {
        let reference = match asked {
            Some(NATIVE_IMAGE) => return Ok(Image::Native),
            Some(text) => ImageReference::parse(text).map_err(|source| NoImage::Invalid { place, source })?,
            None => match &self.settings.default {
                Some(default) => default.clone(),
                None => return Ok(Image::Native),
            },
        };
        let decided = self.rules().decide(reference);
        decided.map(Image::Of).map_err(|denied| NoImage::Denied { place, denied })
    }

    /// Which may be run now: those of the configuration, and those that were added.
    pub(crate) fn rules(&self) -> ImageRules {
        let mut rules = self.settings.rules.clone();
        // A node that runs no images at all doesn't begin to.
        if !rules.allowed.is_empty() {
            rules.allowed.extend(self.added.read().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        }
        rules
    }

    /// Has these be all that were added.
    pub(crate) fn allow(&self, added: Vec<ImagePattern>) {
        *self.added.write().unwrap_or_else(PoisonError::into_inner) = added;
    }

    /// Who makes containers of an image.
    pub(crate) fn backend_of(&self, image: &AllowedImage) -> Result<DockerBackend, BackendError> {
        let missing = |why: String| BackendError::Unavailable { backend: DockerBackend::NAME, why };
        let docker = self.docker.as_ref().ok_or_else(|| missing("this node runs no images".to_owned()))?;
        let name = ImageName::parse(image.reference().to_string());
        Ok(docker.of_image(name.map_err(|error| missing(error.to_string()))?))
    }

    /// Refuses an image that declares volumes, as far as the engine has it. Asks the engine, which takes a moment.
    pub(crate) fn check_volumes(&self, image: &Image, place: &'static str) -> Result<(), NoImage> {
        let Image::Of(allowed) = image else { return Ok(()) };
        let volumes =
            self.backend_of(allowed).map_or_else(|_| Vec::new(), |docker| docker.declared_volumes());
        match volumes.is_empty() {
            true => Ok(()),
            false => Err(NoImage::Volumes { place, image: image.name(), volumes }),
        }
    }

    /// Returns true if no image may be run, or the engine answers. Takes a moment.
    pub(crate) fn has_engine(&self) -> bool {
        self.docker.as_ref().is_none_or(|docker| docker.check_engine().is_ok())
    }

    /// What a container may use, and what it must be behind.
    pub(crate) fn bounds(&self) -> (Limits, Required) {
        (self.settings.limits, self.settings.required.clone())
    }

    /// Clears away the containers of former instances.
    pub(crate) fn reconcile(&self) -> Result<(), BackendError> {
        self.docker.as_ref().map_or(Ok(()), |docker| docker.reconcile().map(drop))
    }
}

// === impl Image ===

impl Image {
    /// Its name, as it is told of.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Native => NATIVE_IMAGE.to_owned(),
            Self::Of(image) => image.reference().to_string(),
        }
    }

    /// What runs it.
    pub(crate) fn runtime(&self) -> &'static str {
        match self {
            Self::Native => NATIVE_RUNTIME,
            Self::Of(_) => DockerBackend::NAME,
        }
    }
}

/// What runs the node's own programs.
pub(crate) const NATIVE_RUNTIME: &str = "belljar-native";
