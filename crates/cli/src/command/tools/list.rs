//! `belljar tools list`

use super::{SET, described, effect, listed};
use crate::command::mcp::OfferArguments;
use crate::command::printing::{Table, document};
use crate::error::CliError;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    offer: OfferArguments,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

// === impl ListArguments ===

impl ListArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let entries = listed(&self.offer.offered(SET)?)?;
        let definitions: Vec<_> = entries.iter().map(|entry| entry.tool.definition()).collect();
        if self.json {
            document(&definitions.iter().map(|definition| described(definition)).collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(["TOOL", "CATEGORY", "ACTION", "EFFECT"]);
        for definition in definitions {
            table.row([
                definition.name.to_string(),
                definition.category.to_string(),
                definition.action.to_string(),
                effect(definition.effect).to_owned(),
            ]);
        }
        table.print();
        Ok(ExitCode::SUCCESS)
    }
}
