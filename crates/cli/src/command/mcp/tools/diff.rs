//! `diff`: what a session changed in its copy.

use super::super::execution::CallerGoneSignal;
use super::super::failures;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::{SHORT, SessionTool, SessionToolDescription};
use belljar_contract::category::Category;
use belljar_contract::result::{ChangedFile, WorkspaceChanges};
use belljar_policy::untrusted::{Untrusted, UntrustedLines, is_hidden};
use belljar_tools::answer::{Answer, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: "diff",
    summary: "Returns what a session changed in its copy of a directory: the files, a unified diff, and the digest of that state.",
    details: "`next_offset` is there if there is more of the diff, `next_files_offset` if there are more files. `approve` takes the digest.",
    category: Category::VersionControl,
    effect: Effect::ReadOnly,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
    /// Number of bytes of the diff to skip.
    offset: Option<usize>,
    /// Maximum number of bytes to return, up to the end of a line. Default: 65536.
    #[schemars(range(min = 1024, max = 131072))]
    limit: Option<usize>,
    /// Number of files to skip.
    files_offset: Option<usize>,
}

/// A part of a diff that is wanted.
#[derive(Clone, Copy)]
pub(super) struct DiffPart {
    offset: usize,
    limit: usize,
}

/// So many files are named.
const MOST_NAMED: usize = 500;

#[derive(Clone)]
pub(super) struct DiffTool;

impl SessionTool for DiffTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, _: &CallerGoneSignal) -> Answer {
        let review =
            desk.find(&arguments.session)?.changes().map_err(|error| failures::of_session(&error))?;
        let part = DiffPart::new(arguments.offset, arguments.limit);
        let mut told = told(&review.changes, part, arguments.files_offset.unwrap_or_default());
        told["digest"] = review.digest.into();
        Ok(Success::of(told))
    }
}

// === impl DiffPart ===

impl DiffPart {
    pub(super) fn new(offset: Option<usize>, limit: Option<usize>) -> Self {
        Self { offset: offset.unwrap_or_default(), limit: limit.unwrap_or(64 << 10) }
    }

    /// It, of that text: to the end of a line, if one ends there.
    fn of(self, text: &str) -> &str {
        let rest = &text[text.ceil_char_boundary(self.offset.min(text.len()))..];
        if rest.len() <= self.limit {
            return rest;
        }
        let most = &rest[..rest.floor_char_boundary(self.limit)];
        most.rfind('\n').map_or(most, |end| &most[..=end])
    }
}

/// Changes as they are told; of the files those from so many on, no more than are named at once.
pub(super) fn told(changes: &WorkspaceChanges, part: DiffPart, files_offset: usize) -> Value {
    let text = part.of(&changes.diff);
    let mut told = files_from(changes, files_offset);
    // A client shows it to a person as it is.
    told["diff"] = UntrustedLines(text).to_string().into();
    told["diff_bytes"] = changes.diff.len().into();
    let end = part.offset + text.len();
    if end < changes.diff.len() {
        told["next_offset"] = end.into();
    }
    if changes.truncated {
        told["is_cut"] = "the diff is incomplete: read the files themselves".into();
    }
    told
}

/// The files alone, the first ones.
pub(super) fn files(changes: &WorkspaceChanges) -> Value {
    files_from(changes, 0)
}

fn files_from(changes: &WorkspaceChanges, offset: usize) -> Value {
    let named: Vec<_> = changes.files.iter().skip(offset).take(MOST_NAMED).map(file).collect();
    let end = offset.saturating_add(named.len());
    let mut told = json!({ "files": named });
    if end < changes.files.len() {
        told["further_files"] = (changes.files.len() - end).into();
        told["next_files_offset"] = end.into();
    }
    told
}

/// A file with its exact path, and beside it the path as it may be shown, if the exact one would mislead.
fn file(changed: &ChangedFile) -> Value {
    let mut told = json!(changed);
    if changed.path.contains(is_hidden) {
        told["shown"] = Untrusted(&changed.path).to_string().into();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::result::Change;

    #[test]
    fn misleading_path_has_an_escaped_form_and_the_diff_is_escaped() {
        let file = |path: &str| ChangedFile { path: path.to_owned(), change: Change::Created, unshown: None };
        let changes = WorkspaceChanges {
            files: vec![file("plain"), file("a\u{202e}b")],
            diff: "+x\u{2066}\r\n\ty\n".to_owned(),
            truncated: false,
            ..WorkspaceChanges::default()
        };
        let told = told(&changes, DiffPart::new(None, None), 0);
        assert_eq!(told["files"][0].get("shown"), None);
        assert_eq!(told["files"][1]["path"], "a\u{202e}b");
        assert_eq!(told["files"][1]["shown"], "a\\u{202e}b");
        assert_eq!(told["diff"], "+x\\u{2066}\\u{d}\n\ty\n");
    }

    #[test]
    fn paged_file_lists_name_every_file() {
        let file =
            |number| ChangedFile { path: format!("{number}/"), change: Change::Created, unshown: None };
        let changes =
            WorkspaceChanges { files: (0..1_100).map(file).collect(), ..WorkspaceChanges::default() };
        let (mut offset, mut named) = (Some(0), Vec::new());
        while let Some(from) = offset {
            let told = files_from(&changes, from);
            named.extend(told["files"].as_array().unwrap().iter().map(|file| file["path"].clone()));
            offset = told["next_files_offset"].as_u64().map(|next| usize::try_from(next).unwrap());
        }
        assert_eq!(named.len(), 1_100);
        assert!(named.contains(&json!("1099/")));
        assert_eq!(files_from(&changes, 5_000)["files"], json!([]));
    }

    #[test]
    fn diff_parts_concatenate_to_the_whole_text() {
        let text = "one\ntwo ä\nthree which is long\n";
        let (mut offset, mut whole) = (0, String::new());
        while offset < text.len() {
            let part = DiffPart { offset, limit: 12 }.of(text);
            assert!(!part.is_empty() && part.len() <= 12);
            whole += part;
            offset += part.len();
        }
        assert_eq!(whole, text);
        assert_eq!(DiffPart { offset: 1000, limit: 12 }.of(text), "");
    }
}
