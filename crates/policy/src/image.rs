//! Which images a node runs (`REQ-WORKER-0122`). Two ways to write one name never get two verdicts: names are read as engines
//! read them, and what an engine is asked for is the whole name, as a short one might be the beginning of an image's id.

use belljar_contract::image::{ITS_OTHER_NAME, ImageReference, InvalidImage};
use std::fmt;

/// Names of images that may be run: one (`debian:12`), all of a repository (`debian:*`), or of all repositories below a place
/// (`registry.example/team/*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePattern {
    text: String,
    matches: Matches,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Matches {
    One(ImageReference),
    Repository { registry: String, repository: String },
    Below { registry: String, prefix: String },
}

/// What a node runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRules {
    /// The images that may be run; none if there are none.
    pub allowed: Vec<ImagePattern>,
    /// Whether an image must be named by its digest.
    pub requires_digest: bool,
}

/// An image that may be run. Only [`ImageRules::decide`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedImage(ImageReference);

/// An image that may not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageDenied {
    /// There are none that may.
    #[error("this node runs no images: its configuration has no `node.sandbox.allowed_images`")]
    None,
    /// It is not one of those that may.
    #[error("this node doesn't run the image {image}; it runs: {}", in_words(.allowed))]
    NotAllowed {
        /// The whole name.
        image: String,
        /// Those that may.
        allowed: Vec<ImagePattern>,
    },
    /// It might be another one tomorrow.
    #[error("this node runs images by their digest alone, as {image}@sha256:…")]
    NotPinned {
        /// The name, without a tag.
        image: String,
    },
}

fn in_words(allowed: &[ImagePattern]) -> String {
    allowed.iter().map(|pattern| pattern.text.as_str()).collect::<Vec<_>>().join(", ")
}

// === impl ImagePattern ===

impl ImagePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`InvalidImage`] for what matches nothing that there can be.
    pub fn parse(text: &str) -> Result<Self, InvalidImage> {
        let invalid = |why| InvalidImage { text: text.to_owned(), why };
        let place = |text: String| ImageReference::parse(&text).map_err(|error| invalid(error.why));
        let matches = if let Some(repository) = text.strip_suffix(":*") {
            // With a tag, so that there is none before it.
            let any = place(format!("{repository}:x"))?;
            Matches::Repository {
                registry: any.registry().to_owned(),
                repository: any.repository().to_owned(),
            }
        } else if let Some(prefix) = text.strip_suffix("/*") {
            let below = place(format!("{prefix}/x"))?;
            let (registry, repository) = (below.registry().to_owned(), below.repository());
            // A whole registry is also what has no further name in it.
            let is_whole = prefix == registry || prefix == ITS_OTHER_NAME;
            let at = if is_whole { 0 } else { repository.len() - 1 };
            Matches::Below { prefix: repository[..at].to_owned(), registry }
        } else if text.contains('*') {
            return Err(invalid(
                "a `*` stands at the end, as the tag of a repository or for all that is below a place",
            ));
        } else {
            Matches::One(ImageReference::parse(text)?)
        };
        Ok(Self { text: text.to_owned(), matches })
    }

    /// Whether it is one of those.
    pub fn matches(&self, image: &ImageReference) -> bool {
        match &self.matches {
            Matches::One(one) => {
                let is_there = (one.registry(), one.repository()) == (image.registry(), image.repository());
                // Behind a digest a tag says nothing: what has one is another image than that of the tag.
                is_there && one.digest() == image.digest() && (one.is_pinned() || one.tag() == image.tag())
            }
            Matches::Repository { registry, repository } => {
                (registry.as_str(), repository.as_str()) == (image.registry(), image.repository())
            }
            Matches::Below { registry, prefix } => {
                registry == image.registry() && image.repository().starts_with(prefix.as_str())
            }
        }
    }
}

impl fmt::Display for ImagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// === impl ImageRules ===

impl ImageRules {
    /// Whether an image may be run.
    ///
    /// # Errors
    /// [`ImageDenied`] when it may not.
    pub fn decide(&self, image: ImageReference) -> Result<AllowedImage, ImageDenied> {
        if self.allowed.is_empty() {
            return Err(ImageDenied::None);
        }
        if !self.allowed.iter().any(|pattern| pattern.matches(&image)) {
            return Err(ImageDenied::NotAllowed { image: image.to_string(), allowed: self.allowed.clone() });
        }
        match self.requires_digest && !image.is_pinned() {
            true => {
                Err(ImageDenied::NotPinned { image: format!("{}/{}", image.registry(), image.repository()) })
            }
            false => Ok(AllowedImage(image)),
        }
    }
}

// === impl AllowedImage ===

impl AllowedImage {
    /// Which.
    pub fn reference(&self) -> &ImageReference {
        &self.0
    }
}

#[cfg(test)]
mod tests;
