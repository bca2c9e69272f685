//! TLS to a server with an https URL, verified with the certificate authorities of the image: those of the system, or
//! of `SSL_CERT_FILE` and `SSL_CERT_DIR`.

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};

/// Configuration of all connections; read once, when the first server is called.
static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();

/// A connection that is encrypted when its first byte is written.
pub(super) fn open(stream: TcpStream, host: &str) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let config = CONFIG.get_or_init(config).as_ref().map_err(|error| io::Error::other(error.as_str()))?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

fn config() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(
            "no CA certificates found: install ca-certificates in the image, or set SSL_CERT_FILE".to_owned()
        );
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
