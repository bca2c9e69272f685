//! `read`: a file of a session.

use super::super::execution::CallerGoneSignal;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::super::session_requests;
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
    name: "read",
    summary: "Reads a file in a session, or a part of it.",
    details: "`next_offset` is there if there is more to read.",
    category: Category::FileSystem,
    effect: Effect::ReadOnly,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
    /// File; a relative path is below /workspace.
    path: String,
    /// Number of bytes to skip.
    offset: Option<u64>,
    /// Maximum number of bytes to read. Default: 65536.
    #[schemars(range(min = 1, max = 262144))]
    limit: Option<usize>,
    /// Encoding of the returned content. Default: `text`.
    encoding: Option<Encoding>,
}

/// How content is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Encoding {
    /// As it is, in UTF-8.
    #[default]
    Text,
    /// Any bytes.
    Base64,
}

/// Some of a file.
pub(super) struct FilePortion {
    /// How much there is in all.
    pub(super) size: u64,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct ReadTool;

impl SessionTool for ReadTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, given_up: &CallerGoneSignal) -> Answer {
        let Arguments { session, path, offset, limit, encoding } = arguments;
        let (offset, limit) = (offset.unwrap_or_default(), limit.unwrap_or(64 << 10));
        let client = desk.find(&session)?;
        let FilePortion { size, mut bytes } = portion(&client, &path, (offset, limit), given_up)?;
        let is_text = encoding.unwrap_or_default() == Encoding::Text;
        if is_text {
            drop_half_a_character(&mut bytes);
        }
        let end = offset.saturating_add(bytes.len() as u64);
        let content = match is_text {
            true => String::from_utf8(bytes).map_err(|_| not_text(&path))?,
            false => STANDARD.encode(bytes),
        };
        let mut told = json!({
            "content": content, "encoding": if is_text { "text" } else { "base64" }, "offset": offset, "size": size
        });
        if end < size && end > offset {
            told["next_offset"] = end.into();
        }
        Ok(Success::of(told))
    }
}

/// So much of a file from there on.
pub(super) fn portion(
    client: &SessionClient,
    path: &str,
    (offset, limit): (u64, usize),
    given_up: &CallerGoneSignal,
) -> Result<FilePortion, Failure> {
    let further = [offset.saturating_add(1).to_string(), limit.to_string()];
    let printed = session_requests::READ.run(client, (path, &further), Vec::new(), given_up)?;
    let mut parts = printed.splitn(2, |byte| *byte == b'\n');
    let size = parts.next().and_then(|size| std::str::from_utf8(size).ok()?.trim().parse().ok());
    match (size, parts.next()) {
        (Some(size), Some(bytes)) => Ok(FilePortion { size, bytes: bytes.to_vec() }),
        _ => Err(Failure::new(DomainCode::ToolFailed, format!("{path}: its size is not to be had"))),
    }
}

/// A part may end within a character; it is told with the next one.
fn drop_half_a_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        bytes.truncate(error.valid_up_to());
    }
}

pub(super) fn not_text(path: &str) -> Failure {
    Failure::argument(format!("{path} is no text in UTF-8, or not from that offset on: ask for it as base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_portion_ends_with_a_whole_character() {
        for (given, kept) in [("aä".as_bytes(), 3), (b"a\xc3", 1), (b"a\xffb", 3), (b"\xc3", 1), (b"", 0)] {
            let mut bytes = given.to_vec();
            drop_half_a_character(&mut bytes);
            assert_eq!(bytes.len(), kept, "{given:?}");
        }
    }
}
