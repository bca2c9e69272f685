//! Finds similar names, for suggestions in error messages.

/// Returns the name that is most similar to the written one: one that it is a prefix of, or the nearest by edit distance.
pub(super) fn nearest<'n>(written: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let begun = names.clone().find(|name| !written.is_empty() && name.starts_with(written));
    begun.or_else(|| {
        let (letters, name) = names.map(|name| (distance(written, name), name)).min()?;
        // At most half of the characters may differ.
        (letters <= name.chars().count().max(written.chars().count()) / 2).then_some(name)
    })
}

/// Returns the edit distance (Levenshtein), of at most 128 characters each.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 128;
    let b: Vec<char> = b.chars().take(LONGEST).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, letter) in a.chars().take(LONGEST).enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (at, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_is_suggested_for_typos_only() {
        let names = ["claude-code", "codex", "opencode"];
        let nearest = |written: &str| nearest(written, names.into_iter());
        assert_eq!(nearest("claude"), Some("claude-code"));
        assert_eq!(nearest("claud"), Some("claude-code"));
        assert_eq!(nearest("Codex"), Some("codex"));
        assert_eq!(nearest("open-code"), Some("opencode"));
        assert_eq!(nearest("kodeks"), Some("codex"));
        assert_eq!(nearest("aider"), None);
        assert_eq!(nearest(""), None);
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("kitten", "sitting")), (3, 3, 3));
    }
}
