//! `belljar approval list`

use super::show::said;
use super::source::ApprovalSource;
use crate::command::plain;
use crate::command::printing::{aligned, print, print_json};
use crate::error::CliError;
use belljar_contract::approval::{Approval, ApprovalStatus};

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    /// Only approvals with this status: pending, approved, denied, expired, used
    #[arg(long, value_parser = parse_status)]
    status: Option<ApprovalStatus>,
    /// Maximum number of approvals
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Print the approvals as JSON
    #[arg(long)]
    json: bool,
}

/// A page holds no more.
const LARGEST_PAGE: u32 = 500;

/// As much of an agent's name or a tool's is shown.
const WIDEST: usize = 40;

fn parse_status(text: &str) -> Result<ApprovalStatus, String> {
    ApprovalStatus::named(text).ok_or_else(|| {
        let names: Vec<_> = ApprovalStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("one of: {}", names.join(", "))
    })
}

// === impl ListArguments ===

impl ListArguments {
    pub(super) fn run(&self, source: &ApprovalSource) -> Result<(), CliError> {
        let approvals = self.collect(source)?;
        match self.json {
            true => print_json(&approvals),
            false => print(&table(&approvals)),
        }
    }

    fn collect(&self, source: &ApprovalSource) -> Result<Vec<Approval>, CliError> {
        let limit = self.limit as usize;
        let (mut all, mut token): (Vec<Approval>, Option<String>) = (Vec::new(), None);
        loop {
            let page = source.page(self.status, (token.as_deref(), self.limit.min(LARGEST_PAGE)))?;
            // A page with nothing on it leads nowhere, whatever it says.
            let is_last = page.approvals.is_empty();
            all.extend(page.approvals);
            all.truncate(limit);
            token = page.next_page_token;
            if token.is_none() || is_last || all.len() >= limit {
                return Ok(all);
            }
        }
    }
}

fn table(approvals: &[Approval]) -> String {
    if approvals.is_empty() {
        return "No approvals.\n".to_owned();
    }
    let head =
        ["APPROVAL", "STATUS", "RISK", "ASKED", "AGENT", "TOOL", "ACTION", "WORKSPACE"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(approvals.iter().map(row)).collect();
    aligned(&rows)
}

fn row(approval: &Approval) -> [String; 8] {
    let short = |text: &str| plain(text).chars().take(WIDEST).collect();
    let agent = approval.agent_id.as_ref().map_or("-", |agent| agent.as_str());
    [
        approval.id.to_string(),
        approval.status.to_string(),
        approval.risk.as_str().to_owned(),
        approval.created_at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        short(agent),
        short(approval.tool.as_str()),
        approval.action_type.to_string(),
        // The end of a path tells more than its beginning.
        ending(
            &approval.scope.get("workspace").or(approval.scope.get("task_id")).map_or("-".to_owned(), said),
        ),
    ]
}

/// The last of a text.
fn ending(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().rev().nth(WIDEST - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &text[at..]),
        _ => text,
    }
}
