//! `belljar skill`: texts on how something is done, which agents read; at a node, or in this machine's own state.

use super::Subcommand;
use super::audit::table::plain;
use super::job::JobNodeArguments;
use super::operator::{call, list, settle};
use super::printing::{aligned, print, print_json};
use crate::client::Client;
use crate::error::CliError;
use belljar_contract::scope::Scope;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = AFTER_HELP)]
pub(crate) struct SkillArguments {
    #[command(flatten)]
    reach: JobNodeArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the skills of a scope
    List(ListArguments),
    /// Print a skill
    Show(ShowArguments),
    /// Add a skill, and print its id
    Add(AddArguments),
    /// Change a skill
    Update(UpdateArguments),
    /// Remove a skill
    Remove(RemoveArguments),
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    /// The scope: system, group:ID, user:ID, project:ID or task:UUID
    #[arg(long, value_name = "SCOPE", default_value = "system", value_parser = Scope::parse)]
    scope: Scope,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArguments {
    /// Its id, or the name of one of the system's
    id: String,
    /// Print it with what is known of it, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct AddArguments {
    /// The text, in Markdown
    file: PathBuf,
    /// Name of the skill
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The scope that it is for: system, group:ID, user:ID, project:ID or task:UUID
    #[arg(long, value_name = "SCOPE", default_value = "system", value_parser = Scope::parse)]
    scope: Scope,
}

#[derive(Debug, clap::Args)]
struct UpdateArguments {
    /// Its id
    id: String,
    /// The text, in Markdown; as it was, if no file is named
    file: Option<PathBuf>,
    /// New name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The scope that it is for from now on
    #[arg(long, value_name = "SCOPE", value_parser = Scope::parse)]
    scope: Option<Scope>,
    /// Change it only if it has this version
    #[arg(long, value_name = "N")]
    expected_version: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct RemoveArguments {
    /// Its id
    id: String,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

const AFTER_HELP: &str = "\
Examples:
  belljar skill add --scope group:docs --name style style.md
  belljar skill list --scope group:docs

Exit codes: 0 done; 1 the node has failed; 2 there is no such skill, or it isn't what a skill can be; 3 it isn't allowed.";

/// A skill has no more bytes; one more shows that there are too many.
const LONGEST: u64 = 256 << 10;

impl Subcommand for SkillArguments {
    const NAME: &'static str = "skill";
    const ABOUT: &'static str = "Skills, which agents read on how something is done: of the system, groups, users, projects and tasks";

    fn run(&self) -> Result<ExitCode, CliError> {
        self.reach.read(|client| match &self.command {
            Command::List(arguments) => arguments.run(client),
            Command::Show(arguments) => arguments.run(client),
            Command::Add(arguments) => arguments.run(client),
            Command::Update(arguments) => arguments.run(client),
            Command::Remove(arguments) => arguments.run(client),
        })
    }
}

/// The text of a file. Whether it is too long the node says.
fn text(path: &Path) -> Result<String, CliError> {
    let bytes = belljar_trusted::input::read(path, LONGEST).map_err(|error| CliError::read(path, error))?;
    String::from_utf8(bytes)
        .map_err(|_| CliError::usage(format!("{} is not a text in UTF-8", crate::output::path(path))))
}

// === impl ListArguments ===

impl ListArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let of = json!({ "scope": self.scope.to_string() });
        list(client, ("skills.list", of), |skills| match self.json {
            true => print_json(&skills),
            false => print(&table(skills)),
        })
    }
}

fn table(skills: &[Value]) -> String {
    if skills.is_empty() {
        return "No skills.\n".to_owned();
    }
    let head = ["ID", "NAME", "BYTES", "VERSION", "UPDATED BY"].map(str::to_owned);
    let row = |one: &Value| {
        let text = |name: &str| one[name].as_str().map_or_else(|| one[name].to_string(), str::to_owned);
        ["id", "name", "size_bytes", "version", "updated_by"].map(|name| plain(&text(name)))
    };
    let rows: Vec<_> = std::iter::once(head).chain(skills.iter().map(row)).collect();
    aligned(&rows)
}

// === impl ShowArguments ===

impl ShowArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        settle(call(client, "skills.get", &json!({ "skill_id": self.id }))?, |skill| match self.json {
            true => print_json(skill),
            false => print(skill["content"].as_str().unwrap_or_default()),
        })
    }
}

// === impl AddArguments ===

impl AddArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let Self { file, name, scope } = self;
        let wanted = json!({ "name": name, "content": text(file)?, "scope": scope.to_string() });
        settle(call(client, "skills.create", &wanted)?, |skill| {
            print(&format!("{}\n", plain(skill["id"].as_str().unwrap_or_default())))
        })
    }
}

// === impl UpdateArguments ===

impl UpdateArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let mut wanted = json!({ "skill_id": self.id });
        let changed = [
            ("content", self.file.as_deref().map(text).transpose()?.map(Value::from)),
            ("name", self.name.as_deref().map(Value::from)),
            ("scope", self.scope.as_ref().map(|scope| scope.to_string().into())),
            ("expected_version", self.expected_version.map(Value::from)),
        ];
        for (name, value) in changed.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            wanted[name] = value;
        }
        settle(call(client, "skills.update", &wanted)?, |_| Ok(()))
    }
}

// === impl RemoveArguments ===

impl RemoveArguments {
    fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let wanted = json!({ "skill_id": self.id, "confirm": true, "reason": self.reason });
        settle(call(client, "skills.delete", &wanted)?, |_| Ok(()))
    }
}
