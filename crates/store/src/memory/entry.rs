//! A note, and how much one may be.

use super::MemoryError;
use crate::database::{DatabaseError, Row};
use belljar_contract::text::is_hidden;
use jiff::Timestamp;
use std::fmt;

/// What a note is found by: printable text on one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryKey(String);

/// What a note is about: text on one line. How long it may be, [`Limits`] say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary(String);

/// The text can't be a key or a summary, or has characters that nothing here may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not text on one line without hidden characters")]
pub struct ParseMemoryKeyError;

/// Something to be noted down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub(super) key: MemoryKey,
    pub(super) content: String,
    pub(super) summary: Option<Summary>,
}

/// What is noted, without the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryEntry {
    /// What it is found by.
    pub key: MemoryKey,
    /// What it is about.
    pub summary: Option<String>,
    /// How much it is: the content, its key and its summary.
    pub size_bytes: u64,
    /// When something was first noted under that key.
    pub created_at: Timestamp,
    /// When this was.
    pub updated_at: Timestamp,
}

/// How much a job may note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many notes.
    pub entries: u64,
    /// How many bytes a content may have.
    pub entry_bytes: u64,
    /// How many bytes all may have together, with their keys and summaries.
    pub total_bytes: u64,
    /// How many bytes a key may have.
    pub key_bytes: u64,
    /// How many bytes a summary may have.
    pub summary_bytes: u64,
}

/// One of [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::entries`].
    Entries,
    /// [`Limits::entry_bytes`].
    EntryBytes,
    /// [`Limits::total_bytes`].
    TotalBytes,
    /// [`Limits::key_bytes`].
    KeyBytes,
    /// [`Limits::summary_bytes`].
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

// === impl Note ===

impl Note {
    /// A note. The content may be any text but that it has no NUL, which one of the databases can't keep.
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

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 128, entry_bytes: 64 << 10, total_bytes: 1 << 20, key_bytes: 128, summary_bytes: 512 }
    }
}

impl Limits {
    /// What a note is by itself.
    pub(super) fn check(&self, note: &Note) -> Result<(), MemoryError> {
        within(Limit::KeyBytes, note.key.0.len() as u64, self.key_bytes)?;
        within(Limit::SummaryBytes, note.summary_bytes() as u64, self.summary_bytes)?;
        within(Limit::EntryBytes, note.content.len() as u64, self.entry_bytes)
    }

    /// What all of them are with it.
    pub(super) fn check_all(&self, entries: u64, bytes: u64) -> Result<(), MemoryError> {
        within(Limit::Entries, entries, self.entries)?;
        within(Limit::TotalBytes, bytes, self.total_bytes)
    }
}

fn within(limit: Limit, would_be: u64, most: u64) -> Result<(), MemoryError> {
    if would_be > most { Err(MemoryError::TooMuch { limit, would_be, most }) } else { Ok(()) }
}

// === impl Limit ===

impl Limit {
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

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
