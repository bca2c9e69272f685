//! By whom TLS knows an upstream: the system's authorities, or those of the house.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject, ReadIter};
use rustls::{ClientConfig, RootCertStore};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex as SharedMutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// What is trusted, by who says so.
#[derive(Default)]
pub(crate) struct Trust {
    known: RefCell<HashMap<Authorities, Rc<Slot>>>,
}

/// Who says who may be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Authorities {
    /// The system.
    System,
    /// This file, and nobody else.
    Only(PathBuf),
    /// The system, and this file.
    Besides(PathBuf),
}

/// Empty until it is needed, and locked while it is filled.
type Slot = Mutex<Option<Known>>;

#[derive(Clone)]
struct Known {
    config: Arc<ClientConfig>,
    loaded_at: Instant,
}

/// Why nobody can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file can't be read, or is none of certificates.
    #[error("can't read certificates from {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: pem::Error,
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

/// What any thread of this process has loaded: each run is served by a thread of its own, and loading takes milliseconds.
static LOADED: SharedMutex<Vec<(Authorities, Known)>> = SharedMutex::new(Vec::new());

/// What is spoken, and nothing else.
const PROTOCOL: &[u8] = b"http/1.1";

// === impl Trust ===

impl Trust {
    /// What a connection needs to tell by whether its other end may be trusted.
    pub(super) async fn config(&self, authorities: Authorities) -> Result<Arc<ClientConfig>, TrustError> {
        let slot = Rc::clone(self.known.borrow_mut().entry(authorities.clone()).or_default());
        // Whoever comes meanwhile waits, and has it then.
        let mut slot = slot.lock().await;
        if let Some(known) = slot.as_ref().filter(|known| known.is_fresh()) {
            return Ok(Arc::clone(&known.config));
        }
        let loaded = tokio::task::spawn_blocking(move || known_or_loaded(&authorities)).await;
        let known = loaded.map_err(|_| TrustError::Interrupted)??;
        let config = Arc::clone(&known.config);
        *slot = Some(known);
        Ok(config)
    }
}

impl Known {
    fn is_fresh(&self) -> bool {
        self.loaded_at.elapsed() < FRESH_TIME
    }
}

fn known_or_loaded(authorities: &Authorities) -> Result<Known, TrustError> {
    let all = || LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all().iter().find(|(of, known)| of == authorities && known.is_fresh()).cloned();
    if let Some((_, known)) = known {
        return Ok(known);
    }
    let known = Known { config: Arc::new(load(authorities)?), loaded_at: Instant::now() };
    let mut all = all();
    all.retain(|(of, known)| of != authorities && known.is_fresh());
    all.push((authorities.clone(), known.clone()));
    Ok(known)
}

/// Reads what there is.
pub(super) fn load(authorities: &Authorities) -> Result<ClientConfig, TrustError> {
    let mut roots = RootCertStore::empty();
    if !matches!(authorities, Authorities::Only(_)) {
        // Some of the system's may be too old or odd.
        roots.add_parsable_certificates(of_system()?);
    }
    if let Authorities::Only(path) | Authorities::Besides(path) = authorities {
        add_of_house(path, &mut roots)?;
    }
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
fn add_of_house(path: &Path, roots: &mut RootCertStore) -> Result<(), TrustError> {
    let read = |source| TrustError::Read { path: path.to_owned(), source };
    for certificate in certificates(path)? {
        let added = roots.add(certificate.map_err(read)?);
        added.map_err(|source| TrustError::Certificate { path: path.to_owned(), source })?;
    }
    Ok(())
}

/// What the system trusts, or what variables name instead of that.
fn of_system() -> Result<Vec<CertificateDer<'static>>, TrustError> {
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        let named = std::env::var_os(name).unwrap_or_default();
        let whole = std::iter::once(PathBuf::from(&named));
        for path in whole.chain(std::env::split_paths(&named)).filter(|path| path.exists()) {
            check_named(&path)?;
        }
    }
    Ok(rustls_native_certs::load_native_certs().certs)
}

/// Checks a file of authorities, or a directory with all that is in it: its names are links as a rule, which lead elsewhere.
fn check_named(path: &Path) -> Result<(), TrustError> {
    let refused = |path: &Path, error: UntrustedFileError| match error {
        // What can't be read isn't believed.
        UntrustedFileError::Look { .. } | UntrustedFileError::Kind { .. } => Ok(()),
        refused => Err(TrustError::Read { path: path.to_owned(), source: pem::Error::Io(refused.into()) }),
    };
    if !path.is_dir() {
        return trusted_file::check(path).map(drop).or_else(|error| refused(path, error));
    }
    trusted_file::check_directory(path).or_else(|error| refused(path, error))?;
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        trusted_file::check(&path).map(drop).or_else(|error| refused(&path, error))?;
    }
    Ok(())
}

/// What a file holds that is out of reach of sandboxes.
fn certificates(path: &Path) -> Result<ReadIter<BufReader<File>, CertificateDer<'static>>, TrustError> {
    let opened = trusted_file::open(path)
        .map_err(|error| TrustError::Read { path: path.to_owned(), source: pem::Error::Io(error.into()) })?;
    Ok(CertificateDer::pem_reader_iter(opened))
}

/// The certificates of the system's authorities, and of those in a file besides, as a text of PEM: for whoever is to trust as the
/// host does.
///
/// # Errors
/// [`TrustError`] when there is a file and it can't be read.
pub fn authorities_of_system(besides: Option<&Path>) -> Result<String, TrustError> {
    let mut all = of_system()?;
    if let Some(path) = besides {
        let read = |source| TrustError::Read { path: path.to_owned(), source };
        for certificate in certificates(path)? {
            all.push(certificate.map_err(read)?);
        }
    }
    Ok(all.iter().map(|certificate| pem(certificate)).collect())
}

/// A certificate as text (RFC 7468).
pub(crate) fn pem(certificate: &[u8]) -> String {
    const WIDTH: usize = 64;
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    let encoded = STANDARD.encode(certificate);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(WIDTH));
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}
