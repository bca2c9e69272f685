//! Certificate authority of one run, for hosts whose connections are intercepted (TLS interception).
//!
//! Only the run trusts it. Its key exists only in this process's memory and is gone with the run. Its certificates are valid
//! for the longest time that a run may reasonably last.

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

/// Certificate authority of one run.
pub struct InterceptionCa {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// One key for the certificates of all hosts: only the issuer's signature matters.
    key: KeyPair,
    shown: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

/// The authority or one of its certificates could not be made.
#[derive(Debug, thiserror::Error)]
#[error("can't make a certificate")]
pub struct InterceptionCaError {
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Validity before and after now. The sandbox's clock may be a little behind.
const BEFORE: SignedDuration = SignedDuration::from_hours(24);
const AFTER: SignedDuration = SignedDuration::from_hours(24 * 30);

/// Maximum number of remembered hosts. A run that requests more has certificates made again.
const MOST_SHOWN: usize = 256;

/// The only protocol that is offered (ALPN).
const PROTOCOL: &[u8] = b"http/1.1";

// === impl InterceptionCa ===

impl InterceptionCa {
    /// Makes the authority of a run.
    ///
    /// # Errors
    /// [`InterceptionCaError`], if no random key can be generated.
    pub fn new() -> Result<Self, InterceptionCaError> {
        let key = KeyPair::generate()?;
        let mut params = params(&format!("Belljar run {}", Uuid::new_v4()))?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.der().clone();
        let (issuer, key) = (Issuer::new(params, key), KeyPair::generate()?);
        Ok(Self { issuer, certificate, key, shown: Mutex::default() })
    }

    /// Returns the trust bundle of the run in PEM: the host's authorities, those in the given file, and this authority.
    ///
    /// # Errors
    /// [`TrustError`], if the file can't be read.
    pub fn bundle(&self, besides: Option<&Path>) -> Result<String, TrustError> {
        let mut all = authorities_of_system(besides)?;
        all.push_str(&pem(&self.certificate));
        Ok(all)
    }

    /// Returns the TLS configuration of a server that poses as this host.
    pub(super) fn shows(&self, host: &Host) -> Result<Arc<ServerConfig>, InterceptionCaError> {
        // No panic can leave the map half changed.
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

    fn config(&self, host: &Host) -> Result<ServerConfig, InterceptionCaError> {
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

/// Parameters of a certificate that becomes valid a little before now. `name` is its common name, unless it is empty.
fn params(name: &str) -> Result<CertificateParams, InterceptionCaError> {
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
    // Without a serial number of its own it would get one from its key, which other certificates share.
    params.serial_number = Some(SerialNumber::from_slice(Uuid::new_v4().as_bytes()));
    Ok(params)
}

// === impl InterceptionCaError ===

impl From<rcgen::Error> for InterceptionCaError {
    fn from(source: rcgen::Error) -> Self {
        Self { source: source.into() }
    }
}

impl From<rustls::Error> for InterceptionCaError {
    fn from(source: rustls::Error) -> Self {
        Self { source: source.into() }
    }
}
