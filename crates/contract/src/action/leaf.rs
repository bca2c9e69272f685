//! Built-in action types (`docs/contracts/tools.md#t15.2`).

use std::fmt;

/// A built-in action type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum BuiltInAction {
    CodeRead,
    CodeWrite,
    CodeCreate,
    CodeDelete,
    CodeRefactor,
    TestWrite,
    TestRun,
    DocsWrite,
    VcsRead,
    VcsCommit,
    VcsPush,
    VcsBranch,
    DeployStaging,
    DeployProduction,
    CommsInternal,
    CommsExternal,
    BudgetSpend,
    BudgetExceed,
    OrgHire,
    OrgFire,
    OrgPromote,
    DbQuery,
    DbMutate,
    DbAdmin,
    ArchDecide,
    ToolCreate,
    MemoryRead,
    KnowledgeIngest,
    KnowledgeReindex,
    BrowserNavigate,
    BrowserScreenshot,
    BrowserDiff,
    BrowserAccessibilityScan,
    BrowserSpec,
    ExternalDataRequest,
    DesktopLaunch,
    DesktopClick,
    DesktopType,
    DesktopKey,
    DesktopScreenshot,
    DesktopScroll,
}

// === impl BuiltInAction ===

impl BuiltInAction {
    /// All of them, in the order of the specification.
    pub const ALL: [Self; 41] = [
        Self::CodeRead,
        Self::CodeWrite,
        Self::CodeCreate,
        Self::CodeDelete,
        Self::CodeRefactor,
        Self::TestWrite,
        Self::TestRun,
        Self::DocsWrite,
        Self::VcsRead,
        Self::VcsCommit,
        Self::VcsPush,
        Self::VcsBranch,
        Self::DeployStaging,
        Self::DeployProduction,
        Self::CommsInternal,
        Self::CommsExternal,
        Self::BudgetSpend,
        Self::BudgetExceed,
        Self::OrgHire,
        Self::OrgFire,
        Self::OrgPromote,
        Self::DbQuery,
        Self::DbMutate,
        Self::DbAdmin,
        Self::ArchDecide,
        Self::ToolCreate,
        Self::MemoryRead,
        Self::KnowledgeIngest,
        Self::KnowledgeReindex,
        Self::BrowserNavigate,
        Self::BrowserScreenshot,
        Self::BrowserDiff,
        Self::BrowserAccessibilityScan,
        Self::BrowserSpec,
        Self::ExternalDataRequest,
        Self::DesktopLaunch,
        Self::DesktopClick,
        Self::DesktopType,
        Self::DesktopKey,
        Self::DesktopScreenshot,
        Self::DesktopScroll,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CodeRead => "code:read",
            Self::CodeWrite => "code:write",
            Self::CodeCreate => "code:create",
            Self::CodeDelete => "code:delete",
            Self::CodeRefactor => "code:refactor",
            Self::TestWrite => "test:write",
            Self::TestRun => "test:run",
            Self::DocsWrite => "docs:write",
            Self::VcsRead => "vcs:read",
            Self::VcsCommit => "vcs:commit",
            Self::VcsPush => "vcs:push",
            Self::VcsBranch => "vcs:branch",
            Self::DeployStaging => "deploy:staging",
            Self::DeployProduction => "deploy:production",
            Self::CommsInternal => "comms:internal",
            Self::CommsExternal => "comms:external",
            Self::BudgetSpend => "budget:spend",
            Self::BudgetExceed => "budget:exceed",
            Self::OrgHire => "org:hire",
            Self::OrgFire => "org:fire",
            Self::OrgPromote => "org:promote",
            Self::DbQuery => "db:query",
            Self::DbMutate => "db:mutate",
            Self::DbAdmin => "db:admin",
            Self::ArchDecide => "arch:decide",
            Self::ToolCreate => "tool:create",
            Self::MemoryRead => "memory:read",
            Self::KnowledgeIngest => "knowledge:ingest",
            Self::KnowledgeReindex => "knowledge:reindex",
            Self::BrowserNavigate => "browser:navigate",
            Self::BrowserScreenshot => "browser:screenshot",
            Self::BrowserDiff => "browser:diff",
            Self::BrowserAccessibilityScan => "browser:accessibility_scan",
            Self::BrowserSpec => "browser:spec",
            Self::ExternalDataRequest => "external_data:request",
            Self::DesktopLaunch => "desktop:launch",
            Self::DesktopClick => "desktop:click",
            Self::DesktopType => "desktop:type",
            Self::DesktopKey => "desktop:key",
            Self::DesktopScreenshot => "desktop:screenshot",
            Self::DesktopScroll => "desktop:scroll",
        }
    }

    /// Returns the value with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|leaf| leaf.as_str() == name)
    }
}

impl fmt::Display for BuiltInAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
