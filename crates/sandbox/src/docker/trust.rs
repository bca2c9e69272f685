//! Whom clients in a container trust: those whom its image trusts or, where that says nothing, those whom the host does.

use super::container::HOME;
use super::engine::{AskError, Engine};
use crate::backend::Wanted;
use crate::hatch::{self, Hatch};
use crate::native::view;

/// Whom the host trusts, in the container's home, and not told of yet.
pub(super) struct Offered {
    /// Where that is inside.
    place: String,
}

/// Where images keep all authorities in one file: Debian and its kin, Fedora and its, SUSE, Alpine.
const OF_IMAGES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const BELOW_HOME: &str = ".belljar/authorities.pem";

// === impl Offered ===

impl Offered {
    /// Puts it there, if the sandbox reaches the web and nobody has said whom it trusts.
    pub(super) fn to(wanted: &mut Wanted) -> Option<Self> {
        let mut names = hatch::trusting("");
        let is_said =
            names.any(|(name, _)| wanted.env.contains_key(name)) || wanted.home.contains_key(BELOW_HOME);
        if is_said || !wanted.hatches.contains(&Hatch::Web) {
            return None;
        }
        // What isn't text is no list of certificates.
        let list = view::authorities().and_then(|path| std::fs::read_to_string(path).ok())?;
        wanted.home.insert(BELOW_HOME.to_owned(), list);
        Some(Self { place: format!("/{HOME}/{BELOW_HOME}") })
    }

    /// The variables that tell of it, if the image of a container has no list of its own.
    pub(super) fn variables(
        self,
        engine: &Engine,
        container: &str,
    ) -> Result<Vec<(&'static str, String)>, AskError> {
        for path in OF_IMAGES {
            if engine.has_file(container, path)? {
                return Ok(Vec::new());
            }
        }
        Ok(hatch::trusting(&self.place).collect())
    }
}
