//! `belljar tools list`

use super::{SET, described, effect, listed};
use crate::command::mcp::SessionOfferArguments;
use crate::command::printing::{aligned, print, print_json};
use crate::error::CliError;
use belljar_tools::definition::Definition;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    offer: SessionOfferArguments,
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
            print_json(&definitions.iter().map(|definition| described(definition)).collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        let heading = ["TOOL", "CATEGORY", "ACTION", "EFFECT"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(heading).chain(definitions.into_iter().map(row)).collect();
        print(&aligned(&rows))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn row(definition: &Definition) -> [String; 4] {
    [
        definition.name.to_string(),
        definition.category.to_string(),
        definition.action.to_string(),
        effect(definition.effect).to_owned(),
    ]
}
