//! The tools of each kind of agent (`spec/1 §MCP Tool Access`), by exact name or by everything below a namespace.

use belljar_contract::tool::AgentKind;

/// What asks a person; whoever may be asked about is shown it.
const ASKING: &str = "request_human_approval";

/// What an agent in a sandbox may call.
const SANDBOX: &[&str] = &[
    "artifact.*",
    "memory.*",
    "skills.list",
    "skills.get",
    "web.fetch",
    "web.search",
    "html_parser",
    "http_request",
    "render_chart",
    "api.call",
    "sql_query",
    "schema_inspect",
    "query_metrics",
    "help.*",
    ASKING,
];

/// What it never may, whatever anybody installs or configures: these reach the host's own affairs.
const NEVER_IN_A_SANDBOX: &[&str] = &[
    "db.*",
    "node.*",
    "sandbox.*",
    "job.*",
    "task.*",
    "settings.*",
    "list_approvals",
    "show_approval",
    "approve_call",
    "deny_call",
    "skills.create",
    "skills.update",
    "skills.delete",
];

/// What one that plans may call.
const PROJECT_MANAGER: &[&str] = &[
    "artifact.*",
    "skills.*",
    "sandbox.*",
    "node.*",
    "job.*",
    "task.*",
    "db.*",
    "model.*",
    "connector.*",
    "persona.*",
    "git.*",
    "web.fetch",
    "web.search",
    "html_parser",
    "http_request",
    "render_chart",
    "api.call",
    "sql_query",
    "schema_inspect",
    "sql_execute",
    "sql_migrate",
    "query_metrics",
    "send_notification",
    "send_external_message",
    "help.*",
    "list_approvals",
    "show_approval",
    "approve_call",
    "deny_call",
    ASKING,
];

/// What one that looks into things may.
const PROJECT_ANALYST: &[&str] = &[
    "artifact.get",
    "artifact.list",
    "skills.list",
    "skills.get",
    "job.get",
    "job.list",
    "task.get",
    "task.list",
    "db.preference.get",
    "db.preference.list",
    "db.preference.effective",
    "persona.*",
    "web.fetch",
    "web.search",
    "html_parser",
    "render_chart",
    "api.call",
    "sql_query",
    "schema_inspect",
    "query_metrics",
    "help.*",
    ASKING,
];

/// Whether a name is among those that such an agent may call.
pub(super) fn is_listed(kind: AgentKind, name: &str) -> bool {
    match kind {
        AgentKind::Sandbox => is_in(SANDBOX, name),
        AgentKind::ProjectManager => is_in(PROJECT_MANAGER, name),
        AgentKind::ProjectAnalyst => is_in(PROJECT_ANALYST, name),
        AgentKind::Operator => true,
    }
}

/// Whether such an agent never may call it. In any spelling: a tool that somebody installs under such a name is none of theirs.
pub(super) fn is_never(kind: AgentKind, name: &str) -> bool {
    kind == AgentKind::Sandbox && is_in(NEVER_IN_A_SANDBOX, &name.to_ascii_lowercase())
}

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(namespace) => name.strip_prefix(namespace).is_some_and(|operation| !operation.is_empty()),
        None => *listed == name,
    })
}
