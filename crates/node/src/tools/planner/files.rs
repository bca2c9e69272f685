//! `sandbox.put_file` and `sandbox.get_file`: copy files into and out of a session. The sandbox's own programs do the copying, so
//! they reach only what the sandbox reaches.

use super::endpoint_client::{EndpointClient, EndpointRequest, text};
use super::{changing, define, object, sandbox};
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::action::BuiltInAction;
use belljar_contract::tool::{DomainCode, InvalidToolNameError};
use belljar_tools::answer::{Answer, Failure, Success};
use belljar_tools::caller::Caller;
use belljar_tools::definition::{Definition, EXPECTED_MARK, Effect};
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

/// Copies a file into a session.
struct PutFileTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

/// Copies a file out of a session.
struct GetFileTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

/// Maximum number of bytes per command: an argument of a program has at most 128 KiB, and this grows by Base64.
const PIECE_BYTES: usize = 90_000;

/// Maximum size of a file that is copied in, in bytes.
const LARGEST_IN_BYTES: usize = 2 << 20;

/// Maximum size of a file that is copied out, in bytes.
const LARGEST_OUT_BYTES: usize = 180_000;

pub(super) fn tools(desk: &Arc<EndpointClient>) -> Result<[Arc<dyn Tool>; 2], InvalidToolNameError> {
    let with = |more: Value| {
        let mut all = sandbox::ids();
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        all
    };
    let path = json!({
        "type": "string", "maxLength": 4_001, "pattern": "^/[^\\u0000]+$",
        EXPECTED_MARK: "an absolute path inside the sandbox, such as /workspace/notes.txt",
        "description": "An absolute path inside the sandbox.",
    });
    let content = json!({ "type": "string", "description": "The content, in Base64; 2 MiB at most." });
    let put = object(
        &["task_id", "job_id", "path", "content_bytes_base64"],
        &with(json!({ "path": path, "content_bytes_base64": content })),
    );
    let get = object(&["task_id", "job_id", "path"], &with(json!({ "path": path })));
    let put = define("sandbox.put_file", "Puts a file into a sandbox.", put)?;
    let put = changing(put, Effect::Destructive, BuiltInAction::CodeWrite);
    let get = define("sandbox.get_file", "Gets a file out of a sandbox.", get)?;
    Ok([
        Arc::new(PutFileTool { definition: put, desk: Arc::clone(desk) }),
        Arc::new(GetFileTool { definition: get, desk: Arc::clone(desk) }),
    ])
}

/// Runs a shell script in the sandbox, with arguments `$1` and so on.
async fn shell(
    desk: &EndpointClient,
    arguments: &Arguments,
    script: &str,
    more: &[&str],
) -> Result<Value, Failure> {
    let command: Vec<_> = ["sh", "-c", script, "sh"].into_iter().chain(more.iter().copied()).collect();
    let (task, job) = (text(arguments, "task_id"), text(arguments, "job_id"));
    let body = json!({ "version": 1, "task_id": task, "session_id": job, "command": command });
    let path = format!("/v1/worker/sessions/{job}/exec");
    let said = desk.ask(EndpointRequest { method: Method::POST, path, body: Some(body), told: None }).await?;
    match said["exit_code"].as_i64() {
        Some(0) => Ok(said),
        _ => {
            let why = said["stderr"].as_str().unwrap_or_default().lines().next_back().unwrap_or_default();
            Err(Failure::new(DomainCode::ToolFailed, format!("the sandbox says: {why}")))
        }
    }
}

impl Tool for PutFileTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            self.desk.check_job(caller, &arguments).await?;
            self.desk.check_level(caller, &arguments)?;
            let bytes = STANDARD.decode(text(&arguments, "content_bytes_base64"));
            let bytes = bytes.map_err(|error| Failure::argument(format!("content_bytes_base64: {error}")))?;
            if bytes.len() > LARGEST_IN_BYTES {
                let message = format!("the file has {} bytes; {LARGEST_IN_BYTES} are allowed", bytes.len());
                return Err(Failure::new(DomainCode::LimitExceeded, message));
            }
            let path = text(&arguments, "path");
            // The file is written under another name and then renamed, so that no program reads a part of it.
            let beside = format!("{path}.{}.part", uuid::Uuid::now_v7().simple());
            let begin = r#"mkdir -p -- "$(dirname -- "$1")" && : > "$1""#;
            shell(&self.desk, &arguments, begin, &[&beside]).await?;
            for piece in bytes.chunks(PIECE_BYTES) {
                let script = r#"printf %s "$2" | base64 -d >> "$1""#;
                shell(&self.desk, &arguments, script, &[&beside, &STANDARD.encode(piece)]).await?;
            }
            shell(&self.desk, &arguments, r#"mv -T -- "$1" "$2""#, &[&beside, path]).await?;
            Ok(Success::of(json!({ "path": path, "size_bytes": bytes.len() })))
        }
        .boxed()
    }
}

impl Tool for GetFileTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            self.desk.check_job(caller, &arguments).await?;
            self.desk.check_level(caller, &arguments)?;
            let path = text(&arguments, "path");
            let most = (LARGEST_OUT_BYTES + 1).to_string();
            let script = r#"[ -f "$1" ] || { echo "there is no file $1" >&2; exit 1; }; head -c "$2" -- "$1" | base64 -w0"#;
            let said = shell(&self.desk, &arguments, script, &[path, &most]).await?;
            let content = said["stdout"].as_str().unwrap_or_default();
            let size = STANDARD.decode(content).map_or(0, |bytes| bytes.len());
            if size > LARGEST_OUT_BYTES {
                let message = format!("the file has more than {LARGEST_OUT_BYTES} bytes");
                return Err(Failure::new(DomainCode::LimitExceeded, message));
            }
            Ok(Success::of(json!({ "path": path, "size_bytes": size, "content_bytes_base64": content })))
        }
        .boxed()
    }
}
