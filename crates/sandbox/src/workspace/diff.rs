//! A change set as a git-style unified diff.
//!
//! What a diff can't carry (binary content, pipes, a very large file) is named in it and not shown; the change set
//! itself stays whole.

use super::changes::{ChangeSet, Changed, State};
use crate::directory::{Directory, DirectoryError};
use belljar_contract::result::{Change, ChangedFile, WorkspaceChanges};
use belljar_policy::untrusted;
use rustix::fs::FileType;
use similar::TextDiff;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Files larger than this are named, not compared.
const LARGEST_SHOWN_BYTES: u64 = 8 << 20;

/// Files with more lines than this are named, not compared.
const MOST_LINES: usize = 200_000;

/// The whole text ends about here; what follows is counted in `truncated`.
const LONGEST_DIFF_BYTES: usize = 16 << 20;

/// As many files are listed at most.
const MOST_FILES: usize = 100_000;

/// Files that have next to nothing in common take long to compare. When this is over, what is left is compared
/// roughly: still a right diff, not the shortest.
const LONGEST_COMPARISON: Duration = Duration::from_secs(10);

/// Renders a change set.
///
/// # Errors
/// [`DirectoryError`] for whatever can't be read.
pub fn render(
    set: &ChangeSet,
    source: &Directory,
    copy: &Directory,
) -> Result<WorkspaceChanges, DirectoryError> {
    let deadline = Instant::now() + LONGEST_COMPARISON;
    let mut rendered = WorkspaceChanges { truncated: !set.left_out().is_empty(), ..Default::default() };
    // Directories come and go with what is in them, as in git.
    for (path, changed) in set.iter().filter(|(_, changed)| !changed.as_shown().is_empty()) {
        if rendered.files.len() >= MOST_FILES || rendered.diff.len() >= LONGEST_DIFF_BYTES {
            rendered.truncated = true;
            break;
        }
        for shown in changed.as_shown() {
            rendered.diff.push_str(&section(path, &shown, (source, copy), deadline)?);
        }
        rendered.files.push(ChangedFile { path: untrusted::name(path), change: changed.change() });
    }
    Ok(rendered)
}

/// Names the files of a change set without showing them.
pub fn listed<'c>(changes: impl Iterator<Item = (&'c Path, &'c Changed)>) -> WorkspaceChanges {
    let mut listed = WorkspaceChanges::default();
    for (path, changed) in changes.filter(|(_, changed)| !changed.as_shown().is_empty()) {
        if listed.files.len() >= MOST_FILES {
            listed.truncated = true;
            break;
        }
        listed.files.push(ChangedFile { path: untrusted::name(path), change: changed.change() });
    }
    listed
}

fn section(
    path: &Path,
    changed: &Changed,
    (source, copy): (&Directory, &Directory),
    deadline: Instant,
) -> Result<String, DirectoryError> {
    let name = quoted(path);
    let mut text = format!("diff --git {} {}\n", name.with("a/"), name.with("b/"));
    match (changed.before, changed.after) {
        (None, Some(after)) => writeln!(text, "new file mode {}", git_mode(after)),
        (Some(before), None) => writeln!(text, "deleted file mode {}", git_mode(before)),
        (Some(before), Some(after)) if git_mode(before) != git_mode(after) => {
            writeln!(text, "old mode {}\nnew mode {}", git_mode(before), git_mode(after))
        }
        _ => Ok(()),
    }
    .unwrap_or_default();
    if changed.change() == Change::ModeChanged {
        return Ok(text);
    }
    let old = content(source, path, changed.before, Directory::open_file)?;
    let new = content(copy, path, changed.after, Directory::open_own_file)?;
    let old_name = changed.before.map_or("/dev/null".to_owned(), |_| name.with("a/"));
    let new_name = changed.after.map_or("/dev/null".to_owned(), |_| name.with("b/"));
    match (old, new) {
        (Some(old), Some(new)) => {
            // Split here and not by the library, which takes a lone CR for the end of a line.
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
            let mut comparison = TextDiff::configure();
            let diff = comparison.newline_terminated(true).deadline(deadline).diff_slices(&old, &new);
            text.push_str(&diff.unified_diff().context_radius(3).header(&old_name, &new_name).to_string());
        }
        _ => {
            let _ = writeln!(text, "Binary files {old_name} and {new_name} differ");
        }
    }
    Ok(text)
}

/// The text of a file, empty for none; nothing for what a diff can't show.
fn content(
    directory: &Directory,
    path: &Path,
    state: Option<State>,
    open: fn(&Directory, &Path) -> Result<File, DirectoryError>,
) -> Result<Option<String>, DirectoryError> {
    let Some(state) = state else { return Ok(Some(String::new())) };
    match state.kind {
        FileType::Symlink => Ok(directory.read_link(path)?.into_string().ok()),
        FileType::RegularFile if state.size <= LARGEST_SHOWN_BYTES => {
            let mut bytes = Vec::new();
            let mut file = open(directory, path)?.take(LARGEST_SHOWN_BYTES);
            let read = file.read_to_end(&mut bytes);
            let is_text = read.is_ok() && !bytes.contains(&0);
            let is_shown = is_text && bytes.iter().filter(|byte| **byte == b'\n').count() <= MOST_LINES;
            Ok(is_shown.then(|| String::from_utf8(bytes).ok()).flatten())
        }
        _ => Ok(None),
    }
}

fn git_mode(state: State) -> &'static str {
    match state.kind {
        FileType::Symlink => "120000",
        _ if state.mode & 0o111 != 0 => "100755",
        _ => "100644",
    }
}

/// A name as git writes it: in quotes, with escapes, if it holds anything unusual.
struct Quoted {
    name: String,
    needs_quotes: bool,
}

fn quoted(path: &Path) -> Quoted {
    let mut name = String::new();
    let mut needs_quotes = false;
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'"' | b'\\' => {
                needs_quotes = true;
                name.push('\\');
                name.push(char::from(*byte));
            }
            b' '..=b'~' => name.push(char::from(*byte)),
            other => {
                needs_quotes = true;
                let _ = write!(name, "\\{other:03o}");
            }
        }
    }
    Quoted { name, needs_quotes }
}

impl Quoted {
    fn with(&self, prefix: &str) -> String {
        match self.needs_quotes {
            true => format!("\"{prefix}{}\"", self.name),
            false => format!("{prefix}{}", self.name),
        }
    }
}
