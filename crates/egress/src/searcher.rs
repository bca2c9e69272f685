//! Searches for several texts at once.

use aho_corasick::{AhoCorasick, packed};
use std::ops::Range;

/// Finds the first occurrence of any text.
pub(crate) enum Searcher {
    /// By vector instructions. Texts that begin with frequent bytes cost no more than others.
    Vector(packed::Searcher),
    /// For processors without such instructions, and for more texts than those support.
    Automaton(AhoCorasick),
}

// === impl Searcher ===

impl Searcher {
    /// Returns `None` for no texts, or for too many.
    pub(crate) fn new<T: AsRef<[u8]>>(texts: &[T]) -> Option<Self> {
        if texts.is_empty() {
            return None;
        }
        let vector = packed::Searcher::new(texts).map(Self::Vector);
        vector.or_else(|| AhoCorasick::new(texts).ok().map(Self::Automaton))
    }

    pub(crate) fn find(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let found = match self {
            Self::Vector(searcher) => searcher.find(bytes),
            Self::Automaton(searcher) => searcher.find(bytes),
        };
        found.map(|found| found.range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_searchers_agree_on_whether_a_text_occurs(texts in proptest::collection::vec("[ab]{1,6}", 1..20), bytes in "[abc]{0,80}") {
            let vector = Searcher::new(&texts).unwrap();
            let automaton = Searcher::Automaton(AhoCorasick::new(&texts).unwrap());
            let is_there = texts.iter().any(|text| bytes.contains(text.as_str()));
            prop_assert_eq!(vector.find(bytes.as_bytes()).is_some(), is_there);
            prop_assert_eq!(automaton.find(bytes.as_bytes()).is_some(), is_there);
        }
    }

    #[test]
    fn no_searcher_is_made_without_texts() {
        assert!(Searcher::new::<&str>(&[]).is_none());
    }
}
