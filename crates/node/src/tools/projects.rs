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
struct OfProject {
    tool: Arc<dyn Tool>,
    jobs: Jobs,
}

/// Wraps each of the tools that take a `task_id`.
pub(super) fn kept_apart(tools: Vec<Arc<dyn Tool>>, jobs: &Jobs) -> Vec<Arc<dyn Tool>> {
    let kept_apart = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
        match tool.definition().input["properties"].get("task_id") {
            Some(_) => Arc::new(OfProject { tool, jobs: jobs.clone() }),
            None => tool,
        }
    };
    tools.into_iter().map(kept_apart).collect()
}

/// Returns the project that the caller is bound to, if any.
pub(super) fn of(caller: &Caller) -> Option<ProjectId> {
    caller.project_id.as_deref().and_then(|id| ProjectId::parse(id).ok())
}

// === impl OfProject ===

impl OfProject {
    /// Checks that the task that the call names, if any, has no job of another project. A task without jobs is accepted: its
    /// first one may be about to be made.
    async fn check(&self, caller: &Caller, arguments: &Arguments) -> Result<(), Failure> {
        let named = arguments.get("task_id").and_then(Value::as_str).and_then(|id| TaskId::parse(id).ok());
        // The gateway has checked that a caller that is bound to a task names no other.
        let (Some(project_id), Some(task_id), None) = (of(caller), named, &caller.task_id) else {
            return Ok(());
        };
        match self.jobs.has_foreign(&task_id, &project_id).await {
            Ok(false) => Ok(()),
            Ok(true) => {
                Err(Failure::new(DomainCode::NotFound, format!("your project has no task {task_id}")))
            }
            Err(error) => Err(Failure::unreachable(&error)),
        }
    }
}

impl Tool for OfProject {
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
        self.tool.takes_approval(caller, arguments)
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
