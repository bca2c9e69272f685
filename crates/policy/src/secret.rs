//! Finds secrets of the host in a text.

use std::fmt::Debug;
use std::ops::Range;

/// Finds the host's own secrets in text: credentials and tokens that this process has read, in every form in which they are written
/// (raw, hexadecimal, Base64, escaped for JSON, HTML or URLs).
pub trait KnownSecrets: Debug + Send + Sync {
    /// Returns the byte ranges of `text` that are a secret, in order and without overlap. They lie at character boundaries.
    fn find(&self, text: &str) -> Vec<Range<usize>>;
}

/// No known secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl KnownSecrets for NoSecrets {
    fn find(&self, _: &str) -> Vec<Range<usize>> {
        Vec::new()
    }
}

/// Replacement for a secret in output.
pub const HIDDEN: &str = "***";

/// Returns the text with `***` in place of each known secret.
pub fn hide(secrets: &dyn KnownSecrets, text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut from = 0;
    for range in secrets.find(text) {
        hidden.push_str(text.get(from..range.start).unwrap_or_default());
        hidden.push_str(HIDDEN);
        from = range.end;
    }
    hidden + text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct TestSecret(&'static str);

    impl KnownSecrets for TestSecret {
        fn find(&self, text: &str) -> Vec<Range<usize>> {
            text.match_indices(self.0).map(|(at, found)| at..at + found.len()).collect()
        }
    }

    #[test]
    fn only_known_secrets_are_hidden_regardless_of_variable_name() {
        let text = "export TOKEN=\"$(cmd)\" KEY=hunter22; cat hunter22";
        assert_eq!(hide(&TestSecret("hunter22"), text), "export TOKEN=\"$(cmd)\" KEY=***; cat ***");
        assert_eq!(hide(&NoSecrets, text), text);
    }
}
