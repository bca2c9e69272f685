//! Calls that change the todo list, which is on disk before the model gets the answer.

use super::{ToolContext, ToolOutcome, read};
use crate::agent::todo::{TodoError, TodoList};
use belljar_contract::result::agent::TodoStatus;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddTodoArguments {
    titles: Vec<String>,
    #[serde(default)]
    part_of: Option<u32>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateTodoArguments {
    id: u32,
    status: TodoStatus,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReorderTodoArguments {
    order: Vec<u32>,
}

pub(super) const ADD: &str = "todo_add";
pub(super) const UPDATE: &str = "todo_update";
pub(super) const REORDER: &str = "todo_reorder";

// === impl ToolContext ===

impl ToolContext<'_> {
    /// Changes the todo list; `None` if the call is for another tool.
    pub(super) fn change_todo(&mut self, tool: &str, arguments: &str) -> Option<ToolOutcome> {
        Some(match tool {
            ADD => read(arguments, |AddTodoArguments { titles, part_of, reason }| {
                self.change(|list| {
                    let added = list.add(&titles, part_of)?;
                    added.into_iter().try_for_each(|id| list.set(id, TodoStatus::Open, reason.clone()))
                })
            }),
            UPDATE => read(arguments, |UpdateTodoArguments { id, status, reason }| {
                self.change(|list| list.set(id, status, reason))
            }),
            REORDER => {
                read(arguments, |ReorderTodoArguments { order }| self.change(|list| list.reorder(&order)))
            }
            _ => return None,
        })
    }

    /// Changes the list, and its file.
    fn change(&mut self, change: impl FnOnce(&mut TodoList) -> Result<(), TodoError>) -> ToolOutcome {
        let mut changed = self.todo.clone();
        if let Err(error) = change(&mut changed) {
            return ToolOutcome::failed(error.to_string());
        }
        // Without its file the list is in memory only: the job goes on, but can't be resumed.
        if let Err(error) = self.file.keep(&changed) {
            self.surroundings.log.warn(format!("cannot write todo.json: {error}"));
        }
        *self.todo = changed;
        ToolOutcome::Told { text: self.todo.shown(), failed: false }
    }
}
