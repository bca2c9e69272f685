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
        Leaf::CodeRead => row(Low, "nothing changes, and what is read stays with whoever may read it"),
        Leaf::CodeWrite => row(Medium, "what is written may be run or shipped later"),
        Leaf::CodeCreate => row(Medium, "a new file may be picked up by whatever looks for its name"),
        Leaf::CodeDelete => row(High, "what was not committed is gone"),
        Leaf::CodeRefactor => row(Medium, "many files change at once, and few are looked at"),
        Leaf::TestWrite => row(Low, "it is run where tests are, and shipped nowhere"),
        Leaf::TestRun => row(Low, "it runs in the sandbox, and leaves nothing"),
        Leaf::DocsWrite => row(Low, "it is read by people, and run by nobody"),
        Leaf::VcsRead => row(Low, "nothing changes"),
        Leaf::VcsCommit => row(Medium, "it stays in the history, and is only undone by more of it"),
        Leaf::VcsPush => row(High, "others have it from then on, and what builds it begins"),
        Leaf::VcsBranch => row(Low, "a name is made or moved, in the workspace"),
        Leaf::DeployStaging => row(High, "something runs outside of every sandbox"),
        Leaf::DeployProduction => row(Critical, "customers have it at once"),
        Leaf::CommsInternal => row(Low, "colleagues read it, and can ask"),
        Leaf::CommsExternal => row(High, "it leaves the house, and can't be taken back"),
        Leaf::BudgetSpend => row(Medium, "money is spent that was set aside for it"),
        Leaf::BudgetExceed => row(High, "money is spent that was not"),
        Leaf::OrgHire => row(Medium, "another agent acts from then on"),
        Leaf::OrgFire => row(Critical, "what an agent knew and was given is gone with it"),
        Leaf::OrgPromote => row(Medium, "an agent may do more from then on"),
        Leaf::DbQuery => row(Low, "nothing changes; how much is read is limited"),
        Leaf::DbMutate => row(High, "records of others change, and few databases have a way back"),
        Leaf::DbAdmin => row(Critical, "schemas and rights change, for all who use the database"),
        Leaf::ArchDecide => row(Medium, "much is built upon it"),
        Leaf::ToolCreate => row(High, "every agent that may call it runs what one has written"),
        Leaf::MemoryRead => row(Low, "it was written for this agent"),
        Leaf::KnowledgeIngest => row(Medium, "what is taken in is believed later, whoever wrote it"),
        Leaf::KnowledgeReindex => row(Medium, "while it runs, less is found"),
        Leaf::BrowserNavigate => {
            row(Medium, "a page is run that somebody else wrote, and its address may carry something out")
        }
        Leaf::BrowserScreenshot => row(Low, "what was already there is looked at"),
        Leaf::BrowserDiff => row(Low, "two pictures are compared"),
        Leaf::BrowserAccessibilityScan => row(Low, "what was already there is looked at"),
        Leaf::BrowserSpec => row(Medium, "a script is run in a page"),
        Leaf::ExternalDataRequest => row(High, "a service of others is asked with credentials of the house"),
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
