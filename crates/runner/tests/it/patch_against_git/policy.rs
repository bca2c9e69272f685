//! Checks if a diff holds something that we may refuse though git accepts it.
//!
//! Deliberately crude: it looks at the text of lines, and knows nothing of sections, hunks or stripping.

use super::world::World;

const NAMING: [&[u8]; 11] = [
    b"diff --git ",
    b"--- ",
    b"+++ ",
    b"rename from ",
    b"rename to ",
    b"rename old ",
    b"rename new ",
    b"copy from ",
    b"copy to ",
    b"Binary files ",
    b"Files ",
];
const MODES: [&[u8]; 5] = [b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode ", b"index "];

/// The reason that a diff gives for being binary, in parts or as a whole.
pub(super) const BINARY: &str = "binary patch";

/// The reason to refuse the diff on this tree, if there is any.
pub(super) fn reason_to_refuse(world: &World, diff: &[u8]) -> Option<&'static str> {
    let mut lines = diff.split(|&byte| byte == b'\n');
    let is_git = lines.clone().any(|line| line.starts_with(b"diff --git "));
    lines.find_map(|line| {
        if is_git && (line.starts_with(b"--- /dev/null") || line.starts_with(b"+++ /dev/null")) {
            return Some("a file called dev/null");
        }
        if line == b"GIT binary patch" || line.starts_with(b"Binary files ") {
            return Some(BINARY);
        }
        if let Some(keyword) = MODES.iter().find(|keyword| line.starts_with(keyword)) {
            return has_odd_mode(&line[keyword.len()..]).then_some("odd mode");
        }
        let keyword = NAMING.iter().find(|keyword| line.starts_with(keyword))?;
        let text = &line[keyword.len()..];
        if world.all_directories().iter().any(|directory| names(text, directory)) {
            return Some("a directory for a file");
        }
        if text.contains(&b'\t') && ![b"--- ", b"+++ "].iter().any(|word| keyword == word) {
            return Some("tab in a name");
        }
        unsafe_name(text)
    })
}

/// Anything of six digits but 100xxx, or fewer digits.
fn has_odd_mode(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let last =
        text.split_whitespace().find(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
    last.is_some_and(|word| {
        let word = word.trim_start_matches('0');
        !(word.len() == 6 && word.starts_with("100"))
    })
}

fn unsafe_name(text: &[u8]) -> Option<&'static str> {
    let is_quoted = text.contains(&b'"');
    // A carriage return ends a plain name, but belongs to a quoted one.
    if is_quoted && text.contains(&b'\r') {
        return Some("carriage return in quotes");
    }
    if text.iter().any(|byte| byte.is_ascii_control() && !b"\t\r".contains(byte))
        || std::str::from_utf8(text).is_err()
    {
        return Some("control or foreign character");
    }
    if text.iter().filter(|&&byte| byte == b'"').count() % 2 != 0 {
        return Some("open quote");
    }
    let lower = String::from_utf8_lossy(text).to_lowercase();
    if is_quoted
        && ["\\0", "\\1", "\\2", "\\3", "\\a", "\\b", "\\f", "\\n", "\\r", "\\t", "\\v"]
            .iter()
            .any(|e| lower.contains(e))
    {
        return Some("escaped character");
    }
    if lower.contains("..") {
        return Some("parent directory");
    }
    if lower.contains(".git") || lower.contains("git~1") {
        return Some("git directory");
    }
    let starts_absolute = lower.trim_start_matches('"').starts_with('/')
        || lower.contains(" /")
        || lower.contains("\"/")
        || lower.contains("\t/");
    if lower.trim_end_matches(['"', '\r', '\t', ' ']).ends_with('/') {
        return Some("directory");
    }
    if starts_absolute && !lower.starts_with("/dev/null") {
        return Some("absolute");
    }
    None
}

/// Returns true if a word of the text is this path, perhaps below a directory to strip.
fn names(text: &[u8], path: &str) -> bool {
    let text = String::from_utf8_lossy(text).replace("\\\\", "\\").replace("\\\"", "\"");
    let is_path =
        |text: &str| text.strip_suffix(path).is_some_and(|above| above.is_empty() || above.ends_with('/'));
    let ends = text.match_indices(['\t', '"', ' ']).map(|(end, _)| end).chain([text.trim_end().len()]);
    ends.into_iter().any(|end| is_path(text[..end].trim_start_matches('"')))
}
