//! Risk of each action, and the reason for it.

use belljar_contract::action::{BuiltInAction, Risk};

/// Risk with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RiskRating {
    /// Level of risk.
    pub risk: Risk,
    /// Reason.
    pub why: &'static str,
}

const fn row(risk: Risk, why: &'static str) -> RiskRating {
    RiskRating { risk, why }
}

/// Returns the risk of a built-in action.
pub const fn weighed(leaf: BuiltInAction) -> RiskRating {
    use Risk::{Critical, High, Low, Medium};
    match leaf {
        BuiltInAction::CodeRead => row(Low, "reads only; the content stays with readers that have access"),
        BuiltInAction::CodeWrite => row(Medium, "what is written may be run or shipped later"),
        BuiltInAction::CodeCreate => {
            row(Medium, "a new file may be picked up by whatever looks for its name")
        }
        BuiltInAction::CodeDelete => row(High, "what was not committed is gone"),
        BuiltInAction::CodeRefactor => row(Medium, "many files change at once, and few are looked at"),
        BuiltInAction::TestWrite => row(Low, "it is run where tests are, and shipped nowhere"),
        BuiltInAction::TestRun => row(Low, "it runs in the sandbox, and leaves nothing"),
        BuiltInAction::DocsWrite => row(Low, "people read it, and no program runs it"),
        BuiltInAction::VcsRead => row(Low, "nothing changes"),
        BuiltInAction::VcsCommit => row(Medium, "it stays in the history, and is only undone by more of it"),
        BuiltInAction::VcsPush => row(High, "others can fetch it from then on, and builds start"),
        BuiltInAction::VcsBranch => row(Low, "a name is made or moved, in the workspace"),
        BuiltInAction::DeployStaging => row(High, "it runs outside of every sandbox"),
        BuiltInAction::DeployProduction => row(Critical, "customers get it at once"),
        BuiltInAction::CommsInternal => row(Low, "colleagues read it, and can ask"),
        BuiltInAction::CommsExternal => row(High, "it leaves the organisation and can't be recalled"),
        BuiltInAction::BudgetSpend => row(Medium, "money is spent that was set aside for it"),
        BuiltInAction::BudgetExceed => row(High, "money is spent that was not"),
        BuiltInAction::OrgHire => row(Medium, "another agent acts from then on"),
        BuiltInAction::OrgFire => row(Critical, "an agent's memory and grants are deleted with it"),
        BuiltInAction::OrgPromote => row(Medium, "an agent may do more from then on"),
        BuiltInAction::DbQuery => row(Low, "nothing changes; how much is read is limited"),
        BuiltInAction::DbMutate => row(High, "changes other users' records, and few databases can undo that"),
        BuiltInAction::DbAdmin => {
            row(Critical, "changes schemas and privileges for all users of the database")
        }
        BuiltInAction::ArchDecide => row(Medium, "much is built upon it"),
        BuiltInAction::ToolCreate => row(High, "every agent that may call it runs code that one agent wrote"),
        BuiltInAction::MemoryRead => row(Low, "it was written for this agent"),
        BuiltInAction::KnowledgeIngest => row(Medium, "ingested text is trusted later, whatever its author"),
        BuiltInAction::KnowledgeReindex => row(Medium, "while it runs, less is found"),
        BuiltInAction::BrowserNavigate => row(Medium, "runs a third party's page, and its URL may leak data"),
        BuiltInAction::BrowserScreenshot => row(Low, "what was already there is looked at"),
        BuiltInAction::BrowserDiff => row(Low, "two pictures are compared"),
        BuiltInAction::BrowserAccessibilityScan => row(Low, "what was already there is looked at"),
        BuiltInAction::BrowserSpec => row(Medium, "a script is run in a page"),
        BuiltInAction::ExternalDataRequest => {
            row(High, "calls a third-party service with the organisation's credentials")
        }
        BuiltInAction::DesktopLaunch => row(Medium, "a program is started, which may be any"),
        BuiltInAction::DesktopClick => row(Medium, "what a click does depends on what is shown"),
        BuiltInAction::DesktopType => row(Medium, "what is typed goes to whatever has the focus"),
        BuiltInAction::DesktopKey => row(Medium, "keys save, send and delete"),
        BuiltInAction::DesktopScreenshot => row(Low, "what was already there is looked at"),
        BuiltInAction::DesktopScroll => row(Low, "nothing changes but what is shown"),
    }
}

/// Default risk of a custom action.
pub(super) const UNSAID: Risk = Risk::High;
