//! Certificate authorities that clients in a container trust: those of its image or, where that names none, those of the
//! host.

use super::container::HOME;
use super::engine::{Engine, EngineRequestError};
use crate::backend::SandboxRequest;
use crate::hatch::{self, Hatch};
use crate::native::view;

/// The host's authorities, in the container's home, not announced to programs yet.
pub(super) struct InstalledAuthorities {
    /// Path of the file inside.
    place: String,
}

/// Paths at which images keep all authorities in one file: Debian, Fedora, SUSE, Alpine and their relatives.
const OF_IMAGES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const BELOW_HOME: &str = ".belljar/authorities.pem";

// === impl InstalledAuthorities ===

impl InstalledAuthorities {
    /// Puts the authorities there, if the sandbox reaches the web and the caller has not named any.
    pub(super) fn to(wanted: &mut SandboxRequest) -> Option<Self> {
        let mut names = hatch::trusting("");
        let is_said = names.any(|(name, _)| wanted.provision.env.contains_key(name))
            || wanted.provision.home.contains_key(BELOW_HOME);
        if is_said || !wanted.provision.hatches.contains(&Hatch::Web) {
            return None;
        }
        // A list of certificates is text.
        let list = view::authorities().and_then(|path| std::fs::read_to_string(path).ok())?;
        wanted.provision.home.insert(BELOW_HOME.to_owned(), list);
        Some(Self { place: format!("/{HOME}/{BELOW_HOME}") })
    }

    /// Returns the variables that name the file, if the image of a container has no list of its own.
    pub(super) fn variables(
        self,
        engine: &Engine,
        container: &str,
    ) -> Result<Vec<(&'static str, String)>, EngineRequestError> {
        for path in OF_IMAGES {
            if engine.has_file(container, path)? {
                return Ok(Vec::new());
            }
        }
        Ok(hatch::trusting(&self.place).collect())
    }
}
