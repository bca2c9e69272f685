//! `belljar man`

use super::Subcommand;
use crate::error::CliError;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct ManArguments {
    /// The page of a subcommand instead
    subcommand: Option<String>,
}

impl Subcommand for ManArguments {
    const NAME: &'static str = "man";
    const ABOUT: &'static str = "Print the manual page, in roff";

    fn run(&self) -> Result<ExitCode, CliError> {
        let mut definition = super::definition();
        definition.build();
        let page = match &self.subcommand {
            None => definition,
            Some(name) => match definition.find_subcommand(name) {
                Some(found) => found.clone(),
                None => return Err(CliError::usage(format!("there is no subcommand `{name}`"))),
            },
        };
        let mut roff = Vec::new();
        clap_mangen::Man::new(page).render(&mut roff).map_err(CliError::output)?;
        crate::output::write_exactly(&roff);
        Ok(ExitCode::SUCCESS)
    }
}
