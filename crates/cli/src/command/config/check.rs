//! `belljar config check`

use crate::backend::has_sandbox;
use crate::command::printing::print_json;
use crate::configuration::{Configuration, read_bytes};
use crate::error::CliError;
use crate::limits::size;
use crate::output::quoted;
use crate::progress::harmless;
use belljar_config::inert::{InertMember, inert};
use belljar_contract::category::Category;
use belljar_contract::yaml::{self, MistakeLog};
use belljar_egress::inference::models::Model;
use belljar_egress::web::config::WebConfig;
use belljar_policy::egress::Rule;
use belljar_sandbox::config::{BackendName, Mistakes};
use belljar_sandbox::limits::Limits;
use belljar_trusted::input;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The configuration's YAML file; `-` reads standard input
    file: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Exit code for a configuration with mistakes, as for a job that is malformed.
const MALFORMED: u8 = 2;

// === impl CheckArguments ===

impl CheckArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let Self { file, json } = self;
        let document = read(file)?;
        match (Configuration::parse(&document), *json) {
            (Ok(config), true) => print_json(&effective(&config, &unused(&document)))?,
            (Ok(config), false) => {
                crate::output::out!("{}", table(&config));
                crate::output::err!("{}", unused_lines(file, &unused(&document)));
            }
            (Err(mistakes), is_json) => {
                match is_json {
                    true => print_json(&refusal(&mistakes))?,
                    false => crate::output::out!("{}", lines(file, &mistakes)),
                }
                return Ok(ExitCode::from(MALFORMED));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the members without effect.
fn unused(document: &[u8]) -> Vec<InertMember> {
    let root = yaml::parse(document, &mut MistakeLog::default());
    root.map(|root| inert(&root, has_sandbox)).unwrap_or_default()
}

fn unused_lines(file: &Path, members: &[InertMember]) -> String {
    let file = crate::output::path(file);
    let line = |InertMember { position, path, reason }: &InertMember| {
        format!("{file}:{position}: {} has no effect: {reason}\n", quoted(path))
    };
    members.iter().map(line).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(input::open(path).map_err(|error| CliError::read(path, error))?),
    };
    read_bytes(source).map_err(|error| CliError::read(path, error))
}

fn lines(file: &Path, mistakes: &Mistakes) -> String {
    let file = crate::output::path(file);
    let mut text = String::new();
    for mistake in mistakes.as_slice() {
        let _ = writeln!(text, "{file}:{}: {}", mistake.position, quoted(&mistake.path));
        let _ = writeln!(text, "  found     {}", quoted(&mistake.found));
        let _ = writeln!(text, "  expected  {}", quoted(&mistake.expected));
    }
    match mistakes.unlisted() {
        0 => text,
        more => text + &format!("{file}: and {more} more\n"),
    }
}

fn refusal(mistakes: &Mistakes) -> Value {
    json!({ "valid": false, "mistakes": mistakes.as_slice(), "unlisted": mistakes.unlisted() })
}

fn effective(config: &Configuration, unused: &[InertMember]) -> Value {
    let sandboxing = &config.sandboxing.sandboxing;
    let backend_of = |category: Category| {
        let backend = has_sandbox(category).then(|| sandboxing.backend_for(category));
        (category.to_string(), json!(backend.map_or(ON_HOST, BackendName::as_str)))
    };
    let categories: Map<String, Value> = Category::ALL.into_iter().map(backend_of).collect();
    let settings_of = |backend: BackendName| {
        let required: Vec<String> = sandboxing.required_of(backend).names().map(str::to_owned).collect();
        let settings = json!({ "limits": sandboxing.limits_of(backend), "required": required });
        (backend.to_string(), settings)
    };
    let backends: Map<String, Value> = sandboxing.named_backends().into_iter().map(settings_of).collect();
    let models: Vec<Value> =
        config.inference.iter().flat_map(|inference| inference.models.iter()).map(model).collect();
    let agents: Vec<&str> = config.agents.iter().map(|agent| agent.name.as_str()).collect();
    let rules =
        config.egress.as_ref().map(|egress| egress.policy.rules().iter().map(rule).collect::<Vec<_>>());
    let without_effect: Vec<Value> = unused.iter().map(without_effect).collect();
    json!({
        "valid": true,
        "without_effect": without_effect,
        "categories": categories,
        "commands": config.backend_for_commands.unwrap_or(BackendName::Native),
        "backends": backends,
        "models": models,
        "egress": rules,
        "agents": agents,
        "trust": config.trust.as_ref().map(|trust| trust.strategy().as_str()),
    })
}

fn without_effect(InertMember { position, path, reason }: &InertMember) -> Value {
    json!({ "line": position.line, "column": position.column, "path": path, "reason": reason })
}

fn model(Model { name, upstream_name, provider, stated_price }: &Model) -> Value {
    let price =
        stated_price.map(|price| json!({ "input": dollars(price.input), "output": dollars(price.output) }));
    json!({ "name": name, "upstream": upstream_name, "provider": provider.name, "kind": provider.kind, "price": price })
}

/// Thousandths of a dollar, in dollars.
fn dollars(thousandths: u64) -> f64 {
    thousandths as f64 / 1_000.0
}

fn rule(rule: &Rule) -> Value {
    let texts = |all: Vec<String>| json!(all);
    json!({
        "host": rule.host.to_string(),
        "ports": rule.ports,
        "methods": rule.methods,
        "paths": texts(rule.paths.iter().map(ToString::to_string).collect()),
        "networks": texts(rule.networks.iter().map(ToString::to_string).collect()),
        "inspect": rule.inspect,
    })
}

fn table(config: &Configuration) -> String {
    let mut text = String::new();
    if config.has_sandboxing {
        text.push_str(&backends(config));
    }
    for Model { name, upstream_name, provider, stated_price } in
        config.inference.iter().flat_map(|inference| inference.models.iter())
    {
        let _ = write!(text, "model {name}: {upstream_name} of {} ({})", provider.name, provider.kind);
        if let Some(price) = stated_price {
            let (input, output) = (dollars(price.input), dollars(price.output));
            let _ = write!(text, ", ${input} in and ${output} out for a million tokens");
        }
        text.push('\n');
    }
    text.push_str(&config.egress.as_ref().map_or_else(String::new, web));
    for agent in config.agents.iter() {
        let _ = writeln!(text, "agent {}: {}", agent.name, harmless(&agent.description));
    }
    if let Some(trust) = &config.trust {
        let _ = writeln!(text, "trust: {}", trust.strategy().as_str());
    }
    text
}

/// The rules about the web, each with what it is called where a verdict names it.
fn web(egress: &WebConfig) -> String {
    let mut text = String::new();
    for (index, rule) in egress.policy.rules().iter().enumerate() {
        let ports: Vec<String> = rule.ports.iter().map(u16::to_string).collect();
        let _ = write!(text, "web rule {index}: {} at {}", rule.host, ports.join(", "));
        let paths: Vec<String> = rule.paths.iter().map(ToString::to_string).collect();
        let networks: Vec<String> = rule.networks.iter().map(ToString::to_string).collect();
        for (name, all) in [("methods", &rule.methods), ("paths", &paths), ("networks", &networks)] {
            if !all.is_empty() {
                let _ = write!(text, ", {name} {}", all.join(" "));
            }
        }
        text.push_str(if rule.inspect { ", inspected\n" } else { "\n" });
    }
    if egress.policy.rules().is_empty() {
        text.push_str("web: nothing\n");
    }
    text
}

/// Shown instead of a backend for tools that work in no sandbox.
const ON_HOST: &str = "host";

fn backends(config: &Configuration) -> String {
    let sandboxing = &config.sandboxing.sandboxing;
    let mut text = String::new();
    for category in Category::ALL {
        if !has_sandbox(category) {
            let _ = writeln!(text, "{category:16} {ON_HOST}");
            continue;
        }
        let backend = sandboxing.backend_for(category);
        let network = match backend {
            BackendName::Docker => format!(", network {}", sandboxing.docker.network_for(category).as_str()),
            BackendName::Subprocess | BackendName::Native => String::new(),
        };
        let _ = writeln!(text, "{category:16} {backend}{network}");
    }
    let commands = config.backend_for_commands.unwrap_or(BackendName::Native);
    let _ = writeln!(text, "{:16} {commands}", "exec, session");
    let _ = writeln!(
        text,
        "\nTools on the host need no workspace and reach what rules allow; overrides don't move them."
    );
    let _ = writeln!(
        text,
        "A list of programs (--programs, or a level's) moves tools in docker and subprocess to native sandboxes."
    );
    for backend in sandboxing.named_backends() {
        let limits = match backend {
            BackendName::Subprocess => {
                "memory, processors, processes and scratch as the host has them".to_owned()
            }
            BackendName::Docker | BackendName::Native => limits(sandboxing.limits_of(backend)),
        };
        let required: Vec<String> = sandboxing.required_of(backend).names().map(str::to_owned).collect();
        let _ = writeln!(text, "\n{backend}: {limits}");
        if !required.is_empty() {
            let _ = writeln!(text, "  requires {}", required.join(", "));
        }
    }
    text
}

fn limits(limits: Limits) -> String {
    let of_host = || "as the host has it".to_owned();
    let memory = limits.memory_bytes.map_or_else(of_host, size);
    let millicpus = |millicpus| format!("{}", f64::from(millicpus) / 1_000.0);
    let processors = limits.millicpus.map_or_else(of_host, millicpus);
    let scratch = size(limits.scratch_bytes);
    format!("memory {memory}, processors {processors}, {} processes, scratch {scratch}", limits.processes)
}
