//! `read_file`, `write_file`, `edit_file`, `list_directory`, `delete_file`: files of a caller's workspace
//! (`docs/contracts/tools.md#t1.2`).
//!
//! The host opens none of these files: a helper program opens them in the caller's sandbox, where other processes may be active.

mod delete;
mod edit;
mod list;
mod read;
mod write;

use super::Tools;
use crate::answer::Failure;
use crate::definition::{Definition, Effect};
use crate::typed::{schema_of, tool};
use crate::workbench::Workbench;
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::path::StepPath;
use belljar_contract::tool::DomainCode;
use std::sync::Arc;

/// Returns the tools.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(workbench: &Arc<dyn Workbench>) -> Tools {
    let define = |name, summary, input, (leaf, effect): (BuiltInAction, Effect), description: &str| {
        let definition = Definition::named(name, Category::FileSystem, summary, input)?;
        let (action, description) = (ActionType::from(leaf), description.to_owned());
        Ok(Definition { action, effect, description, ..definition })
    };
    let bench = || Arc::clone(workbench);
    let (reads, changes) =
        ((BuiltInAction::CodeRead, Effect::ReadOnly), (BuiltInAction::CodeWrite, Effect::Destructive));
    let read = (schema_of::<read::Arguments>(), reads, read::DESCRIPTION);
    let write = (schema_of::<write::Arguments>(), changes, write::DESCRIPTION);
    let edit = (schema_of::<edit::Arguments>(), changes, edit::DESCRIPTION);
    let list = (schema_of::<list::Arguments>(), reads, list::DESCRIPTION);
    let removes = (BuiltInAction::CodeDelete, Effect::Destructive);
    let delete = (schema_of::<delete::Arguments>(), removes, delete::DESCRIPTION);
    Ok(vec![
        tool(
            define("read_file", "Reads a file as text.", read.0, read.1, read.2)?,
            read::ReadFileTool(bench()),
        ),
        tool(
            define("write_file", "Writes a file.", write.0, write.1, write.2)?,
            write::WriteFileTool(bench()),
        ),
        tool(
            define("edit_file", "Replaces a text in a file.", edit.0, edit.1, edit.2)?,
            edit::EditFileTool(bench()),
        ),
        tool(
            define("list_directory", "Lists a directory.", list.0, list.1, list.2)?,
            list::ListFilesTool(bench()),
        ),
        tool(
            define("delete_file", "Removes a file.", delete.0, delete.1, delete.2)?,
            delete::DeleteFileTool(bench()),
        ),
    ])
}

/// Parses a caller's path: it must be relative to the workspace's root, by the rules of every operating system.
pub(super) fn relative(name: &str, text: &str) -> Result<StepPath, Failure> {
    let is_drive = |text: &str| {
        let mut characters = text.chars();
        characters.next().is_some_and(|first| first.is_ascii_alphabetic()) && characters.next() == Some(':')
    };
    if text.starts_with(['/', '\\']) || is_drive(text) {
        return Err(Failure::argument(format!("/{name}: paths are relative to the workspace's root")));
    }
    let path = StepPath::parse(text).map_err(|error| Failure::argument(format!("/{name}: {error}")))?;
    match text.split(['/', '\\']).any(|part| part == "..") {
        true => Err(Failure::new(DomainCode::PermissionDenied, format!("path escapes workspace: {path}"))),
        false => Ok(path),
    }
}

/// Maximum size of a text in an answer, as JSON, in bytes: an answer has at most 1 MiB, and other members.
const FITS_BYTES: usize = (1 << 20) - (32 << 10);

/// Returns how much of a text fits into an answer, in bytes of the text.
fn fits(text: &str) -> usize {
    let mut room = FITS_BYTES;
    for (at, character) in text.char_indices() {
        let written = match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            _ => character.len_utf8(),
        };
        match room.checked_sub(written) {
            Some(left) => room = left,
            None => return at,
        }
    }
    text.len()
}

/// Returns the failure for an unexpected answer of the workbench, whose program runs in an untrusted sandbox.
pub(super) fn strange() -> Failure {
    Failure::new(DomainCode::Unavailable, "the sandbox sent an unexpected response")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_limit_counts_escaped_json_bytes() {
        for unit in ["a", "\n", "\u{1}", "\u{e9}", "\"\\\u{7f}", "\u{8}\u{c}\t\r", "\u{1f980}"] {
            let text = unit.repeat(1 << 20);
            let kept = &text[..fits(&text)];
            let written = serde_json::to_string(kept).unwrap().len() - 2;
            assert!((FITS_BYTES - 6..=FITS_BYTES).contains(&written), "{unit:?}: {written}");
        }
        assert_eq!(fits("short"), 5);
    }

    #[test]
    fn file_paths_must_be_relative_on_any_system() {
        for path in ["a", "./a/b", ".", "a.b/c d", "ä/ö"] {
            assert!(relative("path", path).is_ok(), "{path}");
        }
        for path in ["/etc/passwd", "/workspace/a", "\\a", "C:\\a", "c:a", "", "a\nb", "a//b"] {
            assert_eq!(relative("path", path).unwrap_err().code, DomainCode::InvalidArgument, "{path:?}");
        }
        for path in ["..", "../a", "a/../b", "a\\..\\b"] {
            assert_eq!(relative("path", path).unwrap_err().code, DomainCode::PermissionDenied, "{path:?}");
        }
    }
}
