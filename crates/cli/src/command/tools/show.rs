//! `belljar tools show`

use super::{SET, described, effect, listed};
use crate::command::mcp::SessionOfferArguments;
use crate::command::printing::print_json;
use crate::error::{BAD_INPUT, CliError};
use crate::output::{Untrusted, UntrustedLines};
use anstyle::Style;
use belljar_tools::definition::{Content, Definition};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// Its name
    tool: String,
    #[command(flatten)]
    offer: SessionOfferArguments,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let entries = listed(&self.offer.offered(SET)?)?;
        let Some(entry) = entries.iter().find(|entry| entry.name().as_str() == self.tool) else {
            crate::output::errln!(
                "belljar: there is no tool {:?} that may be called; `belljar tools list` tells which there are",
                self.tool
            );
            return Ok(ExitCode::from(BAD_INPUT));
        };
        let definition = entry.tool.definition();
        match self.json {
            true => print_json(&described(definition))?,
            false => tell(definition)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn tell(definition: &Definition) -> Result<(), CliError> {
    let bold = Style::new().bold();
    crate::output::outln!("{bold}{}{bold:#}  {}", definition.name, Untrusted(&definition.summary));
    let description = definition.description.trim_start_matches(definition.summary.as_str()).trim();
    if !description.is_empty() {
        crate::output::outln!("\n{}", UntrustedLines(description));
    }
    crate::output::outln!(
        "\ncategory  {}\naction    {}\neffect    {}\nwithin    {} s\n\n{bold}Arguments{bold:#}",
        definition.category,
        definition.action,
        effect(definition.effect),
        definition.within.as_secs()
    );
    print_json(&definition.input)?;
    if let Some(usage) = definition.usage {
        crate::output::outln!("\n{bold}Example{bold:#}\n{}\n\n{bold}Fails with{bold:#}", usage.example);
        for (code, when) in usage.failures {
            crate::output::outln!("{}: {when}", code.as_str());
        }
    }
    for resource in &definition.resources {
        if let Content::Text(text) = &resource.content {
            crate::output::outln!("\n{bold}{}{bold:#}\n{}", resource.uri(&definition.name), text.trim_end());
        }
    }
    Ok(())
}
