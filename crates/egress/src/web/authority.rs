//! Who shows itself to one run for the hosts whose connections are looked into.
//!
//! The run trusts this authority, and nobody else does. Its key is in this process's memory alone, and gone with the run; the
//! certificates are for as long as a run may reasonably last.

use crate::upstream::{TrustError, authorities_of_system, pem};
use belljar_policy::egress::Host;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// An authority of one run's.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// One for all hosts: it is who signs that counts.
    key: KeyPair,
    shown: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

/// There is no authority, or nothing for it to show.
#[derive(Debug, thiserror::Error)]
#[error("can't make a certificate")]
pub struct AuthorityError {
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The clock of whoever looks may be a little behind.
const BEFORE: SignedDuration = SignedDuration::from_hours(24);
const AFTER: SignedDuration = SignedDuration::from_hours(24 * 30);

/// So many hosts are remembered; whoever asks for more has certificates made again.
const MOST_SHOWN: usize = 256;

/// What is spoken, and nothing else.
const PROTOCOL: &[u8] = b"http/1.1";

// === impl Authority ===

impl Authority {
    /// One for a run.
    ///
    /// # Errors
    /// [`AuthorityError`], when there is nothing random to make a key of.
    pub fn new() -> Result<Self, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = params(&format!("Belljar run {}", Uuid::new_v4()))?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.der().clone();
        let (issuer, key) = (Issuer::new(params, key), KeyPair::generate()?);
        Ok(Self { issuer, certificate, key, shown: Mutex::default() })
    }

    /// Whom the run is to trust, as a text of PEM: whoever the host does, those in a file besides, and this authority.
    ///
    /// # Errors
    /// [`TrustError`] when there is a file and it can't be read.
    pub fn bundle(&self, besides: Option<&Path>) -> Result<String, TrustError> {
        let mut all = authorities_of_system(besides)?;
        all.push_str(&pem(&self.certificate));
        Ok(all)
    }

    /// What a server shows that is taken for that host.
    pub(super) fn shows(&self, host: &Host) -> Result<Arc<ServerConfig>, AuthorityError> {
        // Nothing in there is ever half done.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = shown.get(host) {
            return Ok(Arc::clone(config));
        }
        if shown.len() >= MOST_SHOWN {
            shown.clear();
        }
        let config = Arc::new(self.config(host)?);
        shown.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn config(&self, host: &Host) -> Result<ServerConfig, AuthorityError> {
        let (name, mut params) = match host {
            Host::Name(name) => (SanType::DnsName(name.as_str().try_into()?), params("")?),
            Host::Address(address) => (SanType::IpAddress(*address), params("")?),
        };
        params.subject_alt_names = vec![name];
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&self.key, &self.issuer)?;
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let chain = vec![certificate.der().clone(), self.certificate.clone()];
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key.into())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(config)
    }
}

/// A certificate that begins a little before now, and is called that if it is called anything.
fn params(name: &str) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::new(Vec::new())?;
    let date = |timestamp: Timestamp| {
        let date = timestamp.to_zoned(TimeZone::UTC).date();
        let part = |number: i8| u8::try_from(number).unwrap_or(1);
        date_time_ymd(date.year().into(), part(date.month()), part(date.day()))
    };
    let now = Timestamp::now();
    (params.not_before, params.not_after) = (date(now - BEFORE), date(now + AFTER));
    params.distinguished_name = DistinguishedName::new();
    if !name.is_empty() {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    // Without one it would be that of its key, which others have, too.
    params.serial_number = Some(SerialNumber::from_slice(Uuid::new_v4().as_bytes()));
    Ok(params)
}

// === impl AuthorityError ===

impl From<rcgen::Error> for AuthorityError {
    fn from(source: rcgen::Error) -> Self {
        Self { source: source.into() }
    }
}

impl From<rustls::Error> for AuthorityError {
    fn from(source: rustls::Error) -> Self {
        Self { source: source.into() }
    }
}
