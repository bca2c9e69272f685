//! Presets of the autonomy levels. Each covers every built-in action exactly once.

use super::AutonomyLevel;

/// Preset: patterns of action types.
pub(super) struct Preset {
    pub(super) auto_approve: Vec<&'static str>,
    pub(super) human_approval: Vec<&'static str>,
}

/// Actions that only read.
const LOOKING: &[&str] = &[
    "code:read",
    "vcs:read",
    "test:run",
    "db:query",
    "memory",
    "browser:screenshot",
    "browser:diff",
    "browser:accessibility_scan",
];

/// Actions for working on a project.
const WORKING: &[&str] =
    &["code", "test", "docs", "vcs", "comms:internal", "db:query", "memory", "browser", "desktop"];

/// Actions that leave a project, cost money or decide for others.
const BEYOND: &[&str] = &[
    "deploy",
    "comms:external",
    "budget",
    "org",
    "db:mutate",
    "db:admin",
    "arch",
    "tool",
    "knowledge",
    "external_data",
];

/// Actions that change something in a project.
const CHANGING: &[&str] = &[
    "code:write",
    "code:create",
    "code:delete",
    "code:refactor",
    "test:write",
    "docs",
    "vcs:commit",
    "vcs:push",
    "vcs:branch",
    "comms:internal",
    "browser:navigate",
    "browser:spec",
    "desktop",
];

/// Returns the preset of a level.
pub(super) fn of(level: AutonomyLevel) -> Preset {
    let (auto_approve, human_approval) = match level {
        AutonomyLevel::Full => (vec!["all"], Vec::new()),
        AutonomyLevel::Semi => (WORKING.to_vec(), BEYOND.to_vec()),
        AutonomyLevel::Supervised => (LOOKING.to_vec(), [CHANGING, BEYOND].concat()),
        AutonomyLevel::Locked => (Vec::new(), vec!["all"]),
    };
    Preset { auto_approve, human_approval }
}
