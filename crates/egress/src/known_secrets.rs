//! Secrets that this process has read, so that they can be found where they would be written or shown.
//!
//! A credential is known from its first use until all its copies are gone. A token that this process checks is known until it
//! ends.

use crate::credential::InjectedSecret;
use crate::secret::Secret;
use belljar_policy::secret::KnownSecrets;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All secrets of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessSecrets;

static INJECTED: Mutex<Vec<Weak<InjectedSecret>>> = Mutex::new(Vec::new());
static KEPT: Mutex<Vec<Arc<InjectedSecret>>> = Mutex::new(Vec::new());

/// Registers a secret until this process ends.
pub fn remember(secret: Secret) {
    lock(&KEPT).push(Arc::new(InjectedSecret::of(secret)));
}

/// Registers a credential for as long as it is used.
pub(crate) fn follow(injected: &Arc<InjectedSecret>) {
    let mut all = lock(&INJECTED);
    all.retain(|known| known.strong_count() > 0);
    all.push(Arc::downgrade(injected));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic can leave the value half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KnownSecrets for ProcessSecrets {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut all: Vec<Arc<InjectedSecret>> = lock(&INJECTED).iter().filter_map(Weak::upgrade).collect();
        all.extend(lock(&KEPT).iter().cloned());
        let mut found: Vec<Range<usize>> =
            all.iter().flat_map(|injected| injected.forms.all_in(text.as_bytes())).collect();
        found.sort_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match merged.last_mut().filter(|last| range.start < last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => merged.push(range),
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_policy::secret::hide;

    #[test]
    fn process_secret_is_redacted_in_every_encoding_and_nothing_else() {
        remember(Secret::parse("kept-4f\"Q9aB7").unwrap());
        let known = ProcessSecrets;
        assert_eq!(hide(&known, "TOKEN=\"$(cmd)\" kept-4f\"Q9aB7 é"), "TOKEN=\"$(cmd)\" *** é");
        let json = serde_json::json!({ "argv": ["echo", "kept-4f\"Q9aB7"] }).to_string();
        assert_eq!(hide(&known, &json), r#"{"argv":["echo","***"]}"#);
        for written in [
            "kept-4f%22Q9aB7",
            "%6bept-4f%22Q9aB7",
            "kept-4f%2522Q9aB7",
            "kept-4f&quot;Q9aB7",
            "kept-4f\\u0022Q9aB7",
        ] {
            assert_eq!(hide(&known, &format!("<{written}>")), "<***>", "{written}");
        }
        assert_eq!(hide(&known, "6b6570742d34662251396142377e"), "***7e");
        assert!(known.find("kept-4f").is_empty());
    }
}
