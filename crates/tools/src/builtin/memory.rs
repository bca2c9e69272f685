//! `memory.*`: notes of an agent for the rest of its job.

use super::{Clock, Tools};
use crate::answer::{Answer, Failure, Page, Success};
use crate::caller::Caller;
use crate::definition::{Definition, Effect};
use crate::typed::{NOT_BLANK, TypedTool, schema_of, tool};
use belljar_contract::category::Category;
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::tool::DomainCode;
use belljar_store::memory::{
    Memory, MemoryEntry, MemoryError, MemoryKey, MemoryNote, MemoryScope, NotePart, NoteWrite, SearchQuery,
    Summary,
};
use belljar_store::page;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Store of notes.
#[derive(Clone)]
pub struct NoteStore {
    /// The notes.
    pub memory: Memory,
    /// Returns the time of day.
    pub clock: Clock,
}

/// Arguments of `memory.add`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddArguments {
    /// The task.
    task_id: TaskId,
    /// The job that the note belongs to.
    job_id: JobId,
    /// Key under which the note can be retrieved.
    #[schemars(length(min = 1, max = 128))]
    key: String,
    /// The note.
    content: String,
    /// Summary, shown in lists.
    #[schemars(length(max = 512))]
    summary: Option<String>,
}

/// Arguments of `memory.retrieve` and `memory.delete`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyArguments {
    /// The task.
    task_id: TaskId,
    /// The job that the note belongs to.
    job_id: JobId,
    /// The note's key.
    #[schemars(length(min = 1, max = 128))]
    key: String,
}

/// Arguments of `memory.list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The task.
    task_id: TaskId,
    /// The job whose notes are listed.
    job_id: JobId,
    /// Number of entries to skip.
    offset: Option<usize>,
    /// Maximum number of entries to return.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// Arguments of `memory.search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// The task.
    task_id: TaskId,
    /// The job whose notes are searched.
    job_id: JobId,
    /// Words, at most sixteen; notes with any of them are found, regardless of case.
    #[schemars(length(min = 1, max = 400), regex(pattern = r"\S"), extend("x-belljar-expected" = NOT_BLANK))]
    query: String,
    /// Maximum number of results. Default: 10.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

const SEARCH: &str = "Searches keys, summaries and contents of the job's notes for words, and returns \
    the text around the first match (`snippet`). Notes are ranked by the number of matched words, \
    then by matches in key, summary and content, then newest first. Use `memory.retrieve` for a \
    whole note.";

/// Default number of results.
const USUAL_FOUND: usize = 10;

struct AddNoteTool(Arc<NoteStore>);

struct ListNotesTool(Arc<NoteStore>);

struct RetrieveNoteTool(Arc<NoteStore>);

struct SearchNotesTool(Arc<NoteStore>);

struct DeleteNoteTool(Arc<NoteStore>);

/// Returns the tools.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(notes: NoteStore) -> Tools {
    let notes = Arc::new(notes);
    let define = |name, summary, input| Definition::named(name, Category::Memory, summary, input);
    let add = Definition {
        effect: Effect::Idempotent,
        description: "Stores a note for the rest of the job; an existing note with the key is replaced. \
    Fails with `limit_exceeded` if the job's quota is exhausted."
            .to_owned(),
        ..define("memory.add", "Stores a note for the rest of the job.", schema_of::<AddArguments>())?
    };
    let list =
        define("memory.list", "Lists the job's notes by key and summary.", schema_of::<ListArguments>())?;
    let search = Definition {
        description: SEARCH.to_owned(),
        ..define("memory.search", "Searches the job's notes.", schema_of::<SearchArguments>())?
    };
    let retrieve = Definition {
        description: "Returns a whole note of the job by its key, as listed by `memory.search` or \
    `memory.list`."
            .to_owned(),
        ..define("memory.retrieve", "Returns a note of the job.", schema_of::<KeyArguments>())?
    };
    let delete = Definition {
        effect: Effect::Destructive,
        ..define("memory.delete", "Removes a note of the job.", schema_of::<KeyArguments>())?
    };
    Ok(vec![
        tool(add, AddNoteTool(Arc::clone(&notes))),
        tool(list, ListNotesTool(Arc::clone(&notes))),
        tool(search, SearchNotesTool(Arc::clone(&notes))),
        tool(retrieve, RetrieveNoteTool(Arc::clone(&notes))),
        tool(delete, DeleteNoteTool(notes)),
    ])
}

impl TypedTool for AddNoteTool {
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
        let note = MemoryNote::new(key.clone(), content, summary).map_err(wrong("content"))?;
        let added = self.0.memory.add(&MemoryScope { task_id, job_id }, note, (self.0.clock)()).await;
        let added = added.map_err(|error| failed(&error))?;
        Ok(Success::of(json!({ "key": key.as_str(), "replaced": added == NoteWrite::Replaced })))
    }
}

impl TypedTool for ListNotesTool {
    type Arguments = ListArguments;

    async fn call(&self, _: &Caller, arguments: ListArguments) -> Answer {
        let ListArguments { task_id, job_id, offset, limit } = arguments;
        let of = MemoryScope { task_id, job_id };
        let (kept, of) = (&self.0.memory, &of);
        let all = page::all(|after| async move { kept.list(of, after.as_ref(), page::MOST).await }).await;
        let all = all.map_err(|error| failed(&error))?;
        Ok(Success::page(all.iter().map(told).collect(), Page::new(offset, limit)))
    }
}

impl TypedTool for SearchNotesTool {
    type Arguments = SearchArguments;

    async fn call(&self, _: &Caller, arguments: SearchArguments) -> Answer {
        let SearchArguments { task_id, job_id, query, limit } = arguments;
        let query =
            SearchQuery::parse(&query).map_err(|error| Failure::argument(format!("/query: {error}")))?;
        let found = self.0.memory.search(&MemoryScope { task_id, job_id }, &query).await;
        let found = found.map_err(|error| failed(&error))?;
        let items = found.iter().map(|one| {
            let mut told = told(&one.entry);
            told["snippet"] = one.snippet.as_str().into();
            told["words_found"] = one.words.into();
            told["found_in"] = one.places.iter().copied().map(NotePart::as_str).collect();
            told
        });
        Ok(Success::page(items.collect(), Page::new(None, Some(limit.unwrap_or(USUAL_FOUND)))))
    }
}

impl TypedTool for RetrieveNoteTool {
    type Arguments = KeyArguments;

    async fn call(&self, _: &Caller, arguments: KeyArguments) -> Answer {
        let (of, key) = arguments.parts()?;
        let (entry, content) = self.0.memory.retrieve(&of, &key).await.map_err(|error| failed(&error))?;
        let mut told = told(&entry);
        told["content"] = content.into();
        Ok(Success::of(told))
    }
}

impl TypedTool for DeleteNoteTool {
    type Arguments = KeyArguments;

    async fn call(&self, _: &Caller, arguments: KeyArguments) -> Answer {
        let (of, key) = arguments.parts()?;
        self.0.memory.delete(&of, &key).await.map_err(|error| failed(&error))?;
        Ok(Success::of(json!({ "key": key.as_str() })))
    }
}

// === impl KeyArguments ===

impl KeyArguments {
    fn parts(self) -> Result<(MemoryScope, MemoryKey), Failure> {
        let key = MemoryKey::parse(&self.key).map_err(|error| Failure::argument(format!("key: {error}")))?;
        Ok((MemoryScope { task_id: self.task_id, job_id: self.job_id }, key))
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
