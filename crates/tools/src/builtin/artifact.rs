//! `artifact.*`: files that are kept for a task after the sandbox that made them is gone
//! (`docs/contracts/requirements.md#r114`).

use super::{Clock, Tools};
use crate::answer::{Answer, Failure, Page, Success};
use crate::caller::Caller;
use crate::definition::{Definition, Effect};
use crate::typed::{TypedTool, schema_of, tool};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::category::Category;
use belljar_contract::id::TaskId;
use belljar_contract::media::MediaType;
use belljar_contract::path::ArtifactPath;
use belljar_contract::tool::DomainCode;
use belljar_store::artifacts::{Artifacts, ArtifactsError};
use belljar_store::page;
use belljar_store::task_artifacts::{NewTaskArtifact, PutError, TaskArtifact, TaskArtifacts};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Stores of tasks' files.
#[derive(Clone)]
pub struct ArtifactStore {
    /// The files' records.
    pub files: TaskArtifacts,
    /// The files' contents.
    pub contents: Artifacts,
    /// Returns the time of day.
    pub clock: Clock,
}

/// Maximum size of a file that is put by a tool, in bytes; larger ones are left in `/job/artifacts/`.
pub const LARGEST_FILE_BYTES: u64 = 3 << 20;

/// Maximum number of bytes of a file per answer.
const LARGEST_PIECE_BYTES: u64 = 512 << 10;

/// Arguments of `artifact.put`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PutArguments {
    /// The task that the file is kept for.
    task_id: TaskId,
    /// The file's path in the task: relative, with `/` between its parts.
    #[schemars(length(min = 1, max = 1024))]
    path: String,
    /// The content, in Base64; at most 3 MiB.
    content_bytes_base64: String,
    /// Its media type, such as `text/markdown`.
    #[schemars(length(max = 127))]
    content_type: Option<String>,
}

/// Arguments of `artifact.get`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// The task that the file is kept for.
    task_id: TaskId,
    /// The file's path in the task.
    #[schemars(length(min = 1, max = 1024))]
    path: String,
    /// Number of bytes to skip.
    offset_bytes: Option<u64>,
    /// Maximum number of bytes to return. Default and maximum: 524288.
    #[schemars(range(min = 0, max = 524_288))]
    max_bytes: Option<u64>,
}

/// Arguments of `artifact.list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The task whose files are listed.
    task_id: TaskId,
    /// Only paths with this prefix.
    #[schemars(length(max = 1024))]
    prefix: Option<String>,
    /// Number of entries to skip.
    offset: Option<usize>,
    /// Maximum number of entries to return.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

struct PutTool(Arc<ArtifactStore>);

struct GetTool(Arc<ArtifactStore>);

struct ListTool(Arc<ArtifactStore>);

/// Returns the tools.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(shelf: ArtifactStore) -> Tools {
    let shelf = Arc::new(shelf);
    let define = |name, summary, input| Definition::named(name, Category::FileSystem, summary, input);
    let put = Definition {
        effect: Effect::Idempotent,
        description: "Stores a file for the task; an existing file at the path is replaced. Returns \
    `path`, `size_bytes`, `checksum_sha256` and whether a file was `replaced`. Fails with \
    `limit_exceeded` if the task's quota is exhausted."
            .to_owned(),
        ..define("artifact.put", "Stores a file for the task.", schema_of::<PutArguments>())?
    };
    let get = Definition {
        description:
            "Returns a file of the task, or a part of it: `content_bytes_base64`, with `offset_bytes`, \
    and whether it `is_whole`. Request large files in parts."
                .to_owned(),
        ..define("artifact.get", "Returns a file of the task.", schema_of::<GetArguments>())?
    };
    let list = define("artifact.list", "Lists the files of the task.", schema_of::<ListArguments>())?;
    Ok(vec![
        tool(put, PutTool(Arc::clone(&shelf))),
        tool(get, GetTool(Arc::clone(&shelf))),
        tool(list, ListTool(shelf)),
    ])
}

impl TypedTool for PutTool {
    type Arguments = PutArguments;

    async fn call(&self, caller: &Caller, arguments: PutArguments) -> Answer {
        let path = path(&arguments.path)?;
        let content_type = arguments.content_type.as_deref().map(MediaType::parse).transpose();
        let content_type =
            content_type.map_err(|error| Failure::argument(format!("content_type: {error}")))?;
        let bytes = STANDARD.decode(&arguments.content_bytes_base64);
        let bytes = bytes.map_err(|error| Failure::argument(format!("content_bytes_base64: {error}")))?;
        let content = self.0.contents.keep_bytes(bytes.into(), LARGEST_FILE_BYTES).await;
        let content = content.map_err(unkept)?;
        let put = NewTaskArtifact {
            path,
            content: content.clone(),
            content_type,
            job_id: caller.job_id.clone(),
            run_id: caller.run_id.clone(),
        };
        let kept = self.0.files.put(&arguments.task_id, put, (self.0.clock)()).await;
        let kept = kept.map_err(|error| match error {
            PutError::TooMuch { .. } => Failure::new(DomainCode::LimitExceeded, error.to_string()),
            PutError::Database(error) => Failure::unreachable(&error),
        })?;
        Ok(Success::of(json!({
            "path": kept.artifact.path.as_str(),
            "size_bytes": content.size_bytes(),
            "checksum_sha256": content.sha256(),
            "replaced": kept.replaced.is_some(),
        })))
    }
}

impl TypedTool for GetTool {
    type Arguments = GetArguments;

    async fn call(&self, _: &Caller, arguments: GetArguments) -> Answer {
        let path = path(&arguments.path)?;
        let found = self.0.files.find(&arguments.task_id, &path).await;
        let found = found.map_err(|error| Failure::unreachable(&error))?;
        let found = found.ok_or_else(|| missing(&path))?;
        let from = arguments.offset_bytes.unwrap_or_default();
        let most = arguments.max_bytes.unwrap_or(LARGEST_PIECE_BYTES).min(LARGEST_PIECE_BYTES);
        let piece = self.0.piece(&found, (from, most)).await?;
        let mut told = told(&found);
        told["offset_bytes"] = from.into();
        told["is_whole"] = (piece.len() as u64 == found.content.size_bytes()).into();
        told["content_bytes_base64"] = STANDARD.encode(&piece).into();
        Ok(Success::of(told))
    }
}

impl TypedTool for ListTool {
    type Arguments = ListArguments;

    async fn call(&self, _: &Caller, arguments: ListArguments) -> Answer {
        let prefix = arguments.prefix.unwrap_or_default();
        let (kept, of, prefix) = (&self.0.files, &arguments.task_id, &prefix);
        let all =
            page::all(|after| async move { kept.list(of, prefix, after.as_ref(), page::MOST).await }).await;
        let all = all.map_err(|error| Failure::unreachable(&error))?;
        Ok(Success::page(all.iter().map(told).collect(), Page::new(arguments.offset, arguments.limit)))
    }
}

// === impl ArtifactStore ===

impl ArtifactStore {
    /// Returns at most `most` bytes from position `from` on.
    async fn piece(&self, file: &TaskArtifact, (from, most): (u64, u64)) -> Result<Vec<u8>, Failure> {
        let mut stream = self.contents.read(file.content.sha256()).await.map_err(unkept)?;
        let (mut at, mut piece) = (0_u64, Vec::new());
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(|error| Failure::internal("read the file", &error))?;
            let skipped = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
            at += bytes.len() as u64;
            let room = usize::try_from(most).unwrap_or(usize::MAX) - piece.len();
            piece.extend(bytes[skipped..].iter().take(room));
            if piece.len() as u64 == most {
                break;
            }
        }
        Ok(piece)
    }
}

fn path(text: &str) -> Result<ArtifactPath, Failure> {
    ArtifactPath::parse(text).map_err(|error| Failure::argument(format!("path: {error}")))
}

fn missing(path: &ArtifactPath) -> Failure {
    Failure::new(DomainCode::NotFound, format!("file not found in the task: {:?}", path.as_str()))
}

fn unkept(error: ArtifactsError) -> Failure {
    match error {
        ArtifactsError::TooLarge { .. } => Failure::new(DomainCode::LimitExceeded, error.to_string()),
        error => Failure::internal("store or read the file", &error),
    }
}

fn told(artifact: &TaskArtifact) -> Value {
    json!({
        "path": artifact.path.as_str(),
        "size_bytes": artifact.content.size_bytes(),
        "checksum_sha256": artifact.content.sha256(),
        "content_type": artifact.content_type.as_ref().map(MediaType::as_str),
        "job_id": artifact.job_id,
        "run_id": artifact.run_id,
        "created_at": artifact.created_at.to_string(),
        "updated_at": artifact.updated_at.to_string(),
    })
}
