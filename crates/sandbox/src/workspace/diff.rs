//! A change set as a git-style unified diff, and the list of its files.
//!
//! The list is always whole. What the diff doesn't show in full (binary content, a very large file, what there is no room left for) is marked
//! in the list, with its size and its hash. There is room for small files first, so no large one pushes them out.

use super::changes::{ChangeLine, ChangeSet, PathChange, PathState, lines};
use belljar_contract::result::{Change, OmittedContent, WorkspaceChanges};
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::FileType;
use sha2::{Digest, Sha256};
use similar::TextDiff;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files larger than this are named, not compared.
const LARGEST_SHOWN_BYTES: u64 = 8 << 20;

/// Files with more lines than this are named, not compared.
const MOST_LINES: usize = 200_000;

/// Maximum size of all contents together that are shown.
const MOST_SHOWN_BYTES: u64 = 16 << 20;

/// Maximum size of all names together that are in the diff, too, and not only in the list.
const MOST_NAME_BYTES: usize = 16 << 20;

/// Maximum size of all files together that are hashed because they are not shown.
const MOST_HASHED_BYTES: u64 = 1 << 30;

/// Files that have next to nothing in common take long to compare. When this is over, what is left is compared
/// roughly: still a right diff, not the shortest.
const LONGEST_COMPARISON: Duration = Duration::from_secs(10);

/// The old and the new tree of a change set.
type DiffTrees<'a> = (&'a Directory, &'a Directory);

/// Space for a file's content in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffSpace {
    /// Space for its content.
    Content,
    /// Space for its name; no diff has room for the content.
    Large,
    /// Space for its name only.
    Name,
    /// No space.
    Nothing,
}

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
    let mut hashed_left = MOST_HASHED_BYTES;
    for (line, room) in with_room(set) {
        let ChangeLine { path, changed, is_directory } = line;
        if is_directory {
            rendered.files.push(line.as_contract(None));
            continue;
        }
        rendered.truncated |= matches!(room, DiffSpace::Name | DiffSpace::Nothing);
        let mut is_shown = room == DiffSpace::Content;
        if room != DiffSpace::Nothing {
            for shown in changed.as_shown() {
                let (text, is_whole) = section((path, &shown), (source, copy), room, deadline)?;
                rendered.diff.push_str(&text);
                is_shown &= is_whole;
            }
        }
        let unshown = match (is_shown || is_data_of_git(path), new_content(changed)) {
            (false, Some(state)) => Some(unshown_of((copy, path), state, &mut hashed_left)),
            _ => None,
        };
        rendered.files.push(line.as_contract(unshown));
    }
    Ok(rendered)
}

/// Returns the paths that a change set changes, without their contents.
pub fn listed<'c>(changes: impl Iterator<Item = (&'c Path, &'c PathChange)>) -> WorkspaceChanges {
    let files = lines(changes).iter().map(|line| line.as_contract(None)).collect();
    WorkspaceChanges { files, ..WorkspaceChanges::default() }
}

/// Returns the files whose new content [`render`] doesn't show in full.
///
/// # Errors
/// [`DirectoryError`] for whatever can't be read.
pub fn unshown(
    set: &ChangeSet,
    source: &Directory,
    copy: &Directory,
) -> Result<Vec<PathBuf>, DirectoryError> {
    let mut unshown = Vec::new();
    let is_asked = |(line, _): &(ChangeLine<'_>, DiffSpace)| {
        !line.is_directory && new_content(line.changed).is_some() && !is_data_of_git(line.path)
    };
    for (ChangeLine { path, changed, .. }, room) in with_room(set).into_iter().filter(is_asked) {
        let mut is_shown = room == DiffSpace::Content;
        for shown in changed.as_shown().iter().filter(|_| room == DiffSpace::Content) {
            is_shown &=
                shown.change() == Change::ModeChanged || contents((path, shown), (source, copy))?.is_some();
        }
        if !is_shown {
            unshown.push(path.to_owned());
        }
    }
    Ok(unshown)
}

/// The lines of a change set, and what of each there is room for: it depends on the sizes alone. A diff shows no directories, which are
/// in the list alone.
fn with_room(set: &ChangeSet) -> Vec<(ChangeLine<'_>, DiffSpace)> {
    let mut names_left = MOST_NAME_BYTES;
    let mut files: Vec<(ChangeLine<'_>, DiffSpace)> = lines(set.iter())
        .into_iter()
        .map(|line| {
            // Once there is no room for a name, there is none for those that follow.
            names_left = names_left.saturating_sub(line.path.as_os_str().len() + 16);
            let room = match (names_left, contents_size(line.changed) > 2 * LARGEST_SHOWN_BYTES) {
                (0, _) => DiffSpace::Nothing,
                (_, true) => DiffSpace::Large,
                (_, false) => DiffSpace::Name,
            };
            (line, room)
        })
        .collect();
    let named = files.iter_mut().filter(|(line, room)| !line.is_directory && *room == DiffSpace::Name);
    let mut by_size: Vec<(u64, &mut DiffSpace)> =
        named.map(|(line, room)| (contents_size(line.changed), room)).collect();
    by_size.sort_by_key(|(size, _)| *size);
    let mut left = MOST_SHOWN_BYTES;
    for (size, room) in by_size {
        let Some(rest) = left.checked_sub(size) else { break };
        (left, *room) = (rest, DiffSpace::Content);
    }
    files
}

/// The size of what a diff has to show of a change: the old and the new content.
fn contents_size(changed: &PathChange) -> u64 {
    let size = |state: Option<PathState>| state.map_or(0, |state| state.size);
    match changed.same_content {
        true => 0,
        false => size(changed.before).saturating_add(size(changed.after)),
    }
}

/// Returns true if it is Git's index or an object, which a person can't read. A change of the files that Git goes by takes
/// an approval of its own.
fn is_data_of_git(path: &Path) -> bool {
    let mut parts = path.iter();
    parts.next().is_some_and(|first| first == ".git")
        && parts.next().is_some_and(|second| second == "index" || second == "objects")
}

/// Returns the new state of a change that writes content; `None` for one that removes something or changes only
/// permissions.
fn new_content(changed: &PathChange) -> Option<PathState> {
    changed.after.filter(|after| after.kind != FileType::Directory && !changed.same_content)
}

fn unshown_of((copy, path): (&Directory, &Path), state: PathState, left: &mut u64) -> OmittedContent {
    let sha256 = match left.checked_sub(state.size) {
        Some(rest) if state.kind == FileType::RegularFile => {
            *left = rest;
            copy.open_own_file(path).ok().and_then(|file| hash(file.take(state.size)))
        }
        _ => None,
    };
    OmittedContent { size_bytes: state.size, sha256 }
}

fn hash(mut file: impl Read) -> Option<String> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            length => hash.update(piece.get(..length)?),
        }
    }
}

/// A file's part of the diff, and whether it shows all of the change.
fn section(
    (path, changed): (&Path, &PathChange),
    trees: DiffTrees<'_>,
    room: DiffSpace,
    deadline: Instant,
) -> Result<(String, bool), DirectoryError> {
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
        return Ok((text, true));
    }
    let contents = match room {
        DiffSpace::Content => contents((path, changed), trees)?,
        DiffSpace::Large | DiffSpace::Name | DiffSpace::Nothing => None,
    };
    let old_name = changed.before.map_or("/dev/null".to_owned(), |_| name.with("a/"));
    let new_name = changed.after.map_or("/dev/null".to_owned(), |_| name.with("b/"));
    let is_whole = contents.is_some();
    match contents {
        Some((old, new)) => {
            // Split here and not by the library, which takes a lone CR for the end of a line.
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
            let mut comparison = TextDiff::configure();
            let diff = comparison.newline_terminated(true).deadline(deadline).diff_slices(&old, &new);
            text.push_str(&diff.unified_diff().context_radius(3).header(&old_name, &new_name).to_string());
        }
        None => {
            let _ = writeln!(text, "Binary files {old_name} and {new_name} differ");
        }
    }
    Ok((text, is_whole))
}

/// The old and the new text of a file; `None` if a diff can't show one of them. Old content that the host can't read is one that it can't
/// show, as [`ReviewDigest`](super::digest::ReviewDigest) has it.
fn contents(
    (path, changed): (&Path, &PathChange),
    (source, copy): DiffTrees<'_>,
) -> Result<Option<(String, String)>, DirectoryError> {
    let old = content(source, path, changed.before, Directory::open_file).unwrap_or_default();
    let new = content(copy, path, changed.after, Directory::open_own_file)?;
    Ok(old.zip(new))
}

/// Returns the text of a file, empty for no file; `None` for content that a diff can't show.
fn content(
    directory: &Directory,
    path: &Path,
    state: Option<PathState>,
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

fn git_mode(state: PathState) -> &'static str {
    match state.kind {
        FileType::Symlink => "120000",
        _ if state.mode & 0o111 != 0 => "100755",
        _ => "100644",
    }
}

/// A name as git writes it: in quotes, with escapes, if it holds anything unusual.
struct QuotedName {
    name: String,
    needs_quotes: bool,
}

fn quoted(path: &Path) -> QuotedName {
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
    QuotedName { name, needs_quotes }
}

impl QuotedName {
    fn with(&self, prefix: &str) -> String {
        match self.needs_quotes {
            true => format!("\"{prefix}{}\"", self.name),
            false => format!("{prefix}{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn set_of(files: &[(&str, Vec<u8>)]) -> (TempDir, Directory, Directory, ChangeSet) {
        let place = TempDir::new().unwrap();
        for folder in ["source", "copy"] {
            std::fs::create_dir(place.path().join(folder)).unwrap();
        }
        for (name, content) in files {
            let path = place.path().join("copy").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let open = |name: &str| Directory::open_host(&place.path().join(name)).unwrap();
        let (source, copy) = (open("source"), open("copy"));
        let set = ChangeSet::read(&source, &copy).unwrap();
        (place, source, copy, set)
    }

    #[test]
    fn every_file_is_listed_and_small_ones_are_shown_beside_large_ones() {
        let large = || b"a line of some length, of which there are many\n".repeat(150_000);
        let files = [("a", large()), ("b", large()), ("c", large()), ("z.py", b"evil\n".to_vec())];
        let (_place, source, copy, set) = set_of(&files);
        let changes = render(&set, &source, &copy).unwrap();
        assert!(changes.truncated && changes.diff.contains("+++ b/z.py\n@@ -0,0 +1 @@\n+evil\n"));
        let unshown: Vec<_> =
            changes.files.iter().map(|file| (file.path.as_str(), file.unshown.is_some())).collect();
        assert_eq!(unshown, [("a", false), ("b", false), ("c", true), ("z.py", false)]);
        let hash = Sha256::digest(large()).iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = OmittedContent { size_bytes: large().len() as u64, sha256: Some(hash) };
        assert_eq!(changes.files[2].unshown, Some(expected));
        assert!(changes.diff.contains("Binary files /dev/null and b/c differ\n"));
        assert_eq!(super::unshown(&set, &source, &copy).unwrap(), [Path::new("c")]);
        // The control: where there is room, all is shown.
        let (_place, source, copy, set) = set_of(&files[1..]);
        let changes = render(&set, &source, &copy).unwrap();
        assert!(!changes.truncated && changes.files.iter().all(|file| file.unshown.is_none()));
        assert_eq!(super::unshown(&set, &source, &copy).unwrap(), [""; 0].map(Path::new));
    }

    #[test]
    fn content_that_is_no_text_is_marked_in_the_list() {
        for (content, is_shown) in [
            (b"# caf\xe9\nrun\n".to_vec(), false),
            (b"run\0\n".to_vec(), false),
            (b"\n".repeat(MOST_LINES + 1), false),
            ("# café\n".as_bytes().to_vec(), true),
            (Vec::new(), true),
        ] {
            let (_place, source, copy, set) = set_of(&[("file", content)]);
            let changes = render(&set, &source, &copy).unwrap();
            assert_eq!(changes.files[0].unshown.is_none(), is_shown, "{:?}", changes.files);
            assert_eq!(unshown(&set, &source, &copy).unwrap().is_empty(), is_shown);
        }
    }

    #[test]
    fn file_whose_old_content_cannot_be_read_is_marked_and_the_rest_is_shown() {
        let (place, source, copy, _) = set_of(&[("secret", b"run\n".to_vec()), ("z.py", b"evil\n".to_vec())]);
        let old = place.path().join("source/secret");
        std::fs::write(&old, "old\n").unwrap();
        let set = ChangeSet::read(&source, &copy).unwrap();
        let marked = || {
            let changes = render(&set, &source, &copy).unwrap();
            assert!(changes.diff.contains("+++ b/z.py\n@@ -0,0 +1 @@\n+evil\n"), "{}", changes.diff);
            let marked = changes.files.iter().filter(|file| file.unshown.is_some()).count();
            assert_eq!(unshown(&set, &source, &copy).unwrap().len(), marked);
            marked
        };
        assert_eq!(marked(), 0);
        // Also root can't read a file that is gone.
        std::fs::remove_file(&old).unwrap();
        assert_eq!(marked(), 1);
    }

    #[test]
    fn data_of_git_is_judged_and_so_not_marked() {
        for (path, is_marked) in [
            (".git/index", false),
            (".git/objects/ab/cd", false),
            (".git/other", true),
            ("b/.git/index", true),
        ] {
            let (_place, source, copy, set) = set_of(&[(path, b"\0".to_vec())]);
            assert_eq!(unshown(&set, &source, &copy).unwrap().len(), usize::from(is_marked), "{path}");
            let marked = render(&set, &source, &copy)
                .unwrap()
                .files
                .iter()
                .filter(|file| file.unshown.is_some())
                .count();
            assert_eq!(marked, usize::from(is_marked), "{path}");
        }
    }
}
