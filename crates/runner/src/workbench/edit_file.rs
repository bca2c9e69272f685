//! Replaces a text in a file: at its only place, or everywhere.

use super::read_file::{FilePrefix, beginning};
use super::{changeable, refused};
use crate::deadline::Deadline;
use crate::directory::{Directory, Replacement};
use belljar_contract::path::WorkspacePath;
use belljar_contract::workbench::{
    Answer, EditFile, FileEditResult, MOST_EDITED_BYTES, MOST_WRITTEN_BYTES, RefusalReason, RequestRefusal,
};
use std::path::Path;

/// Maximum number of places that are reported by their lines.
const MOST_TOLD: usize = 8;

pub(super) fn edit(
    edit: &EditFile,
    workspace: &Directory,
    deadline: &Deadline<'_>,
) -> Result<Answer, RequestRefusal> {
    let path = changeable(&edit.path)?;
    if edit.old_text.is_empty() {
        return Err(RequestRefusal::new(
            RefusalReason::Invalid,
            "`old_text` is empty and would match everywhere",
        ));
    }
    let name = Path::new(path.as_str());
    let file = workspace.open_file(name).map_err(|error| refused(&error))?;
    let FilePrefix { bytes, is_cut } = beginning(file.file, MOST_EDITED_BYTES, deadline)?;
    if is_cut {
        let said = format!("{path} is larger than {MOST_EDITED_BYTES} bytes: edit it by running a command");
        return Err(RequestRefusal::new(RefusalReason::TooLarge, said));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| RequestRefusal::new(RefusalReason::NotText, format!("{path} is not UTF-8 text")))?;
    let places: Vec<usize> = text.match_indices(&edit.old_text).map(|(at, _)| at).collect();
    if edit.old_text == edit.new_text {
        return Ok(Answer::Edited(FileEditResult { replacements: 0, size_bytes: text.len() as u64 }));
    }
    match places.as_slice() {
        [] => {
            return Err(RequestRefusal::new(RefusalReason::NotFound, format!("`old_text` is not in {path}")));
        }
        [_, _, ..] if !edit.all => return Err(several(&path, &text, &places)),
        _ => {}
    }
    // Checked before the text is made, because short texts in many places may become very long.
    let size = edit.new_text.len().checked_mul(places.len()).map(|added| added + text.len());
    if size.is_none_or(|size| size > MOST_WRITTEN_BYTES) {
        return Err(RequestRefusal::new(RefusalReason::TooLarge, format!("{path} would become too large")));
    }
    let edited = text.replace(&edit.old_text, &edit.new_text);
    let content =
        Replacement { content: edited.as_bytes(), mode: None, create_parents: false, overwrite: true };
    workspace.replace_file(name, &content).map_err(|error| refused(&error))?;
    Ok(Answer::Edited(FileEditResult { replacements: places.len() as u64, size_bytes: edited.len() as u64 }))
}

fn several(path: &WorkspacePath, text: &str, places: &[usize]) -> RequestRefusal {
    let line = |at: &usize| text[..*at].matches('\n').count() + 1;
    let mut lines: Vec<String> = places.iter().take(MOST_TOLD).map(|at| line(at).to_string()).collect();
    if places.len() > MOST_TOLD {
        lines.push("…".to_owned());
    }
    let said = format!(
        "`old_text` occurs in {path} {} times (lines {}): include more surrounding text, or set `all: true`",
        places.len(),
        lines.join(", ")
    );
    RequestRefusal::new(RefusalReason::Ambiguous, said)
}
