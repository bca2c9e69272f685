//! Risk of each action, and the reason for it.

use belljar_contract::action::{Leaf, Risk};

/// Risk with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weighed {
    /// Level of risk.
    pub risk: Risk,
    /// Reason.
    pub why: &'static str,
}

const fn row(risk: Risk, why: &'static str) -> Weighed {
    Weighed { risk, why }
}

/// Returns the risk of a built-in action.
pub const fn weighed(leaf: Leaf) -> Weighed {
    use Risk::{Critical, High, Low, Medium};
    match leaf {
        Leaf::CodeRead => row(Low, "reads only; the content stays with readers that have access"),
        Leaf::CodeWrite => row(Medium, "what is written may be run or shipped later"),
        Leaf::CodeCreate => row(Medium, "a new file may be picked up by whatever looks for its name"),
        Leaf::CodeDelete => row(High, "what was not committed is gone"),
        Leaf::CodeRefactor => row(Medium, "many files change at once, and few are looked at"),
        Leaf::TestWrite => row(Low, "it is run where tests are, and shipped nowhere"),
        Leaf::TestRun => row(Low, "it runs in the sandbox, and leaves nothing"),
        Leaf::DocsWrite => row(Low, "people read it, and no program runs it"),
        Leaf::VcsRead => row(Low, "nothing changes"),
        Leaf::VcsCommit => row(Medium, "it stays in the history, and is only undone by more of it"),
        Leaf::VcsPush => row(High, "others can fetch it from then on, and builds start"),
        Leaf::VcsBranch => row(Low, "a name is made or moved, in the workspace"),
        Leaf::DeployStaging => row(High, "it runs outside of every sandbox"),
        Leaf::DeployProduction => row(Critical, "customers get it at once"),
        Leaf::CommsInternal => row(Low, "colleagues read it, and can ask"),
        Leaf::CommsExternal => row(High, "it leaves the organisation and can't be recalled"),
        Leaf::BudgetSpend => row(Medium, "money is spent that was set aside for it"),
        Leaf::BudgetExceed => row(High, "money is spent that was not"),
        Leaf::OrgHire => row(Medium, "another agent acts from then on"),
        Leaf::OrgFire => row(Critical, "an agent's memory and grants are deleted with it"),
        Leaf::OrgPromote => row(Medium, "an agent may do more from then on"),
        Leaf::DbQuery => row(Low, "nothing changes; how much is read is limited"),
        Leaf::DbMutate => row(High, "changes other users' records, and few databases can undo that"),
        Leaf::DbAdmin => row(Critical, "changes schemas and privileges for all users of the database"),
        Leaf::ArchDecide => row(Medium, "much is built upon it"),
        Leaf::ToolCreate => row(High, "every agent that may call it runs code that one agent wrote"),
        Leaf::MemoryRead => row(Low, "it was written for this agent"),
        Leaf::KnowledgeIngest => row(Medium, "ingested text is trusted later, whatever its author"),
        Leaf::KnowledgeReindex => row(Medium, "while it runs, less is found"),
        Leaf::BrowserNavigate => row(Medium, "runs a third party's page, and its URL may leak data"),
        Leaf::BrowserScreenshot => row(Low, "what was already there is looked at"),
        Leaf::BrowserDiff => row(Low, "two pictures are compared"),
        Leaf::BrowserAccessibilityScan => row(Low, "what was already there is looked at"),
        Leaf::BrowserSpec => row(Medium, "a script is run in a page"),
        Leaf::ExternalDataRequest => {
            row(High, "calls a third-party service with the organisation's credentials")
        }
        Leaf::DesktopLaunch => row(Medium, "a program is started, which may be any"),
        Leaf::DesktopClick => row(Medium, "what a click does depends on what is shown"),
        Leaf::DesktopType => row(Medium, "what is typed goes to whatever has the focus"),
        Leaf::DesktopKey => row(Medium, "keys save, send and delete"),
        Leaf::DesktopScreenshot => row(Low, "what was already there is looked at"),
        Leaf::DesktopScroll => row(Low, "nothing changes but what is shown"),
    }
}

/// Default risk of a custom action.
pub(super) const UNSAID: Risk = Risk::High;
