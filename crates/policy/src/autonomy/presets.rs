//! The presets. Each says something of every built-in action, once.

use super::AutonomyLevel;

/// A preset: patterns of action types.
pub(super) struct Preset {
    pub(super) auto_approve: Vec<&'static str>,
    pub(super) human_approval: Vec<&'static str>,
}

/// Looking at what is there.
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

/// Working on a project.
const WORKING: &[&str] =
    &["code", "test", "docs", "vcs", "comms:internal", "db:query", "memory", "browser", "desktop"];

/// What leaves a project, costs money or decides for others.
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

/// What changes something in a project.
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

/// That of a level.
pub(super) fn of(level: AutonomyLevel) -> Preset {
    let (auto_approve, human_approval) = match level {
        AutonomyLevel::Full => (vec!["all"], Vec::new()),
        AutonomyLevel::Semi => (WORKING.to_vec(), BEYOND.to_vec()),
        AutonomyLevel::Supervised => (LOOKING.to_vec(), [CHANGING, BEYOND].concat()),
        AutonomyLevel::Locked => (Vec::new(), vec!["all"]),
    };
    Preset { auto_approve, human_approval }
}
