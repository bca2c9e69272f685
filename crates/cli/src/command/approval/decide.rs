//! `belljar approval approve` and `belljar approval deny`

use super::reviewing::{confirmed, must_be_whole};
use super::source::{ApprovalSource, OperatorDecision};
use super::{parse_digest, parse_id, parse_reason};
use crate::command::plain;
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use belljar_contract::approval::{Approval, ApprovalStatus, Ruling};
use belljar_contract::id::ApprovalId;

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArguments {
    /// The approval's id
    #[arg(value_parser = parse_id)]
    id: ApprovalId,
    /// The digest of the arguments that you reviewed, as `show` prints it; nothing is asked, and other arguments are refused.
    /// Required without a terminal
    #[arg(long, value_name = "SHA256", value_parser = parse_digest)]
    digest: Option<String>,
    /// Reason, which is recorded
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: Option<String>,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct DenyArguments {
    /// The approval's id
    #[arg(value_parser = parse_id)]
    id: ApprovalId,
    /// The digest of the arguments that you reviewed; other arguments are refused
    #[arg(long, value_name = "SHA256", value_parser = parse_digest)]
    digest: Option<String>,
    /// Reason, which is recorded
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
}

// === impl ApproveArguments ===

impl ApproveArguments {
    pub(super) fn run(&self, source: &ApprovalSource) -> Result<(), CliError> {
        let open = source.find(&self.id)?;
        // `decide` refuses denied and expired approvals below; an approved one stays approved.
        if open.status == ApprovalStatus::Pending {
            must_be_whole(&open)?;
            if self.digest.is_none() && !confirmed(&open)? {
                return Err(CliError::NotApproved { id: self.id.clone() });
            }
        }
        let digest = self.digest.clone().unwrap_or(open.arguments_sha256);
        let said =
            OperatorDecision { ruling: Ruling::Approve, reason: self.reason.clone(), digest: Some(digest) };
        tell(&source.decide(&self.id, said)?, self.json)
    }
}

// === impl DenyArguments ===

impl DenyArguments {
    pub(super) fn run(&self, source: &ApprovalSource) -> Result<(), CliError> {
        let reason = Some(self.reason.clone());
        let said = OperatorDecision { ruling: Ruling::Deny, reason, digest: self.digest.clone() };
        tell(&source.decide(&self.id, said)?, self.json)
    }
}

fn tell(decided: &Approval, as_json: bool) -> Result<(), CliError> {
    match as_json {
        true => print_json(decided),
        false => print(&format!(
            "{} is {}: {} with sha256:{}\n",
            decided.id,
            decided.status,
            plain(decided.tool.as_str()),
            plain(&decided.arguments_sha256)
        )),
    }
}
