//! `write`: a file of a session, whole, or some text in it by other text.

use super::super::execution::CallerGoneSignal;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::super::session_requests::{self, LARGEST_FILE_BYTES};
use super::read::{Encoding, not_text, portion};
use super::{SHORT, SessionTool, SessionToolDescription};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_sandbox::session::SessionClient;
use belljar_tools::answer::{Answer, Failure, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: "write",
    summary: "Writes a file in a session, or replaces some text in it.",
    details: "Give either `content`, for the whole file, or `old` and `new`. Directories on the way are made.",
    category: Category::FileSystem,
    effect: Effect::Destructive,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
    /// File; a relative path is below /workspace.
    path: String,
    /// Complete new content of the file.
    content: Option<String>,
    /// Encoding of `content`. Default: `text`.
    encoding: Option<Encoding>,
    /// Text to replace; it must occur exactly once, unless `all` is set.
    #[schemars(length(min = 1))]
    old: Option<String>,
    /// Replacement text.
    new: Option<String>,
    /// True to replace all occurrences.
    all: Option<bool>,
}

/// Requested edit of a file.
enum FileEdit {
    Content(Vec<u8>),
    Edit { old: String, new: String, is_everywhere: bool },
}

#[derive(Clone)]
pub(super) struct WriteTool;

impl SessionTool for WriteTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, given_up: &CallerGoneSignal) -> Answer {
        let (session, path) = (arguments.session.clone(), arguments.path.clone());
        let wanted = wanted(arguments)?;
        let client = desk.find(&session)?;
        let (content, replaced) = match wanted {
            FileEdit::Content(content) => (content, None),
            FileEdit::Edit { old, new, is_everywhere } => {
                let (content, count) =
                    edited(&client, &path, &Replacement { old: &old, new: &new, is_everywhere }, given_up)?;
                (content, Some(count))
            }
        };
        if content.len() > LARGEST_FILE_BYTES {
            return Err(Failure::new(
                DomainCode::LimitExceeded,
                format!("more than {LARGEST_FILE_BYTES} bytes are not written at once"),
            ));
        }
        let size = content.len();
        let word = session_requests::WRITE.run(&client, (&path, &[size.to_string()]), content, given_up)?;
        let mut told = json!({ "size": size, "created": word.trim_ascii() == b"created" });
        if let Some(count) = replaced {
            told["replaced"] = count.into();
        }
        Ok(Success::of(told))
    }
}

fn wanted(arguments: Arguments) -> Result<FileEdit, Failure> {
    let Arguments { content, encoding, old, new, all, .. } = arguments;
    match (content, old, new) {
        (Some(content), None, None) if all.is_none() => match encoding.unwrap_or_default() {
            Encoding::Text => Ok(FileEdit::Content(content.into_bytes())),
            Encoding::Base64 => {
                let bytes = STANDARD.decode(content.trim());
                bytes.map(FileEdit::Content).map_err(|_| Failure::argument("`content` is no base64"))
            }
        },
        (None, Some(old), Some(new)) if encoding.is_none() => {
            Ok(FileEdit::Edit { old, new, is_everywhere: all.unwrap_or_default() })
        }
        _ => Err(Failure::argument(
            "either `content` (with `encoding`) or `old` and `new` (with `all`) are needed",
        )),
    }
}

/// Replacement of a text in a file.
struct Replacement<'r> {
    old: &'r str,
    new: &'r str,
    /// True if all occurrences are replaced.
    is_everywhere: bool,
}

/// Returns the file's content after the replacement, and the number of replaced occurrences.
fn edited(
    client: &SessionClient,
    path: &str,
    replacement: &Replacement<'_>,
    given_up: &CallerGoneSignal,
) -> Result<(Vec<u8>, usize), Failure> {
    let Replacement { old, new, is_everywhere } = *replacement;
    let portion = portion(client, path, (0, LARGEST_FILE_BYTES), given_up)?;
    if portion.size > LARGEST_FILE_BYTES as u64 {
        let message = format!("{path} has more than {LARGEST_FILE_BYTES} bytes: use `exec`");
        return Err(Failure::new(DomainCode::LimitExceeded, message));
    }
    let text = String::from_utf8(portion.bytes).map_err(|_| not_text(path))?;
    match text.matches(old).count() {
        0 => Err(Failure::new(DomainCode::Conflict, format!("{path} doesn't have that text: `read` it"))),
        2.. if !is_everywhere => Err(Failure::new(
            DomainCode::Conflict,
            format!("{path} has that text more than once: give more of what is around it, or `all`"),
        )),
        count => Ok((text.replace(old, new).into_bytes(), count)),
    }
}
