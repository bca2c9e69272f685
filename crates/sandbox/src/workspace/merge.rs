//! Three-way merge of a text file: what a run made of it and what the source has become meanwhile, on what both began with.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;

/// Larger files are not merged.
const LARGEST_BYTES: u64 = 8 << 20;

/// What came of a merge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// Both sides changed different lines, or the same lines to the same text.
    Clean(Vec<u8>),
    /// Both sides changed the same lines; the text has conflict markers as git writes them.
    Marked(Vec<u8>),
    /// One of the three is no text, or too large.
    Impossible,
}

/// The content of a merged file. It is noted before it is written: after an interrupted attempt a file that has it is merged already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MergedContent {
    sha256: [u8; 32],
    pub(super) has_markers: bool,
}

// === impl MergedContent ===

impl MergedContent {
    pub(super) fn of(content: &[u8], has_markers: bool) -> Self {
        Self { sha256: Sha256::digest(content).into(), has_markers }
    }

    /// Returns true if a file has it.
    pub(super) fn is_in(&self, file: File) -> bool {
        let mut content = Vec::new();
        let read = file.take(3 * LARGEST_BYTES).read_to_end(&mut content);
        read.is_ok() && Self::of(&content, self.has_markers) == *self
    }
}

/// Merges three versions of a file.
///
/// # Errors
/// That of reading.
pub(super) fn merge(base: File, source: File, run: File) -> std::io::Result<Merged> {
    let (Some(base), Some(source), Some(run)) = (text(base)?, text(source)?, text(run)?) else {
        return Ok(Merged::Impossible);
    };
    Ok(match diffy::merge_bytes(&base, &source, &run) {
        Ok(merged) => Merged::Clean(merged),
        Err(marked) => Merged::Marked(marked),
    })
}

/// The content of a file if it is text of a size that is merged.
fn text(file: File) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes)?;
    let is_text = bytes.len() as u64 <= LARGEST_BYTES && !bytes.contains(&0);
    Ok(is_text.then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn merged(versions: [&[u8]; 3]) -> Merged {
        let [base, source, run] = versions.map(|version| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(version).unwrap();
            file.rewind().unwrap();
            file
        });
        merge(base, source, run).unwrap()
    }

    #[test]
    fn different_lines_are_merged_and_the_same_lines_are_marked() {
        let base = b"one\ntwo\nthree\nfour\nfive\n";
        let clean = merged([base, b"ONE\ntwo\nthree\nfour\nfive\n", b"one\ntwo\nthree\nfour\nFIVE\n"]);
        assert_eq!(clean, Merged::Clean(b"ONE\ntwo\nthree\nfour\nFIVE\n".to_vec()));
        let Merged::Marked(marked) = merged([b"one\n", b"source\n", b"run\n"]) else { panic!("no markers") };
        let marked = String::from_utf8(marked).unwrap();
        assert!(
            marked.contains("<<<<<<<") && marked.contains("source\n") && marked.contains("run\n"),
            "{marked}"
        );
        assert_eq!(merged([b"a\0", b"b\0", b"c\0"]), Merged::Impossible);
    }
}
