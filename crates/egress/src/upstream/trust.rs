//! By whom TLS knows an upstream: the system's authorities, or those of the house.

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// What is trusted, by the file that says so; without one it is the system that does.
#[derive(Default)]
pub(super) struct Trust {
    known: RefCell<HashMap<Option<PathBuf>, Rc<Slot>>>,
}

/// Empty until it is needed, and locked while it is filled.
type Slot = Mutex<Option<Known>>;

struct Known {
    config: Arc<ClientConfig>,
    loaded_at: Instant,
}

/// Why nobody can be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// The file can't be read, or is none of certificates.
    #[error("can't read certificates from {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate in the file is no authority's.
    #[error("{} holds a certificate that can't be trusted", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// There is none.
    #[error("there are no certificates of authorities")]
    Nothing,
    /// The library can't do what is asked of it.
    #[error("TLS can't be set up")]
    Setup {
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// Nobody was there to load them.
    #[error("certificates were not loaded")]
    Interrupted,
}

/// After so long it is loaded anew: authorities come and go.
const FRESH_TIME: Duration = Duration::from_secs(600);

/// What is spoken, and nothing else.
const PROTOCOL: &[u8] = b"http/1.1";

// === impl Trust ===

impl Trust {
    /// What a connection needs to tell by whether its other end may be trusted.
    pub(super) async fn config(&self, authority: Option<&Path>) -> Result<Arc<ClientConfig>, TrustError> {
        let key = authority.map(Path::to_owned);
        let slot = Rc::clone(self.known.borrow_mut().entry(key.clone()).or_default());
        // Whoever comes meanwhile waits, and has it then.
        let mut slot = slot.lock().await;
        if let Some(known) = slot.as_ref().filter(|known| known.loaded_at.elapsed() < FRESH_TIME) {
            return Ok(Arc::clone(&known.config));
        }
        let loaded = tokio::task::spawn_blocking(move || load(key.as_deref())).await;
        let config = Arc::new(loaded.map_err(|_| TrustError::Interrupted)??);
        *slot = Some(Known { config: Arc::clone(&config), loaded_at: Instant::now() });
        Ok(config)
    }
}

/// Reads what there is.
pub(super) fn load(authority: Option<&Path>) -> Result<ClientConfig, TrustError> {
    let roots = match authority {
        Some(path) => of_house(path)?,
        None => of_system(),
    };
    if roots.is_empty() {
        return Err(TrustError::Nothing);
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|source| TrustError::Setup { source })?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

/// Every certificate in the file has to be one: somebody has written it down for this alone.
fn of_house(path: &Path) -> Result<RootCertStore, TrustError> {
    let read = |source| TrustError::Read { path: path.to_owned(), source };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(read)? {
        let added = roots.add(certificate.map_err(read)?);
        added.map_err(|source| TrustError::Certificate { path: path.to_owned(), source })?;
    }
    Ok(roots)
}

/// What of the system's can be used; some of it may be too old or odd.
fn of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
