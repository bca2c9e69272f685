//! Certificate authority for tests.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Certificate authority with its file.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// Validity in years.
pub(crate) type Years = (i32, i32);

/// Valid for as long as this test will be run.
pub(crate) const NOW: Years = (2020, 2120);

// === impl Authority ===

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        limit(&mut params, NOW);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Returns the path of the certificate file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the configuration of a server with a certificate for that name.
    pub(crate) fn server(&self, name: &str, years: Years) -> ServerConfig {
        self.server_of(name, years, rustls::ALL_VERSIONS)
    }

    pub(crate) fn server_of(
        &self,
        name: &str,
        years: Years,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ServerConfig {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        limit(&mut params, years);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_protocol_versions(versions).unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![certificate.into()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}

fn limit(params: &mut CertificateParams, (from, to): Years) {
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
}
