//! `belljar approval approve` and `belljar approval deny`

use super::source::Source;
use super::{parse_id, parse_reason};
use crate::command::plain;
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use belljar_contract::approval::{Approval, Ruling};
use belljar_contract::id::ApprovalId;

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArguments {
    /// The approval's id
    #[arg(value_parser = parse_id)]
    id: ApprovalId,
    /// Why, for the record
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
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
}

// === impl ApproveArguments ===

impl ApproveArguments {
    pub(super) fn run(&self, source: &Source) -> Result<(), CliError> {
        let decided = source.decide(&self.id, (Ruling::Approve, self.reason.clone()))?;
        tell(&decided, self.json)
    }
}

// === impl DenyArguments ===

impl DenyArguments {
    pub(super) fn run(&self, source: &Source) -> Result<(), CliError> {
        let decided = source.decide(&self.id, (Ruling::Deny, Some(self.reason.clone())))?;
        tell(&decided, self.json)
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
