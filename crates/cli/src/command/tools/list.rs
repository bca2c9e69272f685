//! `belljar tools list`

use super::{SET, described, effect, listed, print};
use crate::command::mcp::OfferArguments;
use crate::error::CliError;
use anstyle::Style;
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
            print(&definitions.iter().map(|definition| described(definition)).collect())?;
            return Ok(ExitCode::SUCCESS);
        }
        if definitions.is_empty() {
            anstream::eprintln!("there is none that may be called");
            return Ok(ExitCode::SUCCESS);
        }
        let bold = Style::new().bold();
        let heading = ["TOOL", "CATEGORY", "ACTION", "EFFECT"];
        let rows = definitions.iter().map(|definition| {
            [
                definition.name.to_string(),
                definition.category.to_string(),
                definition.action.to_string(),
                effect(definition.effect).to_owned(),
            ]
        });
        let rows: Vec<[String; 4]> = std::iter::once(heading.map(str::to_owned)).chain(rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
        let widths = [0, 1, 2].map(width);
        for (index, [name, category, action, effect]) in rows.iter().enumerate() {
            let style = if index == 0 { bold } else { Style::new() };
            let [first, second, third] = widths;
            anstream::println!(
                "{style}{name:first$}  {category:second$}  {action:third$}  {effect}{style:#}"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}
