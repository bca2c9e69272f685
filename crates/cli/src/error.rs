//! Errors outside of a job, each with a hint how to resolve it.

mod hints;

use crate::client::ClientError;
use crate::command::job::ArtifactError;
use crate::command::mcp::{TokenFileError, ToolsError};
use crate::command::plain;
use crate::output::quoted;
use crate::trust_review::{asked, listed};
use belljar_agent::program::ProgramError;
use belljar_confine::launch::LaunchError;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::ApprovalId;
use belljar_contract::problem::{Problem, Problems};
use belljar_egress::git::PinError;
use belljar_egress::inference::models::NoCredentialError;
use belljar_egress::spend::{SpendError, TooManyDaysError};
use belljar_execution::serving::ServeError;
use belljar_execution::tls_interception::TlsInterceptionError;
use belljar_files::directory::DirectoryError;
use belljar_files::host_path::HostPathError;
use belljar_gateway::StdioError;
use belljar_git::BaseError;
use belljar_git::clone::CloneError;
use belljar_git::pull_request::PlanError;
use belljar_journal::RunJournalError;
use belljar_node::api::token::TokenError;
use belljar_node::daemon::DaemonError;
use belljar_policy::git::InvalidBranch;
use belljar_policy::grant::GrantRefusal;
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::config::{BackendName, Mistakes};
use belljar_sandbox::enclosure::EnclosureError;
use belljar_sandbox::kept::{KeptError, RetentionError};
use belljar_sandbox::native::StartError;
use belljar_sandbox::run::RunError;
use belljar_sandbox::session::{FinishCommitError, Refusal, SessionError};
use belljar_sandbox::state::StateError;
use belljar_sandbox::workspace::apply::ApplyError;
use belljar_sandbox::workspace::changes::ChangesError;
use belljar_store::approvals::ApprovalError;
use belljar_store::audit::AuditError;
use belljar_store::audit::export::ExportError;
use belljar_store::database::DatabaseError;
use belljar_store::grants::{GrantKeyError, IssueGrantError};
use belljar_store::trust::RecordError;
use belljar_tools::registry::RegisterError;
use hints::{
    CONFLICT_HINT, DAMAGED_HINT, HANDOFF_HINT, LIVING_HINT, NO_BASIS_HINT, TAKEN_HINT, UNAVAILABLE_HINT,
    kept_hint, plan_hint, refusal_hint, start_hint,
};
use rustix::io::Errno;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code if belljar itself failed.
pub(crate) const OWN_FAILURE: u8 = 125;
/// Exit code for malformed input: nothing ran.
pub(crate) const BAD_INPUT: u8 = 2;
/// Exit code for an action that isn't allowed, or that lacks a required approval.
pub(crate) const DENIED: u8 = 3;
/// Exit code for changes that conflict: they are kept, and all others are applied.
pub(crate) const CONFLICT: u8 = 5;
/// Exit code for a timeout.
pub(crate) const OUT_OF_TIME: u8 = 124;

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// Something about an agent can't be recorded.
    #[error("can't record something about an agent")]
    Trust(#[from] RecordError),
    /// A node can't go on.
    #[error("the process that launches sandboxes is gone; start the node again")]
    LauncherGone,
    /// The command line is invalid.
    #[error("{message}")]
    Usage { message: String },
    /// A file can't be read.
    #[error("can't read {}", crate::output::path(path))]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A file can't be written.
    #[error("can't write {}", crate::output::path(path))]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The state directory can't be used.
    #[error("can't use the state directory {}", crate::output::path(path))]
    StateDirectory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A document is no valid job.
    #[error("{name} is no job")]
    Invalid { name: String, problems: Problems },
    /// A request to a node failed.
    #[error(transparent)]
    Node(#[from] ClientError),
    /// An output of a job can't be taken.
    #[error("can't take {path}")]
    Artifact {
        path: String,
        #[source]
        source: ArtifactError,
    },
    /// The tools can't be set up.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// A client can't be served.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// A token can't be used.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// The address can't be listened on.
    #[error("can't listen at {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The daemon can't be started.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The daemon's token can't be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The runtime for serving can't be started.
    #[error("can't serve")]
    Runtime {
        #[source]
        source: std::io::Error,
    },
    /// Standard output can't be written.
    #[error("can't write to standard output")]
    Output {
        #[source]
        source: std::io::Error,
    },
    /// The sandbox can't be watched.
    #[error("can't watch the sandbox")]
    Watch {
        #[source]
        source: Errno,
    },
    /// A sandbox of a chosen backend can't be made or used.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The launcher can't be started.
    #[error("can't start a launcher")]
    Launcher(#[from] LaunchError),
    /// An option is for sandboxes of another backend.
    #[error("{option} is for the native backend, not for {backend}")]
    NotOfBackend { option: &'static str, backend: BackendName },
    /// Models can't be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Inspection(#[from] TlsInterceptionError),
    /// The record of the calls is not completely on disk.
    #[error(transparent)]
    Book(#[from] RunJournalError),
    /// A repository can't be cloned.
    #[error(transparent)]
    Clone(#[from] CloneError),
    /// The requested clone doesn't exist.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// The branch can't be pushed to.
    #[error("can't push there")]
    Branch {
        #[source]
        source: InvalidBranch,
    },
    /// A pull request can't be opened.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An agent's program can't be started in a sandbox.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A configuration with mistakes.
    #[error("{} has mistakes", crate::output::path(path))]
    Config {
        path: PathBuf,
        #[source]
        source: Mistakes,
    },
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    HostPath(#[from] HostPathError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A session can't be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A commit that was interrupted can't be finished.
    #[error(transparent)]
    Interrupted(#[from] FinishCommitError),
    /// A session can't be started.
    #[error("can't begin a session: {why}")]
    NoSession {
        /// Reason reported by its keeper.
        why: String,
        /// True if the reason is that the backend isn't available here.
        lacks_backend: bool,
    },
    /// The changes of a command can't be reported.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Kept changes can't be used.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The retention of kept changes can't be read or set.
    #[error(transparent)]
    Retention(#[from] RetentionError),
    /// An approval of a call can't be requested or answered.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The user at the terminal did not answer an approval; it stays pending.
    #[error("approval {id} was not answered, and goes on waiting")]
    NotApproved { id: ApprovalId },
    /// A database of this machine can't be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A tool can't be registered with the others.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The audit log can't be used.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The audit log can't be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The audit log fails verification, so it proves nothing.
    #[error("the audit log was modified after it was written, so it can't be used for billing")]
    NoBasis {
        #[source]
        source: AuditError,
    },
    /// A record of a call can't be read.
    #[error("record {sequence} of the audit log is no readable call record")]
    Call {
        sequence: u64,
        #[source]
        source: serde_json::Error,
    },
    /// A record of the web can't be read.
    #[error("record {sequence} of the audit log is no readable record of network access")]
    Passage {
        sequence: u64,
        #[source]
        source: serde_json::Error,
    },
    /// The spend logs of an account can't be obtained.
    #[error(transparent)]
    Spend(#[from] SpendError),
    /// The requested range has too many days.
    #[error(transparent)]
    Days(#[from] TooManyDaysError),
    /// The grant doesn't cover the run. The refusal is recorded.
    #[error("{}: {refusal}", refusal.code())]
    NotGranted {
        /// Reason of the refusal.
        refusal: GrantRefusal,
    },
    /// A grant can't be issued.
    #[error(transparent)]
    IssueGrant(#[from] IssueGrantError),
    /// The key that signs grants can't be used.
    #[error(transparent)]
    GrantKey(#[from] GrantKeyError),
    /// The credential of a model's provider is missing.
    #[error(transparent)]
    NoCredential(#[from] NoCredentialError),
}

// === impl CliError ===

impl CliError {
    pub(crate) fn usage(message: String) -> Self {
        Self::Usage { message }
    }

    pub(crate) fn read(path: &Path, source: std::io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn output(source: std::io::Error) -> Self {
        Self::Output { source }
    }

    /// The error and its causes, on one line.
    pub(crate) fn chain(&self) -> String {
        belljar_contract::text::with_causes(self)
    }

    /// The error for a program: `error` with its message, its hint, its exit code and the paths that take a yes.
    pub(crate) fn document(&self) -> serde_json::Value {
        let asking = asked(self).unwrap_or_default();
        serde_json::json!({
            "error": {
                "message": self.chain(),
                "hint": self.hint(),
                "exit_code": self.exit_code(),
                "gains_trust": asking,
            }
        })
    }

    /// Prints the error with its hint and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        ExitCode::from(self.report_code())
    }

    /// Prints the error with its hint and gives the exit code as a number.
    pub(crate) fn report_code(&self) -> u8 {
        let problems = self.problems();
        match self {
            // The node's detail text repeats the problems.
            Self::Node(ClientError::Refused { problem }) if !problems.is_empty() => {
                crate::output::errln!("belljar: {}", plain(&problem.title));
            }
            // These messages contain text of a node or a job, so they are escaped.
            Self::Node(_) | Self::Artifact { .. } => {
                crate::output::errln!("belljar: {}", plain(&self.chain()));
            }
            // These have lines of their own.
            Self::Usage { .. } | Self::Config { .. } => crate::output::errln!("belljar: {}", self.chain()),
            // A name in the message can't begin another line.
            _ => crate::output::errln!("belljar: {}", quoted(&self.chain())),
        }
        for problem in problems {
            crate::output::errln!("  {}", plain(&problem.path));
            crate::output::errln!("    found     {}", plain(&problem.found));
            crate::output::errln!("    expected  {}", plain(&problem.expected));
        }
        crate::output::err!("{}", listed(&asked(self).unwrap_or_default()));
        if let Some(hint) = self.hint() {
            crate::output::errln!("\nHint: {hint}");
        }
        self.exit_code()
    }

    /// The failure code of a job that was not run for this: what was asked for can't be, or Belljar has failed.
    pub(crate) fn failure_code(&self) -> FailureCode {
        match self {
            Self::Usage { .. } | Self::Config { .. } | Self::Invalid { .. } | Self::Read { .. } => {
                FailureCode::SchemaValidation
            }
            Self::Run(RunError::Sandbox(EnclosureError::Start(
                StartError::Weaker { .. } | StartError::NoLandlock,
            )))
            | Self::Start(StartError::Weaker { .. } | StartError::NoLandlock) => FailureCode::NodeFailure,
            _ => FailureCode::InternalError,
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Invalid { .. } | Self::Config { .. } | Self::Plan(_) => BAD_INPUT,
            Self::Node(error) if error.is_bad_input() => BAD_INPUT,
            Self::Approval(
                ApprovalError::Unknown { .. }
                | ApprovalError::Decided { .. }
                | ApprovalError::Expired { .. }
                | ApprovalError::OtherArguments { .. }
                | ApprovalError::NotWhole { .. }
                | ApprovalError::Reason,
            ) => BAD_INPUT,
            Self::NotApproved { .. } => DENIED,
            _ if asked(self).is_some() => DENIED,
            Self::Session(SessionError::Refused(Refusal::Unshown { .. })) => DENIED,
            Self::Session(SessionError::Refused(Refusal::Partly { .. })) => CONFLICT,
            Self::Branch { .. } | Self::Clone(CloneError::Pin(PinError::Denied(_))) => DENIED,
            _ => OWN_FAILURE,
        }
    }

    /// Every mistake in what was asked for.
    fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid { problems, .. } => problems.as_slice(),
            Self::Node(ClientError::Refused { problem }) => &problem.problems,
            _ => &[],
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Run(RunError::Sandbox(EnclosureError::Start(error))) | Self::Start(error) => {
                start_hint(error)
            }
            Self::Backend(BackendError::Unavailable { .. }) | Self::NoSession { lacks_backend: true, .. } => {
                Some(UNAVAILABLE_HINT)
            }
            Self::Backend(BackendError::Weaker { .. }) => Some(
                "leave out the limit or layer that it can't give, or choose another backend; \
                 --isolation prints what it gives",
            ),
            Self::Apply(ApplyError::Handoff { .. })
            | Self::Kept(KeptError::Apply(ApplyError::Handoff { .. })) => Some(HANDOFF_HINT),
            Self::Kept(error) => kept_hint(error),
            Self::Apply(ApplyError::Conflict { .. }) => {
                Some("run the job again on the files as they are now; nothing was applied")
            }
            Self::Session(SessionError::Refused(refusal)) => refusal_hint(refusal),
            Self::Interrupted(FinishCommitError::Apply(ApplyError::Conflict { .. })) => Some(CONFLICT_HINT),
            Self::Audit(AuditError::Damaged { .. })
            | Self::Book(RunJournalError::Audit(AuditError::Damaged { .. }))
            | Self::Export(ExportError::Log(AuditError::Damaged { .. })) => Some(DAMAGED_HINT),
            Self::Program(ProgramError::NotFound { .. }) => Some(
                "`belljar agents` tells which are installed; on PATH, directories are passed over that a sandbox or another user can write",
            ),
            Self::Clone(CloneError::Pin(PinError::Denied(_))) => Some(
                "--allow-host HOST or --allow-network NETWORK, or `git` in the configuration, lets git connect to hosts of your own network",
            ),
            Self::Plan(error) => plan_hint(error),
            Self::NoBasis { .. } => Some(NO_BASIS_HINT),
            Self::Node(error) => error.hint(),
            Self::Daemon(DaemonError::Taken { .. }) => Some(TAKEN_HINT),
            Self::Daemon(DaemonError::Living { .. }) => Some(LIVING_HINT),
            Self::Artifact { source: ArtifactError::Exists, .. } => Some("--force replaces it"),
            Self::Spend(SpendError::NoDatabase { .. }) => Some(
                "LiteLLM writes spend logs when it has DATABASE_URL; what was reported is in `belljar usage list`",
            ),
            Self::Days(_) => Some("--run compares the calls of one run"),
            Self::State(_) | Self::Run(RunError::State(_)) => {
                Some("set BELLJAR_STATE_DIR to a directory that you may write")
            }
            _ => None,
        }
    }
}
