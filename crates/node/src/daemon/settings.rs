//! What a daemon is told: where, how much, for how long.

use super::McpConfig;
use crate::api::token::Token;
use crate::delivery::Callbacks;
use crate::images::ImageSettings;
use crate::machine;
use crate::managed::ManagedSettings;
use crate::traces::TraceSettings;
use crate::web::policy_file::PolicyFile;
use belljar_confine::plan::HostPath;
use belljar_contract::isolation::Required;
use belljar_egress::inference::config::InferenceConfig;
use belljar_policy::access::AccessRules;
use belljar_policy::approval::ApprovalRules;
use belljar_policy::trust::TrustConfig;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::state::State;
use belljar_store::database::Location;
use belljar_tools::builtin::configured::config::ToolsConfig;
use std::net::SocketAddr;
use std::num::NonZero;
use std::time::Duration;

/// What a daemon is told.
pub struct Settings {
    /// The name that orchestrators know it by.
    pub node_slug: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where it keeps what it makes.
    pub state: State,
    /// Where its jobs are kept.
    pub database: Location,
    /// What its orchestrator shows, without `Bearer`.
    pub token: Token,
    /// The program that is the runner inside.
    pub runner: HostPath,
    /// As many jobs run at once.
    pub max_concurrency: usize,
    /// As many may wait.
    pub max_waiting: u64,
    /// How long jobs may last.
    pub timeouts: Timeouts,
    /// How many sessions there may be, and for how long.
    pub sessions: SessionLimits,
    /// The bucket that artifacts go to, as `s3://BUCKET/PREFIX`, with what the environment says of it; nothing for a folder
    /// of the state.
    pub bucket: Option<Bucket>,
    /// How long results are kept.
    pub retention: Retention,
    /// Who is told of jobs; nobody if there is none.
    pub callbacks: Option<Callbacks>,
    /// Models that jobs may call; none where there are none.
    pub models: Option<InferenceConfig>,
    /// Where it stands what jobs may reach of the web; nothing, where there is no such file.
    pub egress: Option<PolicyFile>,
    /// Who pays for what jobs call, as providers know them.
    pub billing_account_id: String,
    /// The largest body of a request, in bytes.
    pub max_request_bytes: usize,
    /// Which images may be run, and in what.
    pub images: ImageSettings,
    /// Who collects traces; nobody if there is none.
    pub traces: Option<TraceSettings>,
    /// Services that requests are passed on to.
    pub managed: ManagedSettings,
    /// How agents elsewhere reach its tools.
    pub mcp: McpConfig,
    /// How long people are waited for who are asked about calls.
    pub approvals: ApprovalRules,
    /// By which rules its agents are judged; by none, if there are none.
    pub access: Option<AccessRules>,
    /// How its agents come to higher levels, where they are judged.
    pub trust: TrustConfig,
    /// What its tools may ask and tell besides.
    pub tools: ToolsConfig,
    /// What each sandbox of the node's own programs may use.
    pub limits: Limits,
    /// The layers without which no job runs there.
    pub required: Required,
}

/// A bucket for artifacts.
pub struct Bucket {
    /// Which.
    pub url: String,
    /// Variables that say where it is and who asks. Some are secrets.
    pub variables: Vec<(String, String)>,
}

/// How long the results of jobs are kept, with everything else of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// From when somebody has said that they have it.
    pub acknowledged: Duration,
    /// From the job's end, where nobody has.
    pub unacknowledged: Duration,
}

/// How long jobs may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// One that says nothing of it.
    pub default: Duration,
    /// Any.
    pub max: Duration,
    /// Whether one that runs may be given more time than it had, up to `max` in all.
    pub may_extend: bool,
}

/// How many sessions there may be, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// As many at once.
    pub max: usize,
    /// How long one may last.
    pub max_lifetime: Duration,
    /// How long nothing may be done in one that says nothing of it.
    pub idle_timeout: Duration,
}

/// A job gets no more time than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoExtension {
    /// No job does, here.
    #[error("this node gives no job more time than it had")]
    Never,
    /// Its time is over already.
    #[error("the time that it had is over")]
    Late,
    /// It would be more than any job may have.
    #[error("at most {left_seconds} s more can be had")]
    TooMuch {
        /// So many seconds it could have.
        left_seconds: u64,
    },
}

/// In its state directory, where nothing else is said.
const DATABASE: &str = "node.db";

/// The largest body of a request (`REQ-WORKER-0145`).
const MAX_REQUEST_BYTES: usize = 10 << 20;

/// Who pays where nobody is named.
const LOCAL: &str = "local";

const MAX_WAITING: u64 = 1_000;

// === impl Settings ===

impl Settings {
    /// What is usual, with a database in the state directory and two jobs for each processor.
    pub fn new(listen: SocketAddr, state: State, token: Token, runner: HostPath) -> Self {
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
            limits: Limits::default(),
            required: Required::default(),
        }
    }
}

// === impl Timeouts ===

impl Timeouts {
    /// How long a job may last that asks for so much.
    pub fn allow(self, asked: Option<Duration>) -> Duration {
        asked.unwrap_or(self.default).min(self.max)
    }

    /// Whether a job that may last so long may have so much more.
    ///
    /// # Errors
    /// [`NoExtension`] when it may not.
    pub fn extend(self, has: Duration, asked: Duration) -> Result<(), NoExtension> {
        let left = self.max.saturating_sub(has);
        match self.may_extend {
            false => Err(NoExtension::Never),
            true if asked > left => Err(NoExtension::TooMuch { left_seconds: left.as_secs() }),
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
    fn the_smaller_of_what_is_asked_for_and_what_may_be_holds() {
        let timeouts =
            Timeouts { default: Duration::from_secs(60), max: Duration::from_secs(90), may_extend: true };
        let allow = |asked: Option<u64>| timeouts.allow(asked.map(Duration::from_secs)).as_secs();
        assert_eq!([allow(None), allow(Some(5)), allow(Some(90)), allow(Some(1_000))], [60, 5, 90, 90]);
        let short = Timeouts { max: Duration::from_secs(30), ..timeouts };
        assert_eq!(short.allow(None).as_secs(), 30);
    }

    #[test]
    fn more_time_is_given_up_to_what_any_job_may_have() {
        let of = Duration::from_secs;
        let timeouts = Timeouts { default: of(60), max: of(90), may_extend: true };
        assert_eq!(timeouts.extend(of(60), of(30)), Ok(()));
        assert_eq!(timeouts.extend(of(60), of(31)), Err(NoExtension::TooMuch { left_seconds: 30 }));
        assert_eq!(timeouts.extend(of(100), of(1)), Err(NoExtension::TooMuch { left_seconds: 0 }));
        let never = Timeouts { may_extend: false, ..timeouts };
        assert_eq!(never.extend(of(60), of(1)), Err(NoExtension::Never));
    }
}
