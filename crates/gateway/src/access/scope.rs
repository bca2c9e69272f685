//! The scope of a call: objects that it acts on besides its arguments, by its gateway and by its tool.

use belljar_contract::approval::CallScope;
use belljar_tools::answer::Failure;
use belljar_tools::caller::Caller;
use belljar_tools::definition::Definition;
use belljar_tools::{Arguments, Tool};
use futures_util::future::BoxFuture;
use std::fmt::Debug;

/// Source of the scope that all calls of a gateway have, such as the workspace of its sessions.
pub trait ScopeSource: Debug + Send + Sync {
    /// Returns the scope of calls of that tool. The tool's own scope takes precedence.
    ///
    /// # Errors
    /// [`Failure`] when the call can't be made.
    fn scope<'a>(&'a self, definition: &'a Definition) -> BoxFuture<'a, Result<CallScope, Failure>>;
}

/// Returns a caller's scope at this gateway: the task that it is bound to, and the source's.
pub(crate) async fn of_place(
    source: Option<&dyn ScopeSource>,
    caller: &Caller,
    definition: &Definition,
) -> Result<CallScope, Failure> {
    let mut scope = CallScope::new();
    if let Some(task_id) = &caller.task_id {
        scope.insert("task_id".to_owned(), task_id.as_str().into());
    }
    if let Some(source) = source {
        scope.extend(source.scope(definition).await?);
    }
    Ok(scope)
}

/// Returns the complete scope of a call.
pub(crate) async fn of_call(
    source: Option<&dyn ScopeSource>,
    caller: &Caller,
    (tool, arguments): (&dyn Tool, &Arguments),
) -> Result<CallScope, Failure> {
    let mut scope = of_place(source, caller, tool.definition()).await?;
    scope.extend(tool.scope(caller, arguments.clone()).await?);
    Ok(scope)
}
