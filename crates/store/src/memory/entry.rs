//! Notes, and their limits.

use super::MemoryError;
use crate::database::{DatabaseError, Row};
use belljar_contract::text::is_hidden;
use jiff::Timestamp;
use std::fmt;

/// Key of a note: printable text on one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryKey(String);

/// Summary of a note: text on one line. [`MemoryLimits`] gives its maximum length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary(String);

/// The text can't be a key or a summary, or has characters that nothing here may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not text on one line without hidden characters")]
pub struct ParseMemoryKeyError;

/// A note to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryNote {
    pub(super) key: MemoryKey,
    pub(super) content: String,
    pub(super) summary: Option<Summary>,
}

/// A note without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryEntry {
    /// Key of the note.
    pub key: MemoryKey,
    /// Summary of the note.
    pub summary: Option<String>,
    /// Size of content, key and summary, in bytes.
    pub size_bytes: u64,
    /// Time at which that key was first written.
    pub created_at: Timestamp,
    /// Time of the last write.
    pub updated_at: Timestamp,
}

/// Limits for the notes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Maximum number of notes.
    pub entries: u64,
    /// Maximum length of a content, in bytes.
    pub entry_bytes: u64,
    /// Maximum total size with keys and summaries, in bytes.
    pub total_bytes: u64,
    /// Maximum length of a key, in bytes.
    pub key_bytes: u64,
    /// Maximum length of a summary, in bytes.
    pub summary_bytes: u64,
}

/// Names one of [`MemoryLimits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimitKind {
    /// [`MemoryLimits::entries`].
    Entries,
    /// [`MemoryLimits::entry_bytes`].
    EntryBytes,
    /// [`MemoryLimits::total_bytes`].
    TotalBytes,
    /// [`MemoryLimits::key_bytes`].
    KeyBytes,
    /// [`MemoryLimits::summary_bytes`].
    SummaryBytes,
}

// === impl MemoryKey ===

impl MemoryKey {
    /// Reads a key.
    ///
    /// # Errors
    /// [`ParseMemoryKeyError`] when it is empty or not on one line, or has hidden characters.
    pub fn parse(text: &str) -> Result<Self, ParseMemoryKeyError> {
        if text.is_empty() { Err(ParseMemoryKeyError) } else { on_one_line(text).map(Self) }
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Summary ===

impl Summary {
    /// Reads a summary.
    ///
    /// # Errors
    /// [`ParseMemoryKeyError`] when it is not on one line, or has hidden characters.
    pub fn parse(text: &str) -> Result<Self, ParseMemoryKeyError> {
        on_one_line(text).map(Self)
    }
}

impl From<Summary> for String {
    fn from(summary: Summary) -> Self {
        summary.0
    }
}

fn on_one_line(text: &str) -> Result<String, ParseMemoryKeyError> {
    match text.chars().any(|c| c.is_control() || is_hidden(c)) {
        true => Err(ParseMemoryKeyError),
        false => Ok(text.to_owned()),
    }
}

// === impl MemoryNote ===

impl MemoryNote {
    /// Creates a note. The content may be any text without NUL, which one of the databases can't store.
    ///
    /// # Errors
    /// [`ParseMemoryKeyError`] for a content with a NUL.
    pub fn new(
        key: MemoryKey,
        content: String,
        summary: Option<Summary>,
    ) -> Result<Self, ParseMemoryKeyError> {
        if content.contains('\0') { Err(ParseMemoryKeyError) } else { Ok(Self { key, content, summary }) }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        (self.key.0.len() + self.content.len() + self.summary_bytes()) as u64
    }

    fn summary_bytes(&self) -> usize {
        self.summary.as_ref().map_or(0, |summary| summary.0.len())
    }
}

// === impl MemoryEntry ===

impl MemoryEntry {
    pub(super) fn read(row: &Row) -> Result<Self, DatabaseError> {
        Ok(Self {
            key: row.parsed("key", MemoryKey::parse)?,
            summary: row.optional_text("summary")?,
            size_bytes: row.count("size_bytes")?,
            created_at: row.time("created_at_ms")?,
            updated_at: row.time("updated_at_ms")?,
        })
    }
}

// === impl MemoryLimits ===

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { entries: 128, entry_bytes: 64 << 10, total_bytes: 1 << 20, key_bytes: 128, summary_bytes: 512 }
    }
}

impl MemoryLimits {
    /// Checks the limits of a single note.
    pub(super) fn check(&self, note: &MemoryNote) -> Result<(), MemoryError> {
        within(MemoryLimitKind::KeyBytes, note.key.0.len() as u64, self.key_bytes)?;
        within(MemoryLimitKind::SummaryBytes, note.summary_bytes() as u64, self.summary_bytes)?;
        within(MemoryLimitKind::EntryBytes, note.content.len() as u64, self.entry_bytes)
    }

    /// Checks the limits of all notes together.
    pub(super) fn check_all(&self, entries: u64, bytes: u64) -> Result<(), MemoryError> {
        within(MemoryLimitKind::Entries, entries, self.entries)?;
        within(MemoryLimitKind::TotalBytes, bytes, self.total_bytes)
    }
}

fn within(limit: MemoryLimitKind, would_be: u64, most: u64) -> Result<(), MemoryError> {
    if would_be > most { Err(MemoryError::TooMuch { limit, would_be, most }) } else { Ok(()) }
}

// === impl MemoryLimitKind ===

impl MemoryLimitKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::EntryBytes => "entry_bytes",
            Self::TotalBytes => "total_bytes",
            Self::KeyBytes => "key_bytes",
            Self::SummaryBytes => "summary_bytes",
        }
    }
}

impl fmt::Display for MemoryLimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
