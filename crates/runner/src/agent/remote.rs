//! Tools of the host's gateway, as far as they were disclosed to the model.

use super::conversation::Definition;
use super::disclosure::{self, LoadedTools};
use super::toolbox::{GatewayTool, JobIds, Toolbox};
use super::tools;
use crate::deadline::{Deadline, Interruption};
use crate::log::Log;
use crate::mcp::{Gateway, GatewayCapabilities, McpError, ToolCallResult};
use belljar_contract::job::Job;
use belljar_contract::text::with_causes;
use serde_json::{Map, Value};

/// Connection to the host's gateway and its tools; empty if there is no gateway.
#[derive(Default)]
pub(super) struct Remote {
    gateway: Option<Gateway>,
    has_resources: bool,
    toolbox: Toolbox,
    disclosure: LoadedTools,
    ids: JobIds,
}

/// Maximum number of unusable tools that the log names.
const MOST_NAMED: usize = 20;

// === impl Remote ===

impl Remote {
    /// Asks the gateway for the tools of this job. Without a gateway, or if its answer can't be read, the agent has
    /// only its own tools; the log reports that.
    pub(super) fn find(
        job: &Job,
        window: u32,
        log: &Log<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Self, Interruption> {
        let none = |why: &str| {
            log.warn(format!("the agent has only its own tools: {why}"));
            Ok(Self::default())
        };
        let mut gateway = match Gateway::of_environment() {
            None => return none("no gateway is configured"),
            Some(Err(error)) => return none(&error.to_string()),
            Some(Ok(gateway)) => gateway,
        };
        let found = gateway.discover(deadline).and_then(|offer| match offer.tools {
            true => Ok((offer, gateway.tools(deadline)?)),
            false => Ok((offer, crate::mcp::ToolList::default())),
        });
        let (GatewayCapabilities { resources: has_resources, .. }, listed) = match found {
            Ok(found) => found,
            Err(McpError::Interrupted(interrupted)) => return Err(interrupted),
            Err(error) => return none(&with_causes(&error)),
        };
        for left_out in listed.left_out.iter().take(MOST_NAMED) {
            log.warn(format!("a tool of the gateway is left out: {left_out}"));
        }
        let toolbox = Toolbox::of(listed.tools, &tools::own_names());
        let disclosure = LoadedTools::of(&toolbox, window);
        let ids = JobIds { task: job.task_id.to_string(), job: job.job_id.to_string() };
        Ok(Self { gateway: Some(gateway), has_resources, toolbox, disclosure, ids })
    }

    /// Returns the outline of the tools that is part of every request.
    pub(super) fn outline(&self) -> String {
        self.disclosure.outline(&self.toolbox)
    }

    /// Returns the tools that a model may call now; with `only_looks` only those that are declared read-only.
    pub(super) fn offered(&self, only_looks: bool) -> Vec<Definition> {
        let is_offered = |(at, known): &(usize, &GatewayTool)| {
            self.disclosure.is_loaded(*at) && (!only_looks || known.tool.is_read_only)
        };
        let loaded = self.toolbox.tools().iter().enumerate().filter(is_offered);
        let mut all = tools::discovery(self.disclosure.is_on(), self.has_material());
        all.extend(loaded.map(|(_, known)| known.definition.clone()));
        all
    }

    /// Returns true if any tool has documents to read.
    fn has_material(&self) -> bool {
        self.has_resources && self.toolbox.tools().iter().any(|known| !known.tool.resources.is_empty())
    }

    /// Returns the names of the loaded tools; `None` if nothing must be loaded.
    pub(super) fn loaded(&self) -> Option<Vec<&str>> {
        let names = self.disclosure.loaded(&self.toolbox).map(|known| known.definition.name.as_str());
        self.disclosure.is_on().then(|| names.collect())
    }

    /// See [`LoadedTools::relieve`].
    pub(super) fn relieve(&mut self, fill_percent: usize) -> bool {
        self.disclosure.relieve(fill_percent)
    }

    /// See [`LoadedTools::give_way`].
    pub(super) fn give_way(&mut self) -> bool {
        self.disclosure.give_way()
    }

    /// Returns the reason why a tool of the gateway is not offered now.
    pub(super) fn why_not(&self, name: &str) -> Option<String> {
        let at = self.toolbox.find(name)?;
        let name = &self.toolbox.tools()[at].definition.name;
        Some(match self.disclosure.is_loaded(at) {
            true => format!(
                "its name is `{name}`; while criteria are checked, tools that may change something are not available"
            ),
            false => format!("it is not loaded: call `load_tool` with the tool_name {name}, then call it"),
        })
    }

    /// The name that a tool has at the gateway.
    pub(super) fn name_of<'n>(&'n self, name: &'n str) -> &'n str {
        self.toolbox.find(name).map_or(name, |at| self.toolbox.tools()[at].tool.name.as_str())
    }

    /// The place of a tool of that name at the gateway.
    pub(super) fn has(&self, name: &str) -> bool {
        self.toolbox.tools().iter().any(|known| known.tool.name == name)
    }

    /// Calls a tool; returns its text, and true if it has failed.
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &str,
        deadline: &Deadline<'_>,
    ) -> Result<ToolCallResult, String> {
        let (Some(at), Some(gateway)) = (self.toolbox.find(name), &mut self.gateway) else {
            return Err("there is no such tool".to_owned());
        };
        let said: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|error| format!("the arguments are wrong: {error}"))?;
        let known = &self.toolbox.tools()[at];
        let arguments = known.arguments(said, &self.ids);
        gateway.call(&known.tool.name, &arguments, deadline).map_err(|error| with_causes(&error))
    }

    /// Returns a line for each tool, of one category or of all.
    pub(super) fn list(&self, category: Option<&str>) -> Result<String, String> {
        self.disclosure.list(&self.toolbox, category)
    }

    /// Loads a tool; returns its full definition.
    pub(super) fn load(&mut self, name: &str) -> Result<String, String> {
        let at = self.toolbox.find(name).ok_or_else(|| no_tool(name))?;
        let unloaded = self.disclosure.load(at, &self.toolbox).map_err(|error| error.to_string())?;
        let mut text = format!("loaded:\n{}", disclosure::body(&self.toolbox.tools()[at]));
        let names = unloaded.iter().filter_map(|&at| self.toolbox.tools().get(at));
        let names: Vec<&str> = names.map(|known| known.definition.name.as_str()).collect();
        if !names.is_empty() {
            text.push_str(&format!("\nunloaded to make room: {}", names.join(", ")));
        }
        Ok(text)
    }

    /// Reads a document of a tool.
    pub(super) fn read(&mut self, name: &str, id: &str, deadline: &Deadline<'_>) -> Result<String, String> {
        let at = self.toolbox.find(name).ok_or_else(|| no_tool(name))?;
        let resources = &self.toolbox.tools()[at].tool.resources;
        let (Some(uri), Some(gateway)) = (resources.iter().find(|known| *known == id), &mut self.gateway)
        else {
            return Err(format!("the tool has no resource of that name; it has: {}", resources.join(", ")));
        };
        gateway
            .read_resource(uri, deadline)
            .map(|resource| resource.text)
            .map_err(|error| with_causes(&error))
    }
}

fn no_tool(name: &str) -> String {
    format!("there is no tool {}; `list_tools` lists them", crate::excerpt::within(name.to_owned(), 100))
}
