//! Trust levels, and the transitions between them.

use crate::access::AccessLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A trust level of an agent. An individually configured level (`custom`) is not one of them: no transition leads
/// there.
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

/// A transition to the next higher level. No level can be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transition {
    /// From `sandboxed` to `restricted`.
    SandboxedToRestricted,
    /// From `restricted` to `standard`.
    RestrictedToStandard,
    /// From `standard` to `elevated`, which always requires a person's approval.
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

    /// Returns the access that the level gives.
    pub const fn access(self) -> AccessLevel {
        match self {
            Self::Sandboxed => AccessLevel::Sandboxed,
            Self::Restricted => AccessLevel::Restricted,
            Self::Standard => AccessLevel::Standard,
            Self::Elevated => AccessLevel::Elevated,
        }
    }

    /// Returns the next lower level; the lowest has none.
    pub const fn lower(self) -> Option<Self> {
        match self {
            Self::Sandboxed => None,
            Self::Restricted => Some(Self::Sandboxed),
            Self::Standard => Some(Self::Restricted),
            Self::Elevated => Some(Self::Standard),
        }
    }

    /// Returns the transition from this level; the highest has none.
    pub fn next(self) -> Option<Transition> {
        Transition::ALL.into_iter().find(|transition| transition.from() == self)
    }

    /// Returns the transition to this level; the lowest has none.
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

    /// Returns the level that the transition starts from.
    pub const fn from(self) -> TrustLevel {
        match self {
            Self::SandboxedToRestricted => TrustLevel::Sandboxed,
            Self::RestrictedToStandard => TrustLevel::Restricted,
            Self::StandardToElevated => TrustLevel::Standard,
        }
    }

    /// Returns the level that the transition leads to.
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
