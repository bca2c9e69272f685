//! `list`: what is in a directory of a session.

use super::super::execution::CallerGoneSignal;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::super::session_requests;
use super::{SHORT, SessionTool, SessionToolDescription};
use belljar_contract::category::Category;
use belljar_policy::untrusted::UntrustedBytes;
use belljar_tools::answer::{Answer, Page, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: "list",
    summary: "Lists what is in a directory of a session, by name.",
    details: "What is in directories below it is not listed.",
    category: Category::FileSystem,
    effect: Effect::ReadOnly,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
    /// Directory; a relative path is below /workspace. Default: /workspace.
    path: Option<String>,
    /// Number of entries to skip.
    offset: Option<usize>,
    /// Maximum number of entries to return.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Clone)]
pub(super) struct ListFilesTool;

impl SessionTool for ListFilesTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, given_up: &CallerGoneSignal) -> Answer {
        let client = desk.find(&arguments.session)?;
        let path = arguments.path.as_deref().unwrap_or(".");
        let printed = session_requests::LIST.run(&client, (path, &[]), Vec::new(), given_up)?;
        let mut entries: Vec<_> = printed.split(|byte| *byte == 0).filter_map(entry).collect();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        let entries = entries.into_iter().map(|(_, told)| told).collect();
        Ok(Success::page(entries, Page::new(arguments.offset, arguments.limit)))
    }
}

/// Its name, and what is told of it.
fn entry(printed: &[u8]) -> Option<(String, Value)> {
    let mut parts = printed.splitn(3, |byte| *byte == b' ');
    let (kind, size, name) = (parts.next()?, parts.next()?, parts.next()?);
    let shown = UntrustedBytes(name).to_string();
    let name = std::str::from_utf8(name).map_or_else(|_| shown.clone(), str::to_owned);
    let kind = match kind {
        b"f" => "file",
        b"d" => "directory",
        b"l" => "symlink",
        _ => "other",
    };
    let size = std::str::from_utf8(size).ok().and_then(|size| size.parse::<u64>().ok());
    let mut told = json!({ "name": name, "kind": kind });
    if shown != name {
        told["shown"] = shown.into();
    }
    if let Some(size) = size.filter(|_| kind == "file") {
        told["size"] = size.into();
    }
    Some((name, told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_entry_name_can_have_any_bytes() {
        assert_eq!(
            entry(b"f 12 a b\nc").unwrap().1,
            json!({ "name": "a b\nc", "shown": "a b\\u{a}c", "kind": "file", "size": 12 })
        );
        assert_eq!(entry(b"d - \xff").unwrap().1["name"], "\\x{ff}");
        assert_eq!(entry(b"d - x").unwrap().1, json!({ "name": "x", "kind": "directory" }));
        assert_eq!(entry(b""), None);
    }
}
