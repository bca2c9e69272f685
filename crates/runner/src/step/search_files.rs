//! `search_files`: the lines that match a regular expression, by file and line.
//!
//! The matches are truncated and flagged at `max_matches` (default 1 000), and when their text exceeds
//! `max_output_bytes`. Files with NUL bytes near the start, files of more than 16 MiB and files that can't be read are
//! not searched but counted.

mod lines;

use super::StepContext;
use crate::content::Content;
use crate::deadline::{Deadline, Interruption};
use crate::directory::{Directory, PathError, RegularFile};
use crate::failure_code::Fault;
use crate::glob::{Glob, GlobError};
use crate::walk::{self, WalkError, WalkOptions};
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::search_files::SearchFiles;
use belljar_contract::path::WorkspacePath;
use belljar_contract::result::output::{ContentEncoding, EntryKind, SearchMatch, SearchMatches, StepOutput};
use belljar_policy::admission::AdmissionDenial;
use lines::{MatchingLine, MatchingLines};
use regex::bytes::{Regex, RegexBuilder};
use std::ffi::OsStr;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reason why nothing was searched.
#[derive(Debug, thiserror::Error)]
pub(super) enum SearchFilesError {
    #[error(transparent)]
    Denied(#[from] AdmissionDenial),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("invalid regular expression: {pattern:?}")]
    Pattern {
        pattern: String,
        #[source]
        source: regex::Error,
    },
    #[error(transparent)]
    Glob(#[from] GlobError),
    #[error(transparent)]
    Interrupted(#[from] Interruption),
}

/// Default maximum number of matches.
const DEFAULT_MAX_MATCHES: usize = 1_000;

/// Maximum size of a searched file, in bytes.
const MAX_FILE_BYTES: usize = 16 << 20;

/// Number of bytes at the start of a file in which a NUL marks it as binary.
const LOOKED_AT_FOR_NUL: usize = 8 << 10;

/// Maximum number of shown bytes of a line.
const SHOWN_LINE_BYTES: usize = 2_000;

struct Search<'s> {
    regex: Regex,
    context_lines: usize,
    matches_left: usize,
    bytes_left: usize,
    deadline: &'s Deadline<'s>,
    content: Vec<u8>,
    found: SearchMatches,
}

pub(super) fn carry_out(
    search: &SearchFiles,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> Result<StepOutput, SearchFilesError> {
    let path = surroundings.resolve(search.path.as_ref())?;
    let include = search.include.as_deref().map(Glob::of_names_or_paths).transpose()?;
    let mut running = Search::new(search, surroundings.max_output(), deadline)?;
    match surroundings.workspace.subdirectory(Path::new(path.as_str())) {
        Ok(root) => running.search_tree(&root, &path, include.as_ref())?,
        Err(error) if error.is_no_directory() => {
            let file = surroundings.workspace.open_file(Path::new(path.as_str()))?;
            running.search_file(Ok(file), path.as_str().as_bytes())?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(StepOutput::SearchFiles(running.found))
}

// === impl Search ===

impl<'s> Search<'s> {
    fn new(
        search: &SearchFiles,
        max_output: usize,
        deadline: &'s Deadline<'s>,
    ) -> Result<Self, SearchFilesError> {
        let regex = RegexBuilder::new(&search.pattern).multi_line(true).crlf(true).build();
        let regex =
            regex.map_err(|source| SearchFilesError::Pattern { pattern: search.pattern.clone(), source })?;
        let max_matches = search.max_matches.map(|cap| usize::try_from(cap).unwrap_or(usize::MAX));
        Ok(Self {
            regex,
            context_lines: usize::try_from(search.context_lines).unwrap_or(usize::MAX),
            matches_left: max_matches.unwrap_or(DEFAULT_MAX_MATCHES),
            bytes_left: max_output,
            deadline,
            content: Vec::new(),
            found: SearchMatches {
                matches: Vec::new(),
                files_searched: 0,
                files_skipped: 0,
                unreadable_directories: 0,
                truncated: false,
            },
        })
    }

    fn search_tree(
        &mut self,
        root: &Directory,
        path: &WorkspacePath,
        include: Option<&Glob>,
    ) -> Result<(), SearchFilesError> {
        let prefix = if path.is_root() { Vec::new() } else { format!("{path}/").into_bytes() };
        let route =
            WalkOptions { max_depth: usize::MAX, targets: false, sizes: false, read_ahead_after: None };
        let mut interrupted = None;
        let missed = walk::walk(root, route, self.deadline, |met| {
            if met.kind != EntryKind::File || include.is_some_and(|glob| !glob.matches(met.path)) {
                return ControlFlow::Continue(());
            }
            let opened = root.open_listed_file(Path::new(OsStr::from_bytes(met.path)));
            interrupted = self.search_file(opened, &[&prefix, met.path].concat()).err();
            match interrupted.is_some() || self.found.truncated {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if let Some(interrupted) = interrupted {
            return Err(interrupted.into());
        }
        let missed = missed.map_err(|error| match error {
            WalkError::Path(error) => SearchFilesError::Path(error),
            WalkError::Interrupted(interrupted) => SearchFilesError::Interrupted(interrupted),
        })?;
        self.found.truncated |= missed.too_much;
        self.found.unreadable_directories = missed.unreadable;
        Ok(())
    }

    /// Searches one file, up to the maximum number of matches.
    fn search_file(
        &mut self,
        opened: Result<RegularFile, PathError>,
        path: &[u8],
    ) -> Result<(), Interruption> {
        self.deadline.check()?;
        if !opened.is_ok_and(|file| self.read(file)) {
            self.found.files_skipped += 1;
            return Ok(());
        }
        self.found.files_searched += 1;
        let content = std::mem::take(&mut self.content);
        let searched = self.search_content(&content, path);
        self.content = content;
        searched
    }

    fn search_content(&mut self, content: &[u8], path: &[u8]) -> Result<(), Interruption> {
        let regex = self.regex.clone();
        let deadline = self.deadline;
        for hit in MatchingLines::new(&regex, content, deadline) {
            let found = self.describe(&hit?, content, path);
            let bytes = size_of_match(&found);
            if self.matches_left == 0 || self.bytes_left < bytes {
                self.found.truncated = true;
                return Ok(());
            }
            self.matches_left -= 1;
            self.bytes_left -= bytes;
            self.found.matches.push(found);
        }
        Ok(())
    }

    /// Reads the file's content, if it is text and not too large.
    fn read(&mut self, file: RegularFile) -> bool {
        let largest = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
        if file.size_bytes > largest {
            return false;
        }
        self.content.clear();
        let read = file.file.take(largest + 1).read_to_end(&mut self.content);
        let start = &self.content[..self.content.len().min(LOOKED_AT_FOR_NUL)];
        read.is_ok() && self.content.len() <= MAX_FILE_BYTES && !start.contains(&0)
    }

    fn describe(&self, hit: &MatchingLine, content: &[u8], path: &[u8]) -> SearchMatch {
        let text = shown(&content[hit.range.clone()]);
        let mut before: Vec<&[u8]> =
            lines::before(content, hit.range.start).take(self.context_lines).map(shown).collect();
        before.reverse();
        let after: Vec<&[u8]> =
            lines::after(content, hit.range.end).take(self.context_lines).map(shown).collect();
        let everything = [path, text].into_iter().chain(before.iter().copied()).chain(after.iter().copied());
        let is_text = everything.clone().all(|bytes| std::str::from_utf8(bytes).is_ok());
        let encode = |bytes: &[u8]| match is_text {
            true => Content::whole(bytes.to_vec()).text,
            false => Content::base64(bytes).text,
        };
        SearchMatch {
            path: encode(path),
            line: hit.number,
            text: encode(text),
            before: before.into_iter().map(encode).collect(),
            after: after.into_iter().map(encode).collect(),
            encoding: (!is_text).then_some(ContentEncoding::Base64),
        }
    }
}

fn size_of_match(found: &SearchMatch) -> usize {
    let context = found.before.iter().chain(&found.after).map(String::len).sum::<usize>();
    found.path.len() + found.text.len() + context
}

/// Returns the shown part of a line; a character is not cut through.
fn shown(line: &[u8]) -> &[u8] {
    if line.len() <= SHOWN_LINE_BYTES {
        return line;
    }
    let is_start = |at: &usize| line.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let end = (SHOWN_LINE_BYTES - 3..=SHOWN_LINE_BYTES).rev().find(is_start);
    &line[..end.unwrap_or(SHOWN_LINE_BYTES)]
}

// === impl SearchFilesError ===

impl Fault for SearchFilesError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Denied(denied) => denied.code(),
            Self::Path(error) => error.code(),
            Self::Pattern { .. } | Self::Glob(_) => FailureCode::StepFailed,
            Self::Interrupted(interrupted) => interrupted.code(),
        }
    }
}
