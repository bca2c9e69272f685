//! Tests of configured tools, called as the gateway calls them.

use belljar_contract::tool::{AgentKind, ToolName};
use belljar_contract::yaml::{self, MistakeLog};
use belljar_tools::answer::{Answer, Failure};
use belljar_tools::builtin::configured::config::ToolsConfig;
use belljar_tools::builtin::configured::{self, ConfiguredTools};
use belljar_tools::caller::Caller;
use belljar_tools::registry::Registry;
use serde_json::Value;

/// A test: its name and function, which returns the reason if it can't run here.
pub(crate) type Case = (&'static str, fn() -> Result<(), String>);

pub(crate) fn cases() -> Vec<Case> {
    [crate::postgres::CASES, crate::file::CASES, crate::message::CASES, crate::metrics::CASES].concat()
}

/// The tools of a configuration, and the problems found in it.
pub(crate) struct Rig {
    registry: Registry,
    pub(crate) unusable: Vec<String>,
}

// === impl Rig ===

impl Rig {
    /// Creates the tools configured below `tools`.
    pub(crate) fn new(text: &str) -> Self {
        let mut log = MistakeLog::default();
        let root = yaml::parse(text.as_bytes(), &mut log);
        let config = root.map(|root| ToolsConfig::read(&root, &mut log)).unwrap_or_default();
        log.finish().unwrap();
        let ConfiguredTools { tools, unusable } = configured::tools(&config).unwrap();
        let unusable = unusable.iter().map(ToString::to_string).collect();
        Self { registry: Registry::new(tools).unwrap(), unusable }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.registry.all().iter().map(|entry| entry.name().to_string()).collect()
    }

    /// Calls a tool with arguments that its schema accepts.
    pub(crate) fn call(&self, name: &str, arguments: &Value) -> Answer {
        let entry = self.registry.find(&ToolName::parse(name).unwrap()).unwrap();
        let checked = arguments.as_object().unwrap().clone();
        if let Err(error) = entry.schema.check(&checked) {
            return Err(Failure::argument(format!("{error:?}")));
        }
        let caller = Caller::of(AgentKind::Operator);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(entry.tool.call(&caller, checked))
    }
}
