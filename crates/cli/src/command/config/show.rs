//! `belljar config show`

use crate::command::printing::{print, print_json};
use crate::configuration;
use crate::error::CliError;
use crate::limits::AmountArguments;
use crate::state;
use belljar_config::discovery::{self, NamedBy, VARIABLE};
use belljar_config::effective::{
    EffectiveValue, Overrides, ShownValue, ValueSource, effective, lines, variables,
};
use belljar_contract::yaml::{self, MistakeLog};
use belljar_policy::untrusted;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// The configuration [default: BELLJAR_CONFIG, or config.yaml in the user's or the system's configuration]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print it as JSON: a list of values, each with its path and its source
    #[arg(long)]
    json: bool,
    /// Maximum number of concurrent jobs, as for `belljar node`
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=4_096))]
    max_concurrency: Option<u16>,
    /// Maximum number of waiting jobs, as for `belljar node`
    #[arg(long, value_name = "NUMBER")]
    max_waiting: Option<u64>,
    #[command(flatten)]
    amounts: AmountArguments,
}

/// The backend of a category counts only if the file has the section.
const WITHOUT_SANDBOXING: &str = "# without a section `sandboxing`, the file selects no backend: default_backend and overrides have no effect\n";

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let found = discovery::found_and_source(self.config.as_deref());
        let configuration = found.as_ref().map(|(path, _)| configuration::read(path)).transpose()?;
        let root = match &found {
            // Without mistakes: it has just been read.
            Some((path, _)) => yaml::parse(&document(path)?, &mut MistakeLog::default()),
            None => None,
        };
        let has_sandboxing = configuration.as_ref().is_some_and(|read| read.has_sandboxing);
        let sandboxing = configuration.map(|read| read.sandboxing.sandboxing).unwrap_or_default();
        let values = effective(root.as_ref(), &sandboxing, &self.overrides());
        match self.json {
            true => {
                let mut document = as_json(found.as_ref(), &values);
                document["has_sandboxing"] = has_sandboxing.into();
                print_json(&document)?;
            }
            false => {
                let file = found.as_ref().map(|(path, _)| crate::output::path(path).to_string());
                let text = lines(&values, file.as_deref().unwrap_or_default());
                let note = if has_sandboxing { "" } else { WITHOUT_SANDBOXING };
                print(&(heading(found.as_ref()) + note + &text))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn overrides(&self) -> Overrides {
        let of_node = [
            ("--max-concurrency", self.max_concurrency.map(|number| number.to_string())),
            ("--max-waiting", self.max_waiting.map(|number| number.to_string())),
        ];
        let of_node = of_node.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let set =
            |name: &'static str| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?));
        Overrides {
            flags: of_node.chain(self.amounts.written()).collect(),
            variables: variables().into_iter().filter_map(set).collect(),
        }
    }
}

fn document(path: &Path) -> Result<Vec<u8>, CliError> {
    state::open();
    Ok(discovery::document(path)?)
}

fn heading(found: Option<&(PathBuf, NamedBy)>) -> String {
    let Some((path, source)) = found else {
        return "# no configuration file: all values are defaults\n".to_owned();
    };
    let source = match source {
        NamedBy::Flag => "named by --config".to_owned(),
        NamedBy::Environment => format!("named by {VARIABLE}"),
        NamedBy::Search => "found where a configuration is searched for".to_owned(),
    };
    format!("# {}, {source}\n", crate::output::path(path))
}

fn as_json(found: Option<&(PathBuf, NamedBy)>, values: &[EffectiveValue]) -> Value {
    let named_by = found.map(|(_, source)| match source {
        NamedBy::Flag => "flag",
        NamedBy::Environment => "environment",
        NamedBy::Search => "search",
    });
    let values: Vec<Value> = values.iter().filter_map(value_as_json).collect();
    json!({ "file": found.map(|(path, _)| untrusted::name(path)), "named_by": named_by, "values": values })
}

/// Returns a value with its source; `None` for what has members or items, which follow.
fn value_as_json(EffectiveValue { path, value, source }: &EffectiveValue) -> Option<Value> {
    let mut document = match value {
        ShownValue::Value { json, .. } => json!({ "path": path, "value": json }),
        ShownValue::Described(words) => json!({ "path": path, "value": null, "meaning": words }),
        ShownValue::Secret => json!({ "path": path, "value": null, "is_secret": true }),
        ShownValue::Members | ShownValue::Items | ShownValue::Item => return None,
    };
    let (kind, detail) = match source {
        ValueSource::Default => ("default", None),
        ValueSource::File { line } => ("file", Some(("line", json!(line)))),
        ValueSource::Variable(name) => ("environment", Some(("variable", json!(name)))),
        ValueSource::Flag(name) => ("flag", Some(("flag", json!(name)))),
    };
    document["source"] = kind.into();
    if let Some((name, detail)) = detail {
        document[name] = detail;
    }
    Some(document)
}
