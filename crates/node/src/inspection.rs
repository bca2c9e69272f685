//! What it takes for the web of one run to be looked into: an authority, and that the sandbox trusts it.

use belljar_egress::upstream::TrustError;
use belljar_egress::web::authority::{Authority, AuthorityError};
use belljar_egress::web::config::WebConfig;
use belljar_egress::web::live::LivePolicy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Both, for one run.
#[derive(Clone)]
pub struct Inspection {
    /// Who shows itself to the run.
    pub authority: Arc<Authority>,
    bundle: Arc<str>,
}

/// There is neither.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// No authority can be made.
    #[error("connections can't be looked into")]
    Authority(#[from] AuthorityError),
    /// It can't be told whom the host trusts.
    #[error("it can't be told whom a sandbox is to trust")]
    Trust(#[from] TrustError),
}

/// Where the sandbox has the file with everybody whom it trusts, below its home.
const BELOW_HOME: &str = ".belljar/authorities.pem";

// === impl Inspection ===

impl Inspection {
    /// What a run takes that begins with this configuration; nothing if no rule has anything looked into.
    ///
    /// # Errors
    /// [`InspectionError`].
    pub fn of(config: &WebConfig) -> Result<Option<Self>, InspectionError> {
        if !config.is_inspecting() {
            return Ok(None);
        }
        let authority = Authority::new()?;
        let bundle = authority.bundle(config.authorities.as_deref())?;
        Ok(Some(Self { authority: Arc::new(authority), bundle: bundle.into() }))
    }

    /// The same for a policy that may change later: what it says now counts.
    ///
    /// # Errors
    /// [`InspectionError`].
    pub fn of_live(policy: &LivePolicy) -> Result<Option<Self>, InspectionError> {
        Self::of(&policy.current().config)
    }

    /// The same for a sandbox that was asked for as another one was, which trusts that one's authority.
    pub fn furnish_anew(&self, env: &mut BTreeMap<String, String>, home: &mut BTreeMap<String, String>) {
        home.remove(BELOW_HOME);
        self.furnish(env, home);
    }

    /// Has the sandbox trust it: a file for its home, and the variables by which clients are told of that. There is nothing
    /// secret in it. What is in there already counts more.
    pub fn furnish(&self, env: &mut BTreeMap<String, String>, home: &mut BTreeMap<String, String>) {
        home.entry(BELOW_HOME.to_owned()).or_insert_with(|| self.bundle.to_string());
        let place = format!("{}/{BELOW_HOME}", belljar_sandbox::native::HOME);
        for (name, value) in belljar_sandbox::hatch::trusting(&place) {
            env.entry(name.to_owned()).or_insert(value);
        }
    }
}
