//! `belljar agents`

use super::Subcommand;
use super::printing::print_json;
use crate::configuration::catalogue;
use crate::error::CliError;
use crate::progress::harmless;
use anstyle::Style;
use belljar_agent::catalogue::{Agent, Catalogue};
use belljar_agent::program::located;
use belljar_agent::run::graph_id;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct AgentsArguments {
    /// The configuration with agents besides those that are built in [default: BELLJAR_CONFIG, or config.yaml in the user's
    /// or the system's configuration]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

impl Subcommand for AgentsArguments {
    const NAME: &'static str = "agents";
    const ABOUT: &'static str = "List agents, and which of them are installed here";

    fn run(&self) -> Result<ExitCode, CliError> {
        let catalogue = catalogue(self.config.as_deref())?;
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        match self.json {
            true => {
                let agents: Vec<Value> = catalogue.iter().map(|agent| as_json(agent, &search_path)).collect();
                print_json(&agents)?;
            }
            false => crate::output::out!("{}", as_text(&catalogue, &search_path)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Where an agent's program is on this host, if it isn't in an image.
fn found(agent: &Agent, search_path: &OsString) -> Option<PathBuf> {
    match agent.image {
        Some(_) => None,
        None => located(agent.program().as_ref(), search_path),
    }
}

fn as_json(agent: &Agent, search_path: &OsString) -> Value {
    let found = found(agent, search_path);
    json!({
        "name": agent.name,
        "graph_id": graph_id(&agent.name),
        "description": agent.description,
        "program": agent.program(),
        "image": agent.image,
        "path": found,
        // The content of an image is unknown until a container is started from it.
        "is_installed": agent.image.is_none().then_some(found.is_some()),
    })
}

fn as_text(catalogue: &Catalogue, search_path: &OsString) -> String {
    let head = Style::new().bold();
    let width = catalogue.iter().map(|agent| agent.name.len()).max().unwrap_or_default().max(4);
    let mut text = format!("{head}{:width$}  PROGRAM{head:#}\n", "NAME");
    for agent in catalogue.iter() {
        let name = agent.program();
        let place = match (&agent.image, found(agent, search_path)) {
            (Some(image), _) => format!("{name}, in the image {image}"),
            (None, Some(path)) => belljar_policy::untrusted::name(&path),
            (None, None) => format!("{name}, not installed"),
        };
        let _ = writeln!(text, "{:width$}  {}", agent.name, harmless(&place));
        let _ = writeln!(text, "{:width$}  {}", "", harmless(&agent.description));
    }
    text
}
