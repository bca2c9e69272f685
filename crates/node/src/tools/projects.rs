//! Keeps callers that are bound to a project away from the tasks of other projects.

use belljar_contract::approval::CallScope;
use belljar_contract::id::{ProjectId, TaskId};
use belljar_contract::tool::DomainCode;
use belljar_store::jobs::Jobs;
use belljar_tools::answer::{Answer, Failure};
use belljar_tools::caller::Caller;
use belljar_tools::definition::Definition;
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// A tool whose calls name only tasks of the caller's project.
struct ProjectTool {
    tool: Arc<dyn Tool>,
    jobs: Jobs,
}

/// Wraps each of the tools that take a task, as an id or as a scope.
pub(super) fn kept_apart(tools: Vec<Arc<dyn Tool>>, jobs: &Jobs) -> Vec<Arc<dyn Tool>> {
    let kept_apart = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
        let takes = |name| tool.definition().input["properties"].get(name).is_some();
        match ["task_id", "scope", "scope_id"].into_iter().any(takes) {
            true => Arc::new(ProjectTool { tool, jobs: jobs.clone() }),
            false => tool,
        }
    };
    tools.into_iter().map(kept_apart).collect()
}

/// Returns the project that the caller is bound to, if any.
pub(super) fn of(caller: &Caller) -> Option<ProjectId> {
    caller.project_id.as_deref().and_then(|id| ProjectId::parse(id).ok())
}

/// Returns the tasks that a call names.
fn tasks_of(arguments: &Arguments) -> impl Iterator<Item = TaskId> {
    let text = |name| arguments.get(name).and_then(Value::as_str);
    let scope = text("scope").and_then(|scope| scope.strip_prefix("task:"));
    let scope_id = text("scope_id").filter(|_| text("scope_type") == Some("task"));
    [text("task_id"), scope, scope_id].into_iter().flatten().filter_map(|id| TaskId::parse(id).ok())
}

// === impl ProjectTool ===

impl ProjectTool {
    /// Checks that no task that the call names is of another project. A call that may write binds a task that is of no project yet.
    async fn check(&self, caller: &Caller, arguments: &Arguments) -> Result<(), Failure> {
        // The gateway has checked that a caller that is bound to a task names no other.
        let (Some(project_id), None) = (of(caller), &caller.task_id) else { return Ok(()) };
        for task_id in tasks_of(arguments) {
            let is_own = match self.tool.definition().effect.is_change() {
                true => self.jobs.bind_to_project(&task_id, &project_id).await,
                false => self.jobs.is_of_other_project(&task_id, &project_id).await.map(|is_other| !is_other),
            };
            match is_own {
                Ok(true) => {}
                Ok(false) => {
                    let message = format!("your project has no task {task_id}");
                    return Err(Failure::new(DomainCode::NotFound, message));
                }
                Err(error) => return Err(Failure::unreachable(&error)),
            }
        }
        Ok(())
    }
}

impl Tool for ProjectTool {
    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            self.check(caller, &arguments).await?;
            self.tool.call(caller, arguments).await
        }
        .boxed()
    }

    fn scope<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<CallScope, Failure>> {
        async move {
            self.check(caller, &arguments).await?;
            self.tool.scope(caller, arguments).await
        }
        .boxed()
    }

    fn takes_approval<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        async move {
            self.check(caller, &arguments).await?;
            self.tool.takes_approval(caller, arguments).await
        }
        .boxed()
    }

    fn call_approved<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
        scope: &'a CallScope,
    ) -> BoxFuture<'a, Answer> {
        async move {
            self.check(caller, &arguments).await?;
            self.tool.call_approved(caller, arguments, scope).await
        }
        .boxed()
    }
}
