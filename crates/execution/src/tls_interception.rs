//! TLS interception for the web of one run: a certificate authority, and the sandbox's trust in it.

use belljar_egress::upstream::TrustError;
use belljar_egress::web::config::WebConfig;
use belljar_egress::web::interception_ca::{InterceptionCa, InterceptionCaError};
use belljar_egress::web::live::LivePolicy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The interception authority of one run, and the CA bundle for its sandbox.
#[derive(Clone)]
pub struct TlsInterception {
    /// The authority that issues certificates to the run.
    pub authority: Arc<InterceptionCa>,
    bundle: Arc<str>,
}

/// Reasons why interception can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsInterceptionError {
    /// The authority can't be made.
    #[error("connections can't be looked into")]
    Authority(#[from] InterceptionCaError),
    /// The host's CA certificates can't be read.
    #[error("cannot read the trusted CA certificates for a sandbox")]
    Trust(#[from] TrustError),
}

/// Path of the CA bundle, below the sandbox's home.
const BELOW_HOME: &str = ".belljar/authorities.pem";

// === impl TlsInterception ===

impl TlsInterception {
    /// Returns the interception of a run that begins with this configuration; `None` if no rule intercepts TLS.
    ///
    /// # Errors
    /// [`TlsInterceptionError`].
    pub fn of(config: &WebConfig) -> Result<Option<Self>, TlsInterceptionError> {
        if !config.is_inspecting() {
            return Ok(None);
        }
        let authority = InterceptionCa::new()?;
        let bundle = authority.bundle(config.authorities.as_deref())?;
        Ok(Some(Self { authority: Arc::new(authority), bundle: bundle.into() }))
    }

    /// Returns the interception by the current state of a policy that may change later.
    ///
    /// # Errors
    /// [`TlsInterceptionError`].
    pub fn of_live(policy: &LivePolicy) -> Result<Option<Self>, TlsInterceptionError> {
        Self::of(&policy.current().config)
    }

    /// Replaces the CA bundle in a sandbox request that was copied from another sandbox's, which trusts the other one's
    /// authority.
    pub fn furnish_anew(&self, env: &mut BTreeMap<String, String>, home: &mut BTreeMap<String, String>) {
        home.remove(BELOW_HOME);
        self.furnish(env, home);
    }

    /// Has the sandbox trust the authority: adds a CA bundle to its home, and the variables that point clients to it. The
    /// bundle has no secrets. Entries that are there already take precedence.
    pub fn furnish(&self, env: &mut BTreeMap<String, String>, home: &mut BTreeMap<String, String>) {
        home.entry(BELOW_HOME.to_owned()).or_insert_with(|| self.bundle.to_string());
        let place = format!("{}/{BELOW_HOME}", belljar_sandbox::native::HOME);
        for (name, value) in belljar_sandbox::hatch::trusting(&place) {
            env.entry(name.to_owned()).or_insert(value);
        }
    }
}
