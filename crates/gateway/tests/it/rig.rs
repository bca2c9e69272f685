//! A gateway with a few tools, and access to its audit log.

use belljar_contract::category::Category;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::tool::{AgentKind, DomainCode, ToolName, ToolScope};
use belljar_gateway::Gateway;
use belljar_gateway::caller_slot::CallerSlot;
use belljar_policy::tool::ToolGrants;
use belljar_store::audit::{AuditLog, folder_in};
use belljar_tools::answer::{Answer, Failure, Success};
use belljar_tools::caller::Caller;
use belljar_tools::definition::{Definition, Effect, SECRET_MARK};
use belljar_tools::registry::Registry;
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The task that callers of these tests work on.
pub(crate) const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

pub(crate) struct Rig {
    pub(crate) gateway: Arc<Gateway>,
    /// Number of times that tools were really called.
    pub(crate) calls: Arc<AtomicUsize>,
    state: TempDir,
}

/// A tool that returns its arguments, waits, fails or returns too much, by its name.
struct ScriptedTool {
    definition: Definition,
    calls: Arc<AtomicUsize>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|gateway| gateway)
    }

    /// Returns a rig whose gateway is modified by `more`.
    pub(crate) fn with(more: impl FnOnce(Gateway) -> Gateway) -> Self {
        let state = tempfile::tempdir().unwrap();
        let audit = Arc::new(AuditLog::open(&folder_in(state.path())).unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let registry = Registry::new(definitions().into_iter().map(|definition| {
            Arc::new(ScriptedTool { definition, calls: Arc::clone(&calls) }) as Arc<dyn Tool>
        }));
        let gateway = more(Gateway::new(Arc::new(registry.unwrap()), audit));
        Self { gateway: Arc::new(gateway), calls, state }
    }

    pub(crate) fn called(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns the audit records of calls, in order.
    pub(crate) fn records(&self) -> Vec<(String, Value)> {
        records(&folder_in(self.state.path()))
    }

    /// Returns the audit lines about calls.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = lines(&folder_in(self.state.path()));
        lines.into_iter().filter(|line| line.contains("\"kind\":\"tool_")).collect()
    }
}

/// Returns every record of tool calls in that audit log.
fn records(folder: &Path) -> Vec<(String, Value)> {
    let values = lines(folder);
    let values = values.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tools = values.filter(|value| value["kind"].as_str().is_some_and(|kind| kind.starts_with("tool_")));
    tools.map(|value| (value["kind"].as_str().unwrap().to_owned(), value["event"].clone())).collect()
}

/// Returns every line of that audit log.
fn lines(folder: &Path) -> Vec<String> {
    let mut segments: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let lines = segments.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    lines.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn definitions() -> Vec<Definition> {
    let define = |name: &str, input| {
        Definition::new(ToolName::parse(name).unwrap(), Category::Other, "Echoes the message.", input)
    };
    let said = json!({
        "type": "object", "required": ["task_id"], "additionalProperties": false,
        "properties": {
            "task_id": { "type": "string" }, "text": { "type": "string", "maxLength": 4000 },
            "key": { "type": "string", SECRET_MARK: true }
        }
    });
    let artifact_get = define("artifact.get", said.clone());
    let artifact_put = Definition { effect: Effect::Idempotent, ..define("artifact.put", said.clone()) };
    let guarded = Definition { is_guarded: true, ..define("artifact.list", json!({ "type": "object" })) };
    let fetch = Definition { reaches_out: true, ..define("web.fetch", said.clone()) };
    let slow = Definition { within: Duration::from_millis(50), ..define("help.slow", said.clone()) };
    let exec = Definition { scope: ToolScope::Pm, ..define("sandbox.exec", json!({ "type": "object" })) };
    let free = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let of = |name: &str, category| {
        Definition::new(ToolName::parse(name).unwrap(), category, "Echoes the message.", free.clone())
    };
    let free = ["tell", "break", "where", "wait"].map(|name| of(name, Category::Design));
    let free = free.into_iter().chain([of("run", Category::CodeExecution)]);
    let others = ["help.fail", "help.much", "help.wait", "db.task.get", "skills.create"];
    let others = others.map(|name| define(name, said.clone()));
    let own = [artifact_get, artifact_put, guarded, fetch, slow, exec];
    own.into_iter().chain(others).chain(free).collect()
}

impl Tool for ScriptedTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, _: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        async move {
            match self.definition.name.as_str() {
                "help.fail" => {
                    const SAID: &str =
                        "glpat-hunter2hunter2hunter2 was wrong; there are code:write, code:read";
                    Err(Failure::new(DomainCode::ToolFailed, SAID))
                }
                "help.much" => Ok(Success::of(json!("x".repeat(2 << 20)))),
                "break" => panic!("{}", arguments["text"].as_str().unwrap_or_default()),
                "where" => Ok(Success::of(json!(format!("{:?}", std::thread::current().id())))),
                "help.slow" | "help.wait" | "wait" => std::future::pending().await,
                _ => Ok(Success::of(Value::Object(arguments))),
            }
        }
        .boxed()
    }
}

/// Returns a caller that works on a job in a sandbox.
pub(crate) fn in_sandbox() -> Caller {
    let id = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d01";
    Caller::in_sandbox(
        TaskId::parse(TASK).unwrap(),
        JobId::parse(id).unwrap(),
        RunId::parse(id).unwrap(),
        ToolGrants::default(),
    )
}

/// Returns a planner.
pub(crate) fn planner() -> Caller {
    Caller::of(AgentKind::ProjectManager)
}

/// Returns a slot for that caller, which is never removed.
pub(crate) fn seat(caller: Caller) -> CallerSlot {
    CallerSlot::new(caller, CancellationToken::new())
}
