//! What a sandbox is asked to be, whichever backend builds it.

use belljar_confine::plan::HostPath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// A sandbox, before any backend has looked at it.
#[derive(Debug)]
pub struct SandboxSpec {
    /// What is at `/workspace`.
    pub workspace: Workspace,
    /// The directory that is `/job`, if a job runs.
    pub job: Option<HostPath>,
    /// What the host lends besides, read-only.
    pub lent: Vec<Lent>,
    /// An empty directory in memory that every layer but Landlock lets be written; for checking that Landlock doesn't.
    pub unlisted_scratch: Option<String>,
    /// Variables added to the sandbox's environment, which is otherwise made from nothing.
    pub env: BTreeMap<String, String>,
}

/// What is at `/workspace`.
#[derive(Debug)]
pub enum Workspace {
    /// Nothing: an empty directory in memory.
    Empty,
    /// A directory of the host, changed in place.
    Direct(HostPath),
    /// A directory of the host that is never changed; the changes go to layers of their own.
    Copy {
        /// The directory.
        source: HostPath,
        /// Takes the changes; empty at first.
        upper: HostPath,
        /// The kernel's scratch directory, beside `upper`.
        work: HostPath,
    },
}

/// A file or directory lent read-only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lent {
    /// What.
    pub path: HostPath,
    /// Where it is seen, relative to the sandbox's root.
    pub inside: String,
}

/// A program to run in a sandbox.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub argv: Vec<OsString>,
    /// Where it starts, absolute, as seen inside.
    pub directory: String,
}
