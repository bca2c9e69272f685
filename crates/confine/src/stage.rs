//! The stages of a launch, for error messages and for `--timings`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A stage of the launch, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Stage {
    /// `clone3`, until the first instruction of the child.
    Clone,
    /// The ids inside: the user namespace's maps.
    Identity,
    /// Files and directories of the host, found and checked.
    Sources,
    /// The new root and what it holds.
    Root,
    /// `/proc`.
    Proc,
    /// `/dev`.
    Devices,
    /// The old root left and gone.
    Pivot,
    /// The network namespace, made meanwhile, entered.
    Network,
    /// Resource limits.
    Limits,
    /// A terminal of its own, if one is wanted.
    Terminal,
    /// Landlock.
    Landlock,
    /// Capabilities gone, no way to new ones.
    Privileges,
    /// The system call filter.
    Seccomp,
    /// The program started.
    Exec,
}

/// Duration of each stage, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings(Vec<(Stage, Duration)>);

// === impl Stage ===

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 14] = [
        Self::Clone,
        Self::Identity,
        Self::Sources,
        Self::Root,
        Self::Proc,
        Self::Devices,
        Self::Pivot,
        Self::Network,
        Self::Limits,
        Self::Terminal,
        Self::Landlock,
        Self::Privileges,
        Self::Seccomp,
        Self::Exec,
    ];

    /// The stage's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Identity => "identity",
            Self::Sources => "sources",
            Self::Root => "root",
            Self::Proc => "proc",
            Self::Devices => "devices",
            Self::Pivot => "pivot",
            Self::Network => "network",
            Self::Limits => "limits",
            Self::Terminal => "terminal",
            Self::Landlock => "landlock",
            Self::Privileges => "privileges",
            Self::Seccomp => "seccomp",
            Self::Exec => "exec",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| *stage as u8 == byte)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Timings ===

impl Timings {
    /// The stages with their durations.
    pub fn iter(&self) -> impl Iterator<Item = (Stage, Duration)> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn push(&mut self, stage: Stage, duration: Duration) {
        self.0.push((stage, duration));
    }
}
