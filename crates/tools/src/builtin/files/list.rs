//! `list_directory`: lists a directory, one entry per line.

use super::{fits, relative, strange};
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use crate::workbench::Workbench;
use belljar_contract::category::Category;
use belljar_contract::result::output::EntryKind;
use belljar_contract::workbench::{
    self, DirectoryContents, DirectoryEntry, ListDirectory, MOST_ENTRIES, Request,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Lists a directory of the workspace: `content` has a line per entry, with `[DIR]`, `[FILE]` (and its \
    size), `[SYMLINK]` (and its target) or `[OTHER]` before its path; `entries` is their number. `recursive: true` includes \
    subdirectories, except `.git`. `pattern` is a glob: `*` matches within a name, `**` requires `recursive`. At most 1000 entries; \
    `truncated` is true if there are more. Invisible characters are escaped (`\\u{a}`, `\\xff`).";

/// The directory and a filter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Its path, relative to the workspace's root. Default: `.`.
    #[schemars(length(min = 1, max = 4095))]
    #[serde(default = "root")]
    path: String,
    /// Glob that paths below it must match.
    #[schemars(length(min = 1, max = 1024))]
    pattern: Option<String>,
    /// True to list subdirectories, too.
    #[serde(default)]
    recursive: bool,
}

fn root() -> String {
    ".".to_owned()
}

pub(super) struct ListFilesTool(pub(super) Arc<dyn Workbench>);

impl TypedTool for ListFilesTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { path: name, pattern, recursive } = arguments;
        let path = relative("path", &name)?;
        if let Some(pattern) = &pattern {
            check(pattern, recursive)?;
        }
        let request = Request::ListDirectory(ListDirectory { path, pattern, recursive });
        let answer = self.0.ask(caller, Category::FileSystem, request).await?;
        let workbench::Answer::Listed(listed) = answer else { return Err(strange()) };
        let (content, entries) = text(&listed);
        Ok(Success::of(json!({
            "path": name,
            "content": content,
            "entries": entries,
            "truncated": listed.truncated || entries < listed.entries.len(),
        })))
    }
}

fn check(pattern: &str, recursive: bool) -> Result<(), Failure> {
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(Failure::argument("/pattern: must be relative and must not contain `..`"));
    }
    match pattern.contains("**") && !recursive {
        true => Err(Failure::argument("/pattern: `**` requires `recursive: true`")),
        false => Ok(()),
    }
}

/// Returns one line per entry, and the number of entries.
fn text(listed: &DirectoryContents) -> (String, usize) {
    let all: Vec<String> = listed.entries.iter().map(line).collect();
    let whole = all.join("\n");
    let kept = fits(&whole);
    let mut lines: Vec<&str> = whole[..kept].lines().collect();
    if kept < whole.len() {
        // The last line is, or may be, incomplete.
        lines.pop();
    }
    let entries = lines.len();
    let unreadable = format!("[ERROR] {} directories could not be read", listed.unreadable_directories);
    if listed.unreadable_directories > 0 {
        lines.push(&unreadable);
    }
    let more = format!("[… truncated: at most {MOST_ENTRIES} entries are listed …]");
    if listed.truncated || entries < all.len() {
        lines.push(&more);
    }
    let content = if lines.is_empty() { "(empty)".to_owned() } else { lines.join("\n") };
    (content, entries)
}

fn line(entry: &DirectoryEntry) -> String {
    let DirectoryEntry { path, kind, size_bytes, target, leads_out } = entry;
    match kind {
        EntryKind::Directory => format!("[DIR]  {path}"),
        EntryKind::File => {
            let size = size_bytes.map(|size| format!(" ({size} bytes)"));
            format!("[FILE] {path}{}", size.unwrap_or_default())
        }
        EntryKind::Symlink => {
            let target = target.as_deref().unwrap_or("?");
            format!("[SYMLINK] {path} -> {target}{}", if *leads_out { " (out of the workspace)" } else { "" })
        }
        EntryKind::Other => format!("[OTHER] {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_listing_has_whole_lines_and_a_notice() {
        let entry = |number: usize| DirectoryEntry {
            path: format!("{number}{}", "x".repeat(4_000)),
            kind: EntryKind::Directory,
            size_bytes: None,
            target: None,
            leads_out: false,
        };
        let entries: Vec<_> = (0..MOST_ENTRIES).map(entry).collect();
        let (content, shown) =
            text(&DirectoryContents { entries, truncated: false, unreadable_directories: 0 });
        assert!((200..300).contains(&shown) && content.len() < 1 << 20, "{shown}");
        assert_eq!(content.lines().count(), shown + 1);
        assert!(content.lines().take(shown).all(|line| line.len() > 4_000));
    }
}
