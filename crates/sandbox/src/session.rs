//! Sessions: sandboxes that live on over many commands, each kept by a process of its own.
//!
//! ```text
//! belljar session exec ── Exec, streams ──► keeper ──► Sandbox::exec
//!                      ◄── Started, terminal ──┤
//!                      ◄── Ended: outcome ─────┤
//! ```
//! The keeper owns the sandbox: when it ends, for whatever reason, nothing of the sandbox is left. It ends on request,
//! after an idle time, and when the session's lifetime is over. It listens on a socket in the run's folder and answers only
//! its own user. A session whose tools a configuration has in several backends has a sandbox of each, all on the same
//! files.

mod client;
mod fork;
mod interrupted;
mod keeper;
mod protocol;

pub use client::{
    PendingCommit, SessionClient, SessionDescription, SessionError, SessionExecution, describe_all, find,
    list,
};
pub use fork::{ForkRequest, RequestAdapter, keep_fork};
pub use interrupted::{FinishCommitError, InterruptedCommit, has_commit, interrupted};
pub use keeper::{HatchServer, KEEPER, KeeperError, KeeperRequest, SandboxGroupRequest, keep};
pub use protocol::{
    CommitOutcome, Load, PathApproval, ProgramOutcome, ProgramStreams, Refusal, Review, UncommittedChanges,
};

use crate::config::BackendName;
use belljar_contract::category::Category;
use belljar_contract::programs::ProgramList;
use belljar_policy::access::compiled::{SandboxAccess, WebAccess};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Description of a session, as it is written in its run's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Id of the session, which is that of its run.
    pub id: String,
    /// Name that its owner gave it.
    pub name: Option<String>,
    /// Which backend makes its sandbox; of several, the one for commands of people.
    pub backend: BackendName,
    /// Sandboxes of the session, if it has different ones for different categories of tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub divisions: Vec<SandboxGroup>,
    /// Time at which it began.
    pub created_at: Timestamp,
    /// Description of its workspace, for people.
    pub workspace: String,
    /// The directory that its workspace is a copy of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<PathBuf>,
    /// The session whose workspace it began with, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// The file with the policy by which it reaches the web, if it may reach any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<PathBuf>,
    /// Effects of its access level, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Box<SandboxAccess>>,
    /// The only programs that can be started in it, if not all can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<ProgramList>,
    /// Maximum time without a running command, after which it ends.
    pub idle_limit: Duration,
    /// Maximum lifetime.
    pub lifetime_limit: Duration,
}

/// A sandbox of a session that has several. All of them work on the same files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxGroup {
    /// Which backend makes it.
    pub backend: BackendName,
    /// The tools of which categories work in it.
    pub categories: BTreeSet<Category>,
}

impl SandboxGroup {
    /// The number of the one in which tools of that category work: the first, if it is in none.
    pub fn number_for(divisions: &[Self], category: Category) -> usize {
        divisions.iter().position(|division| division.categories.contains(&category)).unwrap_or_default()
    }
}

impl Session {
    /// Which backend makes the sandbox for tools of that category; without one, that for commands of people.
    pub fn backend_for(&self, category: Option<Category>) -> BackendName {
        self.divisions.get(self.division_for(category)).map_or(self.backend, |division| division.backend)
    }

    /// The number of that sandbox, from 0 on.
    fn division_for(&self, category: Option<Category>) -> usize {
        category.map_or(0, |category| SandboxGroup::number_for(&self.divisions, category))
    }

    /// Returns true if it has a hatch to the web: a policy was named or its level has one, and its level doesn't exclude
    /// it.
    pub fn reaches_the_web(&self) -> bool {
        match &self.access {
            Some(access) => access.web != WebAccess::None,
            None => self.egress.is_some(),
        }
    }
}

/// The name of a session's socket in its run's folder.
const SOCKET: &str = "session.sock";

/// The name of its description there.
const DESCRIPTION: &str = "session.json";

/// Name of the file with the record of a commit that is under way.
const COMMIT: &str = "commit.json";
