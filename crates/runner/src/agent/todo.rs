//! The todo list (`docs/contracts/job.md#j3`): made from the job, changed by the agent, and kept in a file beside the job, so
//! that a resumed run goes on from there.
//!
//! Programs of the sandbox can change the file. It decides what the agent works on next, never whether the job has
//! succeeded.

mod file;

pub(super) use file::TodoFile;

use super::material::Material;
use belljar_contract::result::agent::{TodoItem, TodoOrigin, TodoStatus};
use std::fmt::Write;

/// Items to be done, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TodoList {
    items: Vec<TodoItem>,
    next: u32,
}

/// A change that can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TodoError {
    #[error("there is no item {0}")]
    NoItem(u32),
    #[error("item {0} still has open parts")]
    OpenParts(u32),
    #[error("dropping an item of the job requires a reason")]
    NoReason,
    #[error("a title must be 1 to {LONGEST} bytes long")]
    NoTitle,
    #[error("an agent can add at most {MOST} items")]
    Full,
    #[error("the order must name every item exactly once")]
    NoOrder,
}

const LONGEST: usize = 500;
const MOST: usize = 100;
/// Maximum number of bytes of the list that a model gets; settled items are left out first.
const SHOWN: usize = 6 << 10;

// === impl TodoList ===

impl TodoList {
    /// Creates the list from the job's material; the job's steps have been run already.
    pub(super) fn of(material: &Material, steps: &[String]) -> Self {
        let mut list = Self { items: Vec::new(), next: 1 };
        let mut add = |origin, title: &str, status| list.push(title, origin, None, status);
        steps.iter().for_each(|step| add(TodoOrigin::Step, step, TodoStatus::Done));
        material.requirements.iter().for_each(|text| add(TodoOrigin::Requirement, text, TodoStatus::Open));
        for criterion in &material.criteria {
            add(TodoOrigin::AcceptanceCriterion, &criterion.text, TodoStatus::Open);
        }
        if let Some(task) = material.task.as_deref().filter(|_| list.items.iter().all(TodoItem::is_settled)) {
            list.push(task.lines().next().unwrap_or(task), TodoOrigin::Task, None, TodoStatus::Open);
        }
        list
    }

    fn push(&mut self, title: &str, origin: TodoOrigin, part_of: Option<u32>, status: TodoStatus) {
        let id = self.next;
        self.next += 1;
        let item = TodoItem { id, title: cut(title), status, origin, part_of, reason: None };
        // Parts are inserted after the item that they belong to.
        let at = part_of.and_then(|whole| {
            self.items.iter().rposition(|item| item.id == whole || item.part_of == Some(whole))
        });
        match at {
            Some(at) => self.items.insert(at + 1, item),
            None => self.items.push(item),
        }
    }

    /// Takes over the notes of an earlier run of the job: the statuses of open items, and items that the agent has
    /// added. What the job asks for is verified again before it counts as done.
    pub(super) fn adopt(&mut self, earlier: &Self) {
        let mut same: Vec<(u32, u32)> = Vec::new();
        for old in earlier.items.iter().filter(|old| old.origin != TodoOrigin::Agent) {
            let is_it = |item: &&mut TodoItem| item.origin == old.origin && item.title == old.title;
            let is_new = |item: &&mut TodoItem| !same.iter().any(|(_, id)| *id == item.id);
            let Some(item) = self.items.iter_mut().filter(is_new).find(is_it) else { continue };
            same.push((old.id, item.id));
            let is_asked_for = matches!(old.origin, TodoOrigin::Requirement | TodoOrigin::Task);
            if is_asked_for && old.status != TodoStatus::Open {
                item.status = TodoStatus::InProgress;
            }
        }
        for old in earlier.items.iter().filter(|old| old.origin == TodoOrigin::Agent) {
            let is_sound = |text: &str| !text.trim().is_empty() && text.len() <= LONGEST;
            if !is_sound(&old.title) || !old.reason.as_deref().is_none_or(is_sound) || self.is_full(1) {
                continue;
            }
            let part_of = same.iter().find(|(before, _)| Some(*before) == old.part_of).map(|(_, now)| *now);
            let id = self.next;
            self.push(&old.title, TodoOrigin::Agent, part_of, old.status);
            same.push((old.id, id));
            if let Some(item) = self.items.iter_mut().find(|item| item.id == id) {
                item.reason.clone_from(&old.reason);
            }
        }
    }

    /// Returns true if that many more items of the agent's own would exceed the limit.
    fn is_full(&self, more: usize) -> bool {
        self.items.iter().filter(|item| item.origin == TodoOrigin::Agent).count() + more > MOST
    }

    pub(super) fn items(&self) -> &[TodoItem] {
        &self.items
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &TodoItem> {
        self.items.iter().filter(|item| !item.is_settled())
    }

    /// Adds an item, or parts of one; returns their numbers.
    pub(super) fn add(&mut self, titles: &[String], part_of: Option<u32>) -> Result<Vec<u32>, TodoError> {
        if titles.is_empty() || titles.iter().any(|title| title.trim().is_empty() || title.len() > LONGEST) {
            return Err(TodoError::NoTitle);
        }
        if self.is_full(titles.len()) {
            return Err(TodoError::Full);
        }
        if let Some(whole) = part_of {
            let whole = self.item(whole)?;
            if whole.is_settled() {
                whole.status = TodoStatus::InProgress;
            }
        }
        let first = self.next;
        titles.iter().for_each(|title| self.push(title, TodoOrigin::Agent, part_of, TodoStatus::Open));
        Ok((first..self.next).collect())
    }

    /// Sets the status of an item.
    pub(super) fn set(
        &mut self,
        id: u32,
        status: TodoStatus,
        reason: Option<String>,
    ) -> Result<(), TodoError> {
        let has_open_parts = self.open().any(|item| item.part_of == Some(id));
        let item = self.item(id)?;
        let reason = reason.filter(|reason| !reason.trim().is_empty()).map(|reason| cut(&reason));
        match status {
            TodoStatus::Done if has_open_parts => return Err(TodoError::OpenParts(id)),
            TodoStatus::Dropped if item.origin != TodoOrigin::Agent && reason.is_none() => {
                return Err(TodoError::NoReason);
            }
            _ => {}
        }
        item.status = status;
        item.reason = reason.or(item.reason.take());
        if status == TodoStatus::Dropped {
            let parts = self.items.iter_mut().filter(|part| part.part_of == Some(id) && !part.is_settled());
            parts.for_each(|part| part.status = TodoStatus::Dropped);
        }
        Ok(())
    }

    /// Puts all items into another order.
    pub(super) fn reorder(&mut self, order: &[u32]) -> Result<(), TodoError> {
        let mut sorted: Vec<u32> = order.to_vec();
        sorted.sort_unstable();
        let mut known: Vec<u32> = self.items.iter().map(|item| item.id).collect();
        known.sort_unstable();
        if sorted != known {
            return Err(TodoError::NoOrder);
        }
        self.items.sort_by_key(|item| order.iter().position(|id| *id == item.id));
        Ok(())
    }

    fn item(&mut self, id: u32) -> Result<&mut TodoItem, TodoError> {
        self.items.iter_mut().find(|item| item.id == id).ok_or(TodoError::NoItem(id))
    }

    /// Returns the list as text for a model.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        let mut hidden = 0;
        let whole: usize = self
            .items
            .iter()
            .map(|item| item.title.len() + item.reason.as_ref().map_or(0, String::len))
            .sum();
        for item in &self.items {
            if whole > SHOWN && item.is_settled() {
                hidden += 1;
                continue;
            }
            let mark = match item.status {
                TodoStatus::Open => ' ',
                TodoStatus::InProgress => '>',
                TodoStatus::Done => 'x',
                TodoStatus::Dropped => '-',
            };
            let indent = if item.part_of.is_some() { "  " } else { "" };
            let reason = item.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            let line = format!("{indent}- [{mark}] {}. {}{reason}", item.id, item.title);
            if text.len() + line.len() > SHOWN * 2 {
                hidden += 1;
                continue;
            }
            let _ = writeln!(text, "{line}");
        }
        if hidden > 0 {
            let _ = writeln!(text, "({hidden} more, not shown)");
        }
        let _ = writeln!(text, "\n{} of {} done.", self.items.len() - self.open().count(), self.items.len());
        text
    }
}

/// Tells if an item needs no more work.
trait TodoStatusExt {
    fn is_settled(&self) -> bool;
}

impl TodoStatusExt for TodoItem {
    fn is_settled(&self) -> bool {
        matches!(self.status, TodoStatus::Done | TodoStatus::Dropped)
    }
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::job::context::Criterion;

    fn list() -> TodoList {
        let material = Material {
            requirements: vec!["build".to_owned()],
            criteria: vec![Criterion { text: "tests pass".to_owned(), check: None }],
            ..Material::default()
        };
        TodoList::of(&material, &["step-1: run_command".to_owned()])
    }

    #[test]
    fn todo_list_is_made_of_steps_requirements_and_criteria() {
        let list = list();
        let shown = "- [x] 1. step-1: run_command\n- [ ] 2. build\n- [ ] 3. tests pass\n\n1 of 3 done.\n";
        assert_eq!(list.shown(), shown);
        let task = Material { task: Some("do it\nsoon".to_owned()), ..Material::default() };
        assert_eq!(TodoList::of(&task, &[]).items()[0].title, "do it");
    }

    #[test]
    fn todo_subitems_follow_their_parent_and_block_its_completion() {
        let mut list = list();
        assert_eq!(list.add(&["a".to_owned(), "b".to_owned()], Some(2)).unwrap(), [4, 5]);
        assert_eq!(list.items().iter().map(|item| item.id).collect::<Vec<_>>(), [1, 2, 4, 5, 3]);
        assert_eq!(list.set(2, TodoStatus::Done, None), Err(TodoError::OpenParts(2)));
        list.set(4, TodoStatus::Done, None).unwrap();
        list.set(5, TodoStatus::Dropped, None).unwrap();
        list.set(2, TodoStatus::Done, Some("built".to_owned())).unwrap();
        assert_eq!(list.open().map(|item| item.id).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn required_todo_item_is_dropped_only_with_a_reason() {
        let mut list = list();
        assert_eq!(list.set(2, TodoStatus::Dropped, Some(" ".to_owned())), Err(TodoError::NoReason));
        list.set(2, TodoStatus::Dropped, Some("there is nothing to build".to_owned())).unwrap();
        assert_eq!(list.set(9, TodoStatus::Done, None), Err(TodoError::NoItem(9)));
        assert_eq!(list.add(&[String::new()], None), Err(TodoError::NoTitle));
        assert_eq!(list.add(&vec!["x".to_owned(); MOST + 1], None), Err(TodoError::Full));
    }

    #[test]
    fn earlier_todo_list_supplies_progress_but_not_items() {
        let mut earlier = list();
        earlier.add(&["a".to_owned()], Some(2)).unwrap();
        earlier.set(4, TodoStatus::Done, Some("seen".to_owned())).unwrap();
        earlier.set(2, TodoStatus::Done, None).unwrap();
        earlier.set(3, TodoStatus::Done, None).unwrap();
        let mut now = list();
        now.adopt(&earlier);
        let shown = "- [x] 1. step-1: run_command\n- [>] 2. build\n  - [x] 4. a (seen)\n- [ ] 3. tests pass\n\n2 of 4 done.\n";
        assert_eq!(now.shown(), shown);
        let mut of_another =
            TodoList::of(&Material { requirements: vec!["other".to_owned()], ..Material::default() }, &[]);
        of_another.adopt(&TodoList::default());
        assert_eq!(of_another.open().count(), 1);
    }

    #[test]
    fn todo_reorder_must_name_every_item_exactly_once() {
        let mut list = list();
        list.reorder(&[3, 2, 1]).unwrap();
        assert_eq!(list.items().iter().map(|item| item.id).collect::<Vec<_>>(), [3, 2, 1]);
        for wrong in [&[3, 2][..], &[3, 2, 2], &[3, 2, 1, 1]] {
            assert_eq!(list.reorder(wrong), Err(TodoError::NoOrder));
        }
    }
}
