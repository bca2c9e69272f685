//! Reads a file's text, or some lines of it.
//!
//! A file that exceeds the limit is truncated and flagged; later lines of such a file must be read by other means.

use super::{beneath, refused};
use crate::deadline::Deadline;
use crate::directory::{Directory, RegularFile};
use belljar_contract::workbench::{
    Answer, FileReadResult, MOST_READ_BYTES, ReadFile, RefusalReason, RequestRefusal,
};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The beginning of a file.
pub(super) struct FilePrefix {
    pub(super) bytes: Vec<u8>,
    /// True if there is more.
    pub(super) is_cut: bool,
}

const PORTION: usize = 256 << 10;

pub(super) fn read(
    read: &ReadFile,
    workspace: &Directory,
    deadline: &Deadline<'_>,
) -> Result<Answer, RequestRefusal> {
    let path = beneath(&read.path)?;
    let (first, last) = (read.start_line.unwrap_or(1), read.end_line.unwrap_or(u64::MAX));
    if first == 0 || last < first {
        let said = format!(
            "invalid line range {first} to {last}: lines are counted from 1, and the end must not precede the start"
        );
        return Err(RequestRefusal::new(RefusalReason::Invalid, said));
    }
    let RegularFile { file, size_bytes } =
        workspace.open_file(Path::new(path.as_str())).map_err(|error| refused(&error))?;
    let FilePrefix { bytes, is_cut } = beginning(file, MOST_READ_BYTES, deadline)?;
    let has_range = read.start_line.is_some() || read.end_line.is_some();
    if is_cut && has_range {
        let said = format!(
            "{path} is larger than {MOST_READ_BYTES} bytes, so a line range cannot be read: read it by running a command"
        );
        return Err(RequestRefusal::new(RefusalReason::TooLarge, said));
    }
    let text = text(bytes, is_cut).ok_or_else(|| {
        RequestRefusal::new(RefusalReason::NotText, format!("{path} is not UTF-8 text ({size_bytes} bytes)"))
    })?;
    let content = if has_range { lines(&text, first, last) } else { &text };
    Ok(Answer::FileRead(FileReadResult {
        content: content.to_owned(),
        size_bytes,
        line_count: text.split_inclusive('\n').count() as u64,
        truncated: is_cut,
    }))
}

/// Reads the first bytes of a file, even if it changes meanwhile.
pub(super) fn beginning(
    mut file: File,
    most: usize,
    deadline: &Deadline<'_>,
) -> Result<FilePrefix, RequestRefusal> {
    let failed =
        |error: io::Error| RequestRefusal::new(RefusalReason::Failed, format!("can't read: {error}"));
    let (mut bytes, mut portion) = (Vec::new(), vec![0; PORTION]);
    loop {
        deadline
            .check()
            .map_err(|interrupted| RequestRefusal::new(RefusalReason::Failed, interrupted.to_string()))?;
        let read = match file.read(&mut portion) {
            Ok(0) => return Ok(FilePrefix { bytes, is_cut: false }),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        let room = most - bytes.len();
        bytes.extend_from_slice(&portion[..read.min(room)]);
        if read > room {
            return Ok(FilePrefix { bytes, is_cut: true });
        }
    }
}

/// The bytes as a text, without a character that was cut through at the end.
fn text(bytes: Vec<u8>, is_cut: bool) -> Option<String> {
    String::from_utf8(bytes).map_or_else(
        |error| {
            let flaw = error.utf8_error();
            let mut bytes = error.into_bytes();
            bytes.truncate(flaw.valid_up_to());
            (is_cut && flaw.error_len().is_none())
                .then_some(bytes)
                .and_then(|bytes| String::from_utf8(bytes).ok())
        },
        Some,
    )
}

fn lines(text: &str, first: u64, last: u64) -> &str {
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let begin = match place(first) {
        1 => 0,
        first => ends.by_ref().nth(first - 2).unwrap_or(text.len()),
    };
    let end = ends.nth(place(last - first)).unwrap_or(text.len());
    &text[begin..end.max(begin)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_file_selects_lines_by_number() {
        let text = "one\ntwo\nthree";
        for ((first, last), shown) in [
            ((1, 1), "one\n"),
            ((1, 2), "one\ntwo\n"),
            ((2, 2), "two\n"),
            ((2, 3), "two\nthree"),
            ((3, 3), "three"),
            ((2, u64::MAX), "two\nthree"),
            ((4, 9), ""),
            ((u64::MAX, u64::MAX), ""),
            ((1, u64::MAX), text),
        ] {
            assert_eq!(lines(text, first, last), shown, "{first}..{last}");
        }
        assert_eq!(lines("a\n", 2, 2), "");
        assert_eq!(lines("", 1, 1), "");
    }

    #[test]
    fn only_a_truncated_last_character_is_dropped_from_text() {
        let euro = "a€".as_bytes();
        assert_eq!(text(euro[..3].to_vec(), true).as_deref(), Some("a"));
        assert_eq!(text(euro[..3].to_vec(), false), None);
        assert_eq!(text(vec![b'a', 0xff, b'b'], true), None);
        assert_eq!(text(euro.to_vec(), false).as_deref(), Some("a€"));
    }
}
