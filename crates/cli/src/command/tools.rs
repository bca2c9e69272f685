//! `belljar tools`: the tools of agents, as they are offered to one, and called without one.

mod call;
mod list;
mod show;

use super::Subcommand;
use super::mcp::{ToolService, ToolSet, caller, gateway};
use crate::approvals;
use crate::error::CliError;
use belljar_contract::tool::DomainCode;
use belljar_tools::definition::{Definition, Effect};
use belljar_tools::guide::Usage;
use belljar_tools::registry::Entry;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct ToolsArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the tools that the given agent or level can call
    List(Box<list::ListArguments>),
    /// Show the description and arguments of a tool
    Show(Box<show::ShowArguments>),
    /// Call a tool, with the same checks as a call of an agent
    Call(Box<call::CallArguments>),
}

impl Subcommand for ToolsArguments {
    const NAME: &'static str = "tools";
    const ABOUT: &'static str = "List, show and call the tools of agents";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.command {
            Command::List(arguments) => arguments.run(),
            Command::Show(arguments) => arguments.run(),
            Command::Call(arguments) => arguments.run(),
        }
    }
}

/// All that there are here: those of agents, and those that open sessions.
const SET: ToolSet = ToolSet::All;

/// Lists the tools that the named caller may call.
fn listed(offered: &ToolService) -> Result<Vec<Arc<Entry>>, CliError> {
    Ok(approvals::runtime()?.block_on(gateway(offered))?.listed(&caller(offered)))
}

/// A tool, as programs read it.
fn described(definition: &Definition) -> Value {
    json!({
        "name": definition.name,
        "category": definition.category,
        "action_type": definition.action,
        "summary": definition.summary,
        "description": definition.description,
        "cost": definition.cost,
        "effect": effect(definition.effect),
        "reaches_out": definition.reaches_out,
        "timeout_seconds": definition.within.as_secs(),
        "input_schema": definition.input,
        "example": definition.usage.map(|usage| usage.arguments()),
        "failures": definition.usage.map(|usage| failures(&usage)),
        "resources": definition.resources.iter().map(|resource| resource.uri(&definition.name)).collect::<Vec<_>>(),
    })
}

fn failures(usage: &Usage) -> Vec<Value> {
    let told = |(code, when): &(DomainCode, &str)| json!({ "code": code.as_str(), "when": when });
    usage.failures.iter().map(told).collect()
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::ReadOnly => "read_only",
        Effect::Additive => "additive",
        Effect::Idempotent => "idempotent",
        Effect::Destructive => "destructive",
    }
}
