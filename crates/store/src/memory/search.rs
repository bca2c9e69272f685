//! Full-text search of notes. A job has few, so they are searched here: both engines find the same, in the same order.

use super::entry::MemoryEntry;
use std::cmp::Reverse;

/// Search words, without duplicates, compared regardless of case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    words: Vec<String>,
}

/// The query has no words, or too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("from one word to {MOST_WORDS} are looked for")]
pub struct ParseQueryError;

/// A note in which something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The note.
    pub entry: MemoryEntry,
    /// Number of the words that were found.
    pub words: usize,
    /// Parts that contain words: key, summary, content, in this order.
    pub places: Vec<NotePart>,
    /// Text around the first match in the content, on one line; the content's beginning if it has no match.
    pub snippet: String,
}

/// A part of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotePart {
    /// Key of the note.
    Key,
    /// Summary of the note.
    Summary,
    /// Content of the note.
    Content,
}

/// Maximum number of words in a query.
pub const MOST_WORDS: usize = 16;

/// Number of characters shown before and after a match.
const BEFORE: usize = 80;
const AFTER: usize = 160;

// === impl SearchQuery ===

impl SearchQuery {
    /// Parses a query.
    ///
    /// # Errors
    /// [`ParseQueryError`].
    pub fn parse(text: &str) -> Result<Self, ParseQueryError> {
        let mut words: Vec<String> = Vec::new();
        for word in text.split_whitespace().map(folded) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() || words.len() > MOST_WORDS { Err(ParseQueryError) } else { Ok(Self { words }) }
    }

    /// Returns the notes that contain any of the words. Notes with more of the words come first; then matches in keys,
    /// in summaries, in contents; then newer notes; then by key.
    pub(super) fn ranked(&self, notes: Vec<(MemoryEntry, String)>) -> Vec<SearchHit> {
        let mut found: Vec<(usize, SearchHit)> =
            notes.into_iter().filter_map(|(entry, content)| self.found(entry, &content)).collect();
        found.sort_by_cached_key(|(weight, found)| {
            let entry = &found.entry;
            (Reverse((found.words, *weight, entry.updated_at)), entry.key.clone())
        });
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn found(&self, entry: MemoryEntry, content: &str) -> Option<(usize, SearchHit)> {
        let summary = entry.summary.as_deref().unwrap_or_default();
        let parts = [NotePart::Key, NotePart::Summary, NotePart::Content].into_iter();
        let parts: Vec<_> = parts.zip([entry.key.as_str(), summary, content].map(folded)).collect();
        let (mut words, mut weight, mut places) = (0, 0, Vec::new());
        for word in &self.words {
            let has_it = |(_, text): &&(NotePart, String)| text.contains(word.as_str());
            let in_parts: Vec<NotePart> = parts.iter().filter(has_it).map(|(place, _)| *place).collect();
            words += usize::from(!in_parts.is_empty());
            weight += in_parts.iter().map(|place| place.weight()).sum::<usize>();
            places.extend(in_parts);
        }
        places.sort_unstable();
        places.dedup();
        let (_, folded) = parts.last()?;
        let first = self.words.iter().filter_map(|word| folded.find(word.as_str())).min();
        let snippet = snippet(content, first.map_or(0, |at| folded[..at].chars().count()));
        (words > 0).then_some((weight, SearchHit { entry, words, places, snippet }))
    }
}

/// Returns the text around the character with that number, on one line.
fn snippet(content: &str, at: usize) -> String {
    let from = at.saturating_sub(BEFORE);
    let mut rest = content.chars().skip(from);
    let shown: String = rest.by_ref().take(at - from + AFTER).collect();
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = (if from > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    format!("{before}{line}{after}")
}

/// Folds the case of a text character by character, so that each keeps its position.
fn folded(text: &str) -> String {
    let fold = |one: char| {
        let mut lower = one.to_lowercase();
        lower.next().filter(|_| lower.next().is_none()).unwrap_or(one)
    };
    text.chars().map(fold).collect()
}

// === impl NotePart ===

impl NotePart {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Summary => "summary",
            Self::Content => "content",
        }
    }

    /// Returns a weight that is greater than the sum of all lower ones.
    const fn weight(self) -> usize {
        match self {
            Self::Key => 4,
            Self::Summary => 2,
            Self::Content => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_snippet_surrounds_the_match_and_is_bounded() {
        let content = format!("{} İNEEDLE\n\tthere {}", "ä".repeat(300), "b".repeat(300));
        let at = folded(&content).find("needle").unwrap();
        let at = folded(&content)[..at].chars().count();
        let shown = snippet(&content, at);
        assert!(
            shown.starts_with("…ä") && shown.ends_with("b…") && shown.contains("İNEEDLE there b"),
            "{shown}"
        );
        assert!(shown.chars().count() <= BEFORE + AFTER + 2);
        assert_eq!(snippet("short", 0), "short");
    }

    #[test]
    fn search_query_deduplicates_words_and_limits_their_number() {
        assert_eq!(SearchQuery::parse(" A b\na ").unwrap().words, ["a", "b"]);
        assert_eq!(SearchQuery::parse(" \n"), Err(ParseQueryError));
        let many: String = (0..=MOST_WORDS).map(|number| format!("{number} ")).collect();
        assert_eq!(SearchQuery::parse(&many), Err(ParseQueryError));
    }
}
