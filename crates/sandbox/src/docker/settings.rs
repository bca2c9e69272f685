//! Settings of this backend. No setting allows a privileged container, a namespace of the host, a device, or a socket.

use crate::state::StateDirectory;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The settings.
#[derive(Debug, Clone)]
pub struct DockerSettings {
    /// The engine's socket.
    pub socket: PathBuf,
    /// Image of the containers.
    pub image: ImageName,
    /// Deployment that owns the containers, where several share an engine.
    pub deployment: DeploymentId,
    /// The engine's runtime, such as `runsc`; its default if there is none.
    pub runtime: Option<String>,
    /// A static program whose `main` calls [`super::own_program::main`] when it is started as [`super::own_program::NAME`].
    pub helper: PathBuf,
}

/// The name of an image, in the form that engines take: `registry/path:tag` or with a digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageName(String);

/// Id that distinguishes the containers of one installation from those of its neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeploymentId(String);

/// A text that is no such name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: invalid {what}")]
pub struct InvalidSetting {
    /// Description of the expected value.
    pub what: &'static str,
    /// The text.
    pub text: String,
}

// === impl ImageName ===

impl ImageName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`InvalidSetting`] for text that no engine accepts, or that an engine might take for something else.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidSetting> {
        let text = text.into();
        let (name, digest) = text.split_once('@').map_or((text.as_str(), None), |(n, d)| (n, Some(d)));
        let is_sound = (1..=255).contains(&name.len())
            && name.split('/').all(is_component)
            && digest.is_none_or(|digest| {
                digest.strip_prefix("sha256:").is_some_and(|hex| {
                    hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
                })
            });
        if is_sound { Ok(Self(text)) } else { Err(InvalidSetting { what: "image name", text }) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A part of a path; a tag or a port may follow a colon.
fn is_component(part: &str) -> bool {
    let (name, after) = part.split_once(':').map_or((part, None), |(name, after)| (name, Some(after)));
    is_name(name) && after.is_none_or(is_name)
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
    text.len() <= 128
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

impl TryFrom<String> for ImageName {
    type Error = InvalidSetting;

    fn try_from(text: String) -> Result<Self, InvalidSetting> {
        Self::parse(text)
    }
}

impl From<ImageName> for String {
    fn from(name: ImageName) -> Self {
        name.0
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl DeploymentId ===

impl DeploymentId {
    /// Returns the id of the deployment that keeps its folders there.
    pub fn of(state: &StateDirectory) -> Self {
        Self(state.deployment())
    }

    /// Takes an id: letters, digits, `.`, `_` and `-`, at most 128.
    ///
    /// # Errors
    /// [`InvalidSetting`] for anything else.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidSetting> {
        let text = text.into();
        match is_name(&text) {
            true => Ok(Self(text)),
            false => Err(InvalidSetting { what: "deployment id", text }),
        }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for DeploymentId {
    type Error = InvalidSetting;

    fn try_from(text: String) -> Result<Self, InvalidSetting> {
        Self::parse(text)
    }
}

impl From<DeploymentId> for String {
    fn from(id: DeploymentId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_images_are_names_and_nothing_else() {
        let digest = format!("image@sha256:{}", "0a".repeat(32));
        for name in ["debian", "belljar/debian:12", "registry.example:5000/team/image:v1.2_3", &digest] {
            assert_eq!(ImageName::parse(name).unwrap().as_str(), name);
        }
        let hostile = [
            "",
            "--privileged",
            "-v=/:/host",
            "image --privileged",
            "a//b",
            "/abs",
            "a:",
            ":tag",
            "../image",
            "image\n",
            "image?fromSrc=x",
            "image@sha256:00",
            "image@md5:00",
            "a:b:c",
            "i mage",
            "imäge",
        ];
        for name in hostile {
            ImageName::parse(name).unwrap_err();
        }
    }

    #[test]
    fn ids_of_deployments_are_plain() {
        DeploymentId::parse("node-7.example").unwrap();
        for id in ["", "a=b", "a,b", "-a", "a b"] {
            DeploymentId::parse(id).unwrap_err();
        }
    }
}
