//! The levels that trust leads through, and the steps between them.

use crate::access::AccessLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A level that an agent can be trusted with. What is put together for one agent (`custom`) is none: nothing leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// [`AccessLevel::Sandboxed`]
    Sandboxed,
    /// [`AccessLevel::Restricted`]
    Restricted,
    /// [`AccessLevel::Standard`]
    Standard,
    /// [`AccessLevel::Elevated`]
    Elevated,
}

/// A step up. There is none past a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transition {
    /// From `sandboxed` to `restricted`.
    SandboxedToRestricted,
    /// From `restricted` to `standard`.
    RestrictedToStandard,
    /// From `standard` to `elevated`, which takes a person's approval, whatever else there is.
    StandardToElevated,
}

// === impl TrustLevel ===

impl TrustLevel {
    /// All of them, the lowest first.
    pub const ALL: [Self; 4] = [Self::Sandboxed, Self::Restricted, Self::Standard, Self::Elevated];

    /// Its name on the wire and in configurations.
    pub const fn as_str(self) -> &'static str {
        self.access().as_str()
    }

    /// The level of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// What it lets an agent reach.
    pub const fn access(self) -> AccessLevel {
        match self {
            Self::Sandboxed => AccessLevel::Sandboxed,
            Self::Restricted => AccessLevel::Restricted,
            Self::Standard => AccessLevel::Standard,
            Self::Elevated => AccessLevel::Elevated,
        }
    }

    /// The next lower one; the lowest has none.
    pub const fn lower(self) -> Option<Self> {
        match self {
            Self::Sandboxed => None,
            Self::Restricted => Some(Self::Sandboxed),
            Self::Standard => Some(Self::Restricted),
            Self::Elevated => Some(Self::Standard),
        }
    }

    /// The step up from here; from the highest there is none.
    pub fn next(self) -> Option<Transition> {
        Transition::ALL.into_iter().find(|transition| transition.from() == self)
    }

    /// The step that leads here; to the lowest there is none.
    pub fn by(self) -> Option<Transition> {
        Transition::ALL.into_iter().find(|transition| transition.to() == self)
    }
}

impl fmt::Display for TrustLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Transition ===

impl Transition {
    /// All of them, the lowest first.
    pub const ALL: [Self; 3] =
        [Self::SandboxedToRestricted, Self::RestrictedToStandard, Self::StandardToElevated];

    /// Where it begins.
    pub const fn from(self) -> TrustLevel {
        match self {
            Self::SandboxedToRestricted => TrustLevel::Sandboxed,
            Self::RestrictedToStandard => TrustLevel::Restricted,
            Self::StandardToElevated => TrustLevel::Standard,
        }
    }

    /// Where it leads.
    pub const fn to(self) -> TrustLevel {
        match self {
            Self::SandboxedToRestricted => TrustLevel::Restricted,
            Self::RestrictedToStandard => TrustLevel::Standard,
            Self::StandardToElevated => TrustLevel::Elevated,
        }
    }

    /// Its name on the wire and in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SandboxedToRestricted => "sandboxed_to_restricted",
            Self::RestrictedToStandard => "restricted_to_standard",
            Self::StandardToElevated => "standard_to_elevated",
        }
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
