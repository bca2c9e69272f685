//! Authorities by which TLS authenticates upstreams: the system's, or a site's own.

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

/// TLS configurations, by their authorities.
#[derive(Default)]
pub(crate) struct TrustStore {
    known: RefCell<HashMap<Authorities, Rc<ConfigSlot>>>,
}

/// Trusted authorities.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Authorities {
    /// Those of the system.
    System,
    /// Only those in this file.
    Only(PathBuf),
    /// Those of the system and those in this file.
    Besides(PathBuf),
}

/// Empty until it is needed, and locked while it is filled.
type ConfigSlot = Mutex<Option<LoadedConfig>>;

#[derive(Clone)]
struct LoadedConfig {
    config: Arc<ClientConfig>,
    loaded_at: Instant,
}

/// Reason why the authorities can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file can't be read or holds no certificates.
    #[error("can't read certificates from {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: pem::Error,
    },
    /// A certificate in the file is no authority's.
    #[error("{} holds a certificate that can't be trusted", path.display())]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: rustls::Error,
    },
    /// There are no authorities.
    #[error("no certificate authorities were found")]
    Nothing,
    /// The TLS library does not support the configuration.
    #[error("TLS can't be set up")]
    Setup {
        /// Reason.
        #[source]
        source: rustls::Error,
    },
    /// The task that loaded them was interrupted.
    #[error("certificates were not loaded")]
    Interrupted,
}

/// Time after which the authorities are loaded again, because they may change.
const FRESH_TIME: Duration = Duration::from_secs(600);

/// Shared by all threads of this process: each run has its own thread, and loading takes milliseconds.
static LOADED: SharedMutex<Vec<(Authorities, LoadedConfig)>> = SharedMutex::new(Vec::new());

/// The only protocol that is offered (ALPN).
const PROTOCOL: &[u8] = b"http/1.1";

// === impl TrustStore ===

impl TrustStore {
    /// Returns the TLS configuration by which a connection authenticates its other end.
    pub(super) async fn config(&self, authorities: Authorities) -> Result<Arc<ClientConfig>, TrustError> {
        let slot = Rc::clone(self.known.borrow_mut().entry(authorities.clone()).or_default());
        // Other tasks wait for the lock, and then get the loaded value.
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

impl LoadedConfig {
    fn is_fresh(&self) -> bool {
        self.loaded_at.elapsed() < FRESH_TIME
    }
}

fn known_or_loaded(authorities: &Authorities) -> Result<LoadedConfig, TrustError> {
    let all = || LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all().iter().find(|(of, known)| of == authorities && known.is_fresh()).cloned();
    if let Some((_, known)) = known {
        return Ok(known);
    }
    let known = LoadedConfig { config: Arc::new(load(authorities)?), loaded_at: Instant::now() };
    let mut all = all();
    all.retain(|(of, known)| of != authorities && known.is_fresh());
    all.push((authorities.clone(), known.clone()));
    Ok(known)
}

/// Loads the authorities.
pub(super) fn load(authorities: &Authorities) -> Result<ClientConfig, TrustError> {
    let mut roots = RootCertStore::empty();
    if !matches!(authorities, Authorities::Only(_)) {
        // Some of the system's certificates may be unsupported.
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

/// Adds the certificates in a configured file. Each of them must be valid, because the file has no other purpose.
fn add_of_house(path: &Path, roots: &mut RootCertStore) -> Result<(), TrustError> {
    let read = |source| TrustError::Read { path: path.to_owned(), source };
    for certificate in certificates(path)? {
        let added = roots.add(certificate.map_err(read)?);
        added.map_err(|source| TrustError::Certificate { path: path.to_owned(), source })?;
    }
    Ok(())
}

/// Returns the system's authorities, or those that environment variables name instead.
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

/// Checks a file of authorities, or a directory and its files; the entries of a directory are usually symlinks to other places.
fn check_named(path: &Path) -> Result<(), TrustError> {
    let refused = |path: &Path, error: UntrustedFileError| match error {
        // A file that can't be read isn't used.
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

/// Reads the certificates of a file that must be out of reach of sandboxes.
fn certificates(path: &Path) -> Result<ReadIter<BufReader<File>, CertificateDer<'static>>, TrustError> {
    let opened = trusted_file::open(path)
        .map_err(|error| TrustError::Read { path: path.to_owned(), source: pem::Error::Io(error.into()) })?;
    Ok(CertificateDer::pem_reader_iter(opened))
}

/// Returns the certificates of the system's authorities, and of those in the given file, in PEM: for programs that should trust
/// the same as the host.
///
/// # Errors
/// [`TrustError`], if the file can't be read.
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

/// Returns a certificate in PEM (RFC 7468).
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
