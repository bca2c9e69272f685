//! Settings of a daemon.

use super::McpConfig;
use crate::api::token::Token;
use crate::delivery::Callbacks;
use crate::images::ImageSettings;
use crate::machine;
use crate::managed::ManagedSettings;
use crate::traces::TraceSettings;
use belljar_contract::isolation::RequiredLayers;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::policy_file::PolicyFile;
use belljar_files::host_path::HostPath;
use belljar_policy::access::AccessRules;
use belljar_policy::approval::ApprovalRules;
use belljar_policy::git::GitRules;
use belljar_policy::trust::TrustConfig;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::state::StateDirectory;
use belljar_store::database::Location;
use belljar_tools::builtin::configured::config::ToolsConfig;
use std::net::SocketAddr;
use std::num::NonZero;
use std::time::Duration;

/// Settings of a daemon.
pub struct Settings {
    /// The node's name for orchestrators. Default: the host name.
    pub node_slug: String,
    /// Address that it listens on.
    pub listen: SocketAddr,
    /// State directory.
    pub state: StateDirectory,
    /// Database of jobs. Default: `node.db` in the state directory.
    pub database: Location,
    /// The token that the orchestrator presents, without `Bearer`.
    pub token: Token,
    /// The runner program, which is mounted into sandboxes.
    pub runner: HostPath,
    /// Maximum number of concurrent jobs. Default: two per processor.
    pub max_concurrency: usize,
    /// Maximum number of waiting jobs. Default: 1000.
    pub max_waiting: u64,
    /// Time limits of jobs.
    pub timeouts: Timeouts,
    /// Limits of sessions.
    pub sessions: SessionLimits,
    /// Bucket for artifacts, as `s3://BUCKET/PREFIX`, with its settings from the environment; `None` for a folder of the
    /// state directory.
    pub bucket: Option<Bucket>,
    /// Retention of job results.
    pub retention: Retention,
    /// Receiver of job callbacks, if there is one.
    pub callbacks: Option<Callbacks>,
    /// Models that jobs may call, if there are any.
    pub models: Option<InferenceConfig>,
    /// The web policy file; without one, no request to the web is allowed.
    pub egress: Option<PolicyFile>,
    /// Billing account of model calls, as providers know it. Default: `local`.
    pub billing_account_id: String,
    /// Maximum size of a request body, in bytes. Default: 10 MiB.
    pub max_request_bytes: usize,
    /// Allowed images, and the container engine.
    pub images: ImageSettings,
    /// The trace collector, if there is one.
    pub traces: Option<TraceSettings>,
    /// Services that requests are proxied to.
    pub managed: ManagedSettings,
    /// Access of remote agents to the node's tools.
    pub mcp: McpConfig,
    /// Timeouts and retention of approvals.
    pub approvals: ApprovalRules,
    /// Access rules of agents, if there are any.
    pub access: Option<AccessRules>,
    /// Rules by which agents earn trust, if there are access rules.
    pub trust: TrustConfig,
    /// Databases, channels and metrics of the configured tools.
    pub tools: ToolsConfig,
    /// Remotes that agents may clone and push, and hosts that git may connect to.
    pub git: GitRules,
    /// Resource limits of each sandbox with the node's own programs.
    pub limits: Limits,
    /// Isolation layers that such a sandbox must have.
    pub required: RequiredLayers,
}

/// A bucket for artifacts.
pub struct Bucket {
    /// Its URL.
    pub url: String,
    /// Environment variables with its endpoint and credentials. Some are secrets.
    pub variables: Vec<(String, String)>,
}

/// Retention of job results and all other records of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Retention from the acknowledgement of the result on. Default: 1 day.
    pub acknowledged: Duration,
    /// Retention from the job's end on, if the result is not acknowledged. Default: 30 days.
    pub unacknowledged: Duration,
}

/// Time limits of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Time limit of a job that requests none. Default: 1 h.
    pub default: Duration,
    /// Maximum time limit of any job. Default: 3 h.
    pub max: Duration,
    /// If true, a running job may be granted more time, up to `max` in all. Default: true.
    pub may_extend: bool,
}

/// Limits of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Maximum number of concurrent sessions. Default: 100.
    pub max: usize,
    /// Maximum lifetime of a session. Default: 3 h.
    pub max_lifetime: Duration,
    /// Idle timeout of a session that requests none. Default: 15 min.
    pub idle_timeout: Duration,
}

/// Reasons why a job gets no more time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExtensionError {
    /// The node extends no job's time limit.
    #[error("this node gives no job more time than it had")]
    Never,
    /// The job's time limit is over already.
    #[error("the time that it had is over")]
    Late,
    /// The extended time limit would exceed the maximum.
    #[error("at most {left_seconds} s more can be had")]
    TooMuch {
        /// Maximum extension, in seconds.
        left_seconds: u64,
    },
}

/// Default database file in the state directory.
const DATABASE: &str = "node.db";

/// Default maximum size of a request body (`docs/contracts/job.md#j4.6`).
const MAX_REQUEST_BYTES: usize = 10 << 20;

/// Default billing account.
const LOCAL: &str = "local";

const MAX_WAITING: u64 = 1_000;

// === impl Settings ===

impl Settings {
    /// Returns the default settings, with a database in the state directory and two jobs per processor.
    pub fn new(listen: SocketAddr, state: StateDirectory, token: Token, runner: HostPath) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            node_slug: machine::host_name(),
            listen,
            database: Location::File(state.path().join(DATABASE)),
            state,
            token,
            runner,
            max_concurrency: 2 * processors,
            max_waiting: MAX_WAITING,
            timeouts: Timeouts::default(),
            sessions: SessionLimits::default(),
            bucket: None,
            retention: Retention::default(),
            callbacks: None,
            models: None,
            egress: None,
            billing_account_id: LOCAL.to_owned(),
            max_request_bytes: MAX_REQUEST_BYTES,
            images: ImageSettings::default(),
            traces: None,
            managed: ManagedSettings::default(),
            mcp: McpConfig::default(),
            approvals: ApprovalRules::default(),
            access: None,
            trust: TrustConfig::default(),
            tools: ToolsConfig::default(),
            git: GitRules::default(),
            limits: Limits::default(),
            required: RequiredLayers::default(),
        }
    }
}

// === impl Timeouts ===

impl Timeouts {
    /// Returns the time limit of a job that requests that limit.
    pub fn allow(self, asked: Option<Duration>) -> Duration {
        asked.unwrap_or(self.default).min(self.max)
    }

    /// Checks that a job with the time limit `has` may get `asked` more.
    ///
    /// # Errors
    /// [`ExtensionError`] when it may not.
    pub fn extend(self, has: Duration, asked: Duration) -> Result<(), ExtensionError> {
        let left = self.max.saturating_sub(has);
        match self.may_extend {
            false => Err(ExtensionError::Never),
            true if asked > left => Err(ExtensionError::TooMuch { left_seconds: left.as_secs() }),
            true => Ok(()),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(86_400);
        Self { acknowledged: DAY, unacknowledged: 30 * DAY }
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        const MAX: usize = 100;
        Self { max: MAX, max_lifetime: Duration::from_secs(10_800), idle_timeout: Duration::from_secs(900) }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { default: Duration::from_secs(3_600), max: Duration::from_secs(10_800), may_extend: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_timeout_is_capped_by_the_maximum() {
        let timeouts =
            Timeouts { default: Duration::from_secs(60), max: Duration::from_secs(90), may_extend: true };
        let allow = |asked: Option<u64>| timeouts.allow(asked.map(Duration::from_secs)).as_secs();
        assert_eq!([allow(None), allow(Some(5)), allow(Some(90)), allow(Some(1_000))], [60, 5, 90, 90]);
        let short = Timeouts { max: Duration::from_secs(30), ..timeouts };
        assert_eq!(short.allow(None).as_secs(), 30);
    }

    #[test]
    fn timeout_extension_is_limited_to_the_maximum() {
        let of = Duration::from_secs;
        let timeouts = Timeouts { default: of(60), max: of(90), may_extend: true };
        assert_eq!(timeouts.extend(of(60), of(30)), Ok(()));
        assert_eq!(timeouts.extend(of(60), of(31)), Err(ExtensionError::TooMuch { left_seconds: 30 }));
        assert_eq!(timeouts.extend(of(100), of(1)), Err(ExtensionError::TooMuch { left_seconds: 0 }));
        let never = Timeouts { may_extend: false, ..timeouts };
        assert_eq!(never.extend(of(60), of(1)), Err(ExtensionError::Never));
    }
}
