//! `belljar preference`: what users, groups, projects and the whole system prefer, as agents are told it with their jobs; at a node, or in
//! this machine's own state.

use super::Subcommand;
use super::audit::table::plain;
use super::job::JobNodeArguments;
use super::operator::{call, list, settle};
use super::printing::{aligned, print, print_json};
use crate::client::Client;
use crate::error::CliError;
use belljar_contract::scope::Scope;
use belljar_contract::tool::{DomainCode, Envelope};
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = AFTER_HELP)]
pub(crate) struct PreferenceArguments {
    #[command(flatten)]
    reach: JobNodeArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the preferences of a scope
    List(ListArguments),
    /// Set a preference, whether there is one or not
    Set(SetArguments),
    /// Remove a preference
    Remove(RemoveArguments),
}

/// The scope that is worked on.
#[derive(Debug, clap::Args)]
struct ScopeArgument {
    /// The scope: system, group:ID, user:ID, project:ID or task:UUID; of several with one key the nearest to the task counts
    #[arg(long, value_name = "SCOPE", default_value = "system", value_parser = Scope::parse)]
    scope: Scope,
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    #[command(flatten)]
    of: ScopeArgument,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct SetArguments {
    #[command(flatten)]
    of: ScopeArgument,
    /// Key of the preference, such as language.preferred
    key: String,
    /// The value, as JSON; what is no JSON is a text, and `null` hides what scopes further away prefer
    value: String,
    /// Set it only if it has this version
    #[arg(long, value_name = "N")]
    expected_version: Option<u64>,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
struct RemoveArguments {
    #[command(flatten)]
    of: ScopeArgument,
    /// Key of the preference
    key: String,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

const AFTER_HELP: &str = "\
Examples:
  belljar preference set standards.markdown.line_length 100
  belljar preference set --scope group:docs language.preferred de
  belljar preference list --scope group:docs

Exit codes: 0 done; 1 the node has failed; 2 there is no such preference, or it isn't what a preference can be; 3 it isn't allowed.";

impl Subcommand for PreferenceArguments {
    const NAME: &'static str = "preference";
    const ABOUT: &'static str =
        "Preferences that agents are told with their jobs: of the system, groups, users, projects and tasks";

    fn run(&self) -> Result<ExitCode, CliError> {
        self.reach.read(|client| match &self.command {
            Command::List(arguments) => arguments.run(client),
            Command::Set(arguments) => arguments.run(client),
            Command::Remove(arguments) => arguments.run(client),
        })
    }
}

// === impl ScopeArgument ===

impl ScopeArgument {
    /// The arguments of a tool, with the scope among them.
    fn with(&self, mut arguments: Value) -> Value {
        arguments["scope_type"] = json!(self.scope.kind().as_str());
        if let Some(id) = self.scope.id() {
            arguments["scope_id"] = json!(id);
        }
        arguments
    }
}

// === impl ListArguments ===

impl ListArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        list(client, ("db.preference.list", self.of.with(json!({}))), |preferences| match self.json {
            true => print_json(&preferences),
            false => print(&table(preferences)),
        })
    }
}

fn table(preferences: &[Value]) -> String {
    if preferences.is_empty() {
        return "No preferences.\n".to_owned();
    }
    let head = ["KEY", "VALUE", "VERSION", "UPDATED BY"].map(str::to_owned);
    let row = |one: &Value| {
        let text = |name: &str| one[name].as_str().map_or_else(|| one[name].to_string(), str::to_owned);
        ["key", "value", "version", "updated_by"].map(|name| plain(&text(name)))
    };
    let rows: Vec<_> = std::iter::once(head).chain(preferences.iter().map(row)).collect();
    aligned(&rows)
}

// === impl SetArguments ===

impl SetArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let value = serde_json::from_str(&self.value).unwrap_or_else(|_| Value::from(self.value.as_str()));
        let value_type = match &value {
            Value::Null | Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "boolean",
            Value::Object(_) => "object",
            Value::Array(_) => "array",
        };
        let mut wanted = self.of.with(json!({ "key": self.key, "value": value, "value_type": value_type }));
        if let Some(reason) = &self.reason {
            wanted["reason"] = json!(reason);
        }
        let mut changed = wanted.clone();
        if let Some(version) = self.expected_version {
            changed["expected_version"] = json!(version);
        }
        let answer = match call(client, "db.preference.update", &changed)? {
            Envelope::Error { domain_code: DomainCode::NotFound, .. } if self.expected_version.is_none() => {
                call(client, "db.preference.create", &wanted)?
            }
            answer => answer,
        };
        settle(answer, |_| Ok(()))
    }
}

// === impl RemoveArguments ===

impl RemoveArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let wanted = json!({ "key": self.key, "confirm": true, "reason": self.reason });
        settle(call(client, "db.preference.delete", &self.of.with(wanted))?, |_| Ok(()))
    }
}
