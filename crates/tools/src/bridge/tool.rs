//! A tool of another server, registered as one of the host's.

use super::client::ToolDescription;
use super::config::{ServerConfig, ServerTransport};
use super::server::Server;
use crate::answer::{Answer, Failure};
use crate::caller::Caller;
use crate::definition::{Definition, Effect};
use crate::{Arguments, Tool};
use belljar_contract::approval::CallScope;
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, ToolName};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A tool of another server.
pub(super) struct RemoteTool {
    definition: Definition,
    /// Its name at its server.
    name: String,
    server: Arc<Server>,
}

/// Reasons why a tool is left out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OmittedToolError {
    #[error("its name is not a valid tool name")]
    Name,
    #[error("its name collides with {other}")]
    Collision { other: String },
    #[error("its input schema has {bytes} bytes; at most {LARGEST_SCHEMA} are allowed")]
    Schema { bytes: usize },
}

/// Maximum sizes in bytes of a tool's schema, description and summary.
const LARGEST_SCHEMA: usize = 64 << 10;
const LONGEST_DESCRIPTION: usize = 4 << 10;
const LONGEST_SUMMARY: usize = 200;

/// Additional time limit of a call, for waiting and for a restart of the server.
const BESIDES: Duration = Duration::from_secs(5);

/// Returns the configured tools with their names here, and those that must be left out.
pub(super) fn named(
    config: &ServerConfig,
    told: Vec<ToolDescription>,
) -> (BTreeMap<ToolName, ToolDescription>, Vec<(String, OmittedToolError)>) {
    let (mut named, mut left_out) = (BTreeMap::<ToolName, ToolDescription>::new(), Vec::new());
    for tool in told.into_iter().filter(|tool| config.is_meant(&tool.name)) {
        let refused = match name_of(&config.name, &tool.name) {
            None => OmittedToolError::Name,
            Some(name) => match (named.get(&name), tool.input.to_string().len()) {
                (Some(other), _) => OmittedToolError::Collision { other: short(&other.name) },
                (_, bytes @ LARGEST_SCHEMA..) => OmittedToolError::Schema { bytes },
                _ => {
                    named.insert(name, tool);
                    continue;
                }
            },
        };
        left_out.push((short(&tool.name), refused));
    }
    (named, left_out)
}

fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Returns its name here. Characters that names can't have are replaced.
fn name_of(server: &str, tool: &str) -> Option<ToolName> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = tool.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    ToolName::parse(&format!("mcp_{server}_{plain}")).ok().filter(|_| !plain.is_empty())
}

// === impl RemoteTool ===

impl RemoteTool {
    pub(super) fn new(server: &Arc<Server>, name: ToolName, told: ToolDescription) -> Self {
        let ToolDescription { name: remote_name, description, input, hints } = told;
        let config = server.config();
        let description = printable(&description, LONGEST_DESCRIPTION);
        let summary = description.lines().map(str::trim).find(|line| !line.is_empty());
        let summary = summary.map_or_else(|| short(&remote_name), |line| printable(line, LONGEST_SUMMARY));
        let effect = match hints {
            _ if hints.is_read_only => Effect::ReadOnly,
            _ if hints.is_destructive => Effect::Destructive,
            _ if hints.is_idempotent => Effect::Idempotent,
            _ => Effect::Additive,
        };
        let definition = Definition {
            description,
            cost: CostTier::Moderate,
            scope: config.scope,
            effect,
            // A sandboxed program has no network.
            reaches_out: match &config.way {
                ServerTransport::Stdio(stdio) => stdio.is_unsealed,
                ServerTransport::Http(_) => true,
            },
            is_installed: true,
            within: config.timeout + config.connect_timeout + BESIDES,
            ..Definition::new(name, Category::Mcp, &summary, input_of(input))
        };
        Self { definition, name: remote_name, server: Arc::clone(server) }
    }
}

/// Returns the schema, with type `object` in any case.
fn input_of(mut input: Value) -> Value {
    if let Some(members) = input.as_object_mut() {
        members.entry("type").or_insert_with(|| json!("object"));
    }
    input
}

fn printable(text: &str, longest: usize) -> String {
    let kept: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    kept[..kept.floor_char_boundary(longest)].to_owned()
}

impl Tool for RemoteTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        let is_read_only = !self.definition.effect.is_change();
        self.server.call(caller, (&self.name, is_read_only), arguments).boxed()
    }

    fn scope<'a>(&'a self, _: &'a Caller, _: Arguments) -> BoxFuture<'a, Result<CallScope, Failure>> {
        std::future::ready(Ok(CallScope::from_iter([("server".to_owned(), self.server.config().scope())])))
            .boxed()
    }
}
