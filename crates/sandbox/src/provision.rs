//! Provision of a sandbox besides its workspace, independent of its backend and of the program in it.

use crate::hatch::Hatch;
use crate::limits::Limits;
use crate::spec::Lent;
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::programs::ProgramList;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Provision of a sandbox besides its workspace. The default is a sandbox with default limits and nothing else.
///
/// Requests for a job, a command, an agent or a session hold one and pass it on whole: a new option is a field here, a flag
/// where users say it, and its effect in each backend.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Provision {
    /// Host paths that are mounted read-only.
    pub lent: Vec<Lent>,
    /// Variables for every program in it.
    pub env: BTreeMap<String, String>,
    /// Files in its home that are there before anything runs, by their path below it.
    pub home: BTreeMap<String, String>,
    /// The only programs that can be started in it, besides the runner of a job; `None` for all programs.
    pub programs: Option<ProgramList>,
    /// Resource limits.
    pub limits: Limits,
    /// Isolation layers that must be in force, or the sandbox isn't made.
    pub required: RequiredLayers,
    /// Its hatches. The host gets their sockets.
    pub hatches: Vec<Hatch>,
}
