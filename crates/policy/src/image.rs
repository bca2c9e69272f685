//! Allowlist of images (`docs/contracts/job.md#j4.5`). Two spellings of one name never get two decisions: names are parsed
//! as container engines do. An engine always gets the full name, because a short one could be a prefix of an image's id.

use belljar_contract::image::{ITS_OTHER_NAME, ImageReference, InvalidImage};
use std::fmt;

/// Pattern of image names: one (`debian:12`), all of a repository (`debian:*`), or all repositories below a prefix
/// (`registry.example/team/*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePattern {
    text: String,
    matches: PatternScope,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternScope {
    One(ImageReference),
    Repository { registry: String, repository: String },
    Below { registry: String, prefix: String },
}

/// Image rules of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRules {
    /// Images that may be run; empty for none.
    pub allowed: Vec<ImagePattern>,
    /// True if an image must be named by its digest.
    pub requires_digest: bool,
}

/// Image that may be run. Only [`ImageRules::decide`] creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedImage(ImageReference);

/// Reason why an image may not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageDenial {
    /// No image is allowed.
    #[error("no images are allowed on this node; set `node.sandbox.allowed_images` in its configuration")]
    None,
    /// The image is not on the allowlist.
    #[error("image {image} is not allowed on this node; allowed: {}", in_words(.allowed))]
    NotAllowed {
        /// Full name.
        image: String,
        /// Patterns of the allowlist.
        allowed: Vec<ImagePattern>,
    },
    /// The image is not pinned by its digest, so the name may mean another image later.
    #[error("this node requires an image digest, such as {image}@sha256:…")]
    NotPinned {
        /// Name without a tag.
        image: String,
    },
}

fn in_words(allowed: &[ImagePattern]) -> String {
    allowed.iter().map(|pattern| pattern.text.as_str()).collect::<Vec<_>>().join(", ")
}

// === impl ImagePattern ===

impl ImagePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`InvalidImage`], for a pattern that can't match any image.
    pub fn parse(text: &str) -> Result<Self, InvalidImage> {
        let invalid = |why| InvalidImage { text: text.to_owned(), why };
        let place = |text: String| ImageReference::parse(&text).map_err(|error| invalid(error.why));
        let matches = if let Some(repository) = text.strip_suffix(":*") {
            // With a tag, so that the repository itself can't have one.
            let any = place(format!("{repository}:x"))?;
            PatternScope::Repository {
                registry: any.registry().to_owned(),
                repository: any.repository().to_owned(),
            }
        } else if let Some(prefix) = text.strip_suffix("/*") {
            let below = place(format!("{prefix}/x"))?;
            let (registry, repository) = (below.registry().to_owned(), below.repository());
            // The pattern of a whole registry also matches images without a further path.
            let is_whole = prefix == registry || prefix == ITS_OTHER_NAME;
            let at = if is_whole { 0 } else { repository.len() - 1 };
            PatternScope::Below { prefix: repository[..at].to_owned(), registry }
        } else if text.contains('*') {
            return Err(invalid(
                "a `*` stands at the end, as the tag of a repository or for all that is below a place",
            ));
        } else {
            PatternScope::One(ImageReference::parse(text)?)
        };
        Ok(Self { text: text.to_owned(), matches })
    }

    /// Returns true if the pattern matches an image.
    pub fn matches(&self, image: &ImageReference) -> bool {
        match &self.matches {
            PatternScope::One(one) => {
                let is_there = (one.registry(), one.repository()) == (image.registry(), image.repository());
                // If there is a digest, a tag has no meaning: the digest decides.
                is_there && one.digest() == image.digest() && (one.is_pinned() || one.tag() == image.tag())
            }
            PatternScope::Repository { registry, repository } => {
                (registry.as_str(), repository.as_str()) == (image.registry(), image.repository())
            }
            PatternScope::Below { registry, prefix } => {
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
    /// Decides whether an image may be run.
    ///
    /// # Errors
    /// [`ImageDenial`], if it may not.
    pub fn decide(&self, image: ImageReference) -> Result<AllowedImage, ImageDenial> {
        if self.allowed.is_empty() {
            return Err(ImageDenial::None);
        }
        if !self.allowed.iter().any(|pattern| pattern.matches(&image)) {
            return Err(ImageDenial::NotAllowed { image: image.to_string(), allowed: self.allowed.clone() });
        }
        match self.requires_digest && !image.is_pinned() {
            true => {
                Err(ImageDenial::NotPinned { image: format!("{}/{}", image.registry(), image.repository()) })
            }
            false => Ok(AllowedImage(image)),
        }
    }
}

// === impl AllowedImage ===

impl AllowedImage {
    /// Returns the image.
    pub fn reference(&self) -> &ImageReference {
        &self.0
    }
}

#[cfg(test)]
mod tests;
