//! `memory.*`: what an agent notes down for the rest of its job.

use super::{Clock, Tools};
use crate::answer::{Answer, Failure, Page, Success};
use crate::caller::Caller;
use crate::definition::{Definition, Effect};
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::category::Category;
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::tool::DomainCode;
use belljar_store::memory::{Added, Memory, MemoryEntry, MemoryError, MemoryKey, Note, Of, Summary};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where notes are.
#[derive(Clone)]
pub struct Notes {
    /// All of them.
    pub memory: Memory,
    /// The time of day.
    pub clock: Clock,
}

/// So many are listed from the database at once.
const AT_ONCE: u32 = 500;

/// What `memory.add` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddArguments {
    /// The task.
    task_id: TaskId,
    /// The job whose note it is.
    job_id: JobId,
    /// Under which it is found again.
    #[schemars(length(min = 1, max = 128))]
    key: String,
    /// The note.
    content: String,
    /// What a list shows of it.
    #[schemars(length(max = 512))]
    summary: Option<String>,
}

/// What `memory.retrieve` and `memory.delete` take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyArguments {
    /// The task.
    task_id: TaskId,
    /// The job whose note it is.
    job_id: JobId,
    /// Under which it was added.
    #[schemars(length(min = 1, max = 128))]
    key: String,
}

/// What `memory.list` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The task.
    task_id: TaskId,
    /// The job whose notes are listed.
    job_id: JobId,
    /// So many are passed over.
    offset: Option<usize>,
    /// So many follow at most.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

struct Add(Arc<Notes>);

struct List(Arc<Notes>);

struct Retrieve(Arc<Notes>);

struct Delete(Arc<Notes>);

/// The tools.
///
/// # Errors
/// None in truth: their names are names.
pub fn tools(notes: Notes) -> Tools {
    let notes = Arc::new(notes);
    let define = |name, summary, input| Definition::named(name, Category::Memory, summary, input);
    let add = Definition {
        effect: Effect::Idempotent,
        description: "Keeps a note for the rest of the job. The same key again replaces it. Fails with \
            `limit_exceeded` when the job has no more room."
            .to_owned(),
        ..define("memory.add", "Keeps a note for the rest of the job.", schema_of::<AddArguments>())?
    };
    let list =
        define("memory.list", "Lists the job's notes by key and summary.", schema_of::<ListArguments>())?;
    let retrieve = define("memory.retrieve", "Gives a note of the job.", schema_of::<KeyArguments>())?;
    let delete = Definition {
        effect: Effect::Destructive,
        ..define("memory.delete", "Removes a note of the job.", schema_of::<KeyArguments>())?
    };
    Ok(vec![
        tool(add, Add(Arc::clone(&notes))),
        tool(list, List(Arc::clone(&notes))),
        tool(retrieve, Retrieve(Arc::clone(&notes))),
        tool(delete, Delete(notes)),
    ])
}

impl TypedTool for Add {
    type Arguments = AddArguments;

    async fn call(&self, _: &Caller, arguments: AddArguments) -> Answer {
        let AddArguments { task_id, job_id, key, content, summary } = arguments;
        let wrong = |name: &'static str| {
            move |error: belljar_store::memory::ParseMemoryKeyError| {
                Failure::argument(format!("{name}: {error}"))
            }
        };
        let key = MemoryKey::parse(&key).map_err(wrong("key"))?;
        let summary = summary.as_deref().map(Summary::parse).transpose().map_err(wrong("summary"))?;
        let note = Note::new(key.clone(), content, summary).map_err(wrong("content"))?;
        let added = self.0.memory.add(&Of { task_id, job_id }, note, (self.0.clock)()).await;
        let added = added.map_err(|error| failed(&error))?;
        Ok(Success::of(json!({ "key": key.as_str(), "replaced": added == Added::Replaced })))
    }
}

impl TypedTool for List {
    type Arguments = ListArguments;

    async fn call(&self, _: &Caller, arguments: ListArguments) -> Answer {
        let ListArguments { task_id, job_id, offset, limit } = arguments;
        let of = Of { task_id, job_id };
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.0.memory.list(&of, after.as_ref(), AT_ONCE).await;
            let page = page.map_err(|error| failed(&error))?;
            all.extend(page.entries.iter().map(told));
            after = page.next;
            if after.is_none() {
                return Ok(Success::page(all, Page::new(offset, limit)));
            }
        }
    }
}

impl TypedTool for Retrieve {
    type Arguments = KeyArguments;

    async fn call(&self, _: &Caller, arguments: KeyArguments) -> Answer {
        let (of, key) = arguments.parts()?;
        let (entry, content) = self.0.memory.retrieve(&of, &key).await.map_err(|error| failed(&error))?;
        let mut told = told(&entry);
        told["content"] = content.into();
        Ok(Success::of(told))
    }
}

impl TypedTool for Delete {
    type Arguments = KeyArguments;

    async fn call(&self, _: &Caller, arguments: KeyArguments) -> Answer {
        let (of, key) = arguments.parts()?;
        self.0.memory.delete(&of, &key).await.map_err(|error| failed(&error))?;
        Ok(Success::of(json!({ "key": key.as_str() })))
    }
}

// === impl KeyArguments ===

impl KeyArguments {
    fn parts(self) -> Result<(Of, MemoryKey), Failure> {
        let key = MemoryKey::parse(&self.key).map_err(|error| Failure::argument(format!("key: {error}")))?;
        Ok((Of { task_id: self.task_id, job_id: self.job_id }, key))
    }
}

fn failed(error: &MemoryError) -> Failure {
    let code = match error {
        MemoryError::UnknownJob { .. } | MemoryError::Missing { .. } => DomainCode::NotFound,
        MemoryError::Over { .. } => DomainCode::Conflict,
        MemoryError::TooMuch { .. } => DomainCode::LimitExceeded,
        MemoryError::Database(error) => return Failure::unreachable(error),
    };
    Failure::new(code, error.to_string())
}

fn told(entry: &MemoryEntry) -> Value {
    json!({
        "key": entry.key.as_str(),
        "summary": entry.summary,
        "size_bytes": entry.size_bytes,
        "created_at": entry.created_at.to_string(),
        "updated_at": entry.updated_at.to_string(),
    })
}
