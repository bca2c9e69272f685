//! Tools of each kind of agent (`docs/contracts/job.md#j14.3`, `docs/contracts/job.md#j14.4`), by exact name or by namespace.

use belljar_contract::tool::AgentKind;

/// Tool that requests an approval; listed for agents whose calls can require one.
const ASKING: &str = "request_human_approval";

/// Tools that an agent in a sandbox may call.
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
    "git_clone",
    "git_push",
    "help.*",
    ASKING,
];

/// Tools that it may never call, whatever is installed or configured: they control the host itself.
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

/// Tools that a planning agent may call.
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

/// Tools that an analyzing agent may call.
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

/// Returns true if a kind of agent may call the tool of that name.
pub(super) fn is_listed(kind: AgentKind, name: &str) -> bool {
    match kind {
        AgentKind::Sandbox => is_in(SANDBOX, name),
        AgentKind::ProjectManager => is_in(PROJECT_MANAGER, name),
        AgentKind::ProjectAnalyst => is_in(PROJECT_ANALYST, name),
        AgentKind::Operator => true,
    }
}

/// Returns true if a kind of agent may never call it. Case is ignored: a tool that is installed under such a name is denied,
/// too.
pub(super) fn is_never(kind: AgentKind, name: &str) -> bool {
    kind == AgentKind::Sandbox && is_in(NEVER_IN_A_SANDBOX, &name.to_ascii_lowercase())
}

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(namespace) => name.strip_prefix(namespace).is_some_and(|operation| !operation.is_empty()),
        None => *listed == name,
    })
}
