//! The specification of a run, and the trait of its observers.

use crate::policy_file::{OpenPolicy, PolicyChange};
use crate::tls_interception::TlsInterception;
use belljar_contract::inference::CallRecord;
use belljar_egress::identity::CallMetadata;
use belljar_egress::inference::config::InferenceConfig;
use belljar_files::host_path::HostPath;
use belljar_sandbox::provision::Provision;
use std::ffi::OsString;
use std::time::Duration;

/// Specification of a run.
#[derive(Clone)]
pub struct OnceSpec {
    /// The program and its arguments, passed on unchanged, without a shell.
    pub argv: Vec<OsString>,
    /// Number of the attempt.
    pub attempt: u32,
    /// The workspace directory; the program works on a copy.
    pub source: HostPath,
    /// Content of `/workspace/.cogni/messages.json`, if there is one.
    pub messages: Option<Vec<u8>>,
    /// Provision of its sandbox, besides the hatches for `models` and `web`.
    pub provision: Provision,
    /// Models that it may call, if any.
    pub models: Option<InferenceConfig>,
    /// Metadata of its model calls. The grant's user takes precedence over a user in it.
    pub metadata: CallMetadata,
    /// Web access, if it has any.
    pub web: Option<OnceWeb>,
    /// Limits of the run.
    pub limits: OnceLimits,
}

/// Web access of a run, and the receiver of policy changes.
#[derive(Clone)]
pub struct OnceWeb {
    /// The policy.
    pub policy: OpenPolicy,
    /// Called for each change of the policy file.
    pub tell: fn(&PolicyChange),
    /// TLS interception, set when it is prepared.
    pub inspection: Option<TlsInterception>,
}

/// Limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct OnceLimits {
    /// Maximum duration.
    pub max_runtime: Duration,
    /// Maximum size of both output streams together, in bytes. Further output is read and dropped.
    pub max_output_bytes: usize,
}

/// Observer of a run.
pub trait RunObserver {
    /// The program wrote to standard output. The bytes are untrusted.
    fn printed(&mut self, _bytes: &[u8]) {}
    /// A model call has ended.
    fn called(&mut self, _call: &CallRecord) {}
    /// Returns true if the run is to be canceled.
    fn is_canceled(&self) -> bool {
        false
    }
}
