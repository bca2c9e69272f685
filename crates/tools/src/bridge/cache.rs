//! Cache of read-only tools' answers, per task.

use crate::Arguments;
use crate::answer::Success;
use crate::caller::Caller;
use crate::canonical;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Cached answers of one server.
#[derive(Debug)]
pub(super) struct Cache {
    ttl: Duration,
    most: usize,
    kept: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    uses: u64,
}

/// Hash of the caller and the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

#[derive(Debug)]
struct Entry {
    success: Success,
    bytes: usize,
    kept_at: Instant,
    /// Number of the last use.
    used: u64,
}

/// Maximum size of the cached answers of a server, in bytes.
const MOST_BYTES: usize = 32 << 20;

// === impl Key ===

impl Key {
    /// Returns the key of a call. A caller without a task shares entries only with itself.
    pub(super) fn of(caller: &Caller, tool: &str, arguments: &Arguments) -> Self {
        let text = |id: Option<&str>| id.unwrap_or_default().to_owned();
        let who = [
            caller.kind.as_str().to_owned(),
            text(caller.task_id.as_ref().map(belljar_contract::id::TaskId::as_str)),
            text(caller.project_id.as_deref()),
            text(caller.user_id.as_deref()),
            text(caller.actor.as_deref()),
        ];
        let mut hash = Sha256::new();
        for part in who.iter().map(String::as_str).chain([tool]) {
            // Length prefixes keep the parts apart.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(canonical::digest(arguments));
        Self(hash.finalize().into())
    }
}

// === impl Cache ===

impl Cache {
    /// Returns a cache of at most `most` entries, each valid for `ttl`.
    pub(super) fn new(ttl: Duration, most: usize) -> Self {
        Self { ttl, most, kept: Mutex::default() }
    }

    /// Returns a copy of a valid cached answer.
    pub(super) fn find(&self, key: Key) -> Option<Success> {
        let mut kept = self.kept();
        kept.uses += 1;
        let now = kept.uses;
        let entry = kept.entries.get_mut(&key)?;
        if entry.kept_at.elapsed() >= self.ttl {
            kept.remove(key);
            return None;
        }
        entry.used = now;
        Some(entry.success.clone())
    }

    /// Stores an answer; the least recently used ones are evicted.
    pub(super) fn keep(&self, key: Key, success: &Success) {
        let bytes = size(success);
        if self.most == 0 || self.ttl.is_zero() || bytes > MOST_BYTES {
            return;
        }
        let mut kept = self.kept();
        kept.remove(key);
        while kept.entries.len() >= self.most || kept.bytes + bytes > MOST_BYTES {
            let oldest = kept.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            let Some(oldest) = oldest else { break };
            kept.remove(oldest);
        }
        kept.uses += 1;
        let entry = Entry { success: success.clone(), bytes, kept_at: Instant::now(), used: kept.uses };
        kept.bytes += bytes;
        kept.entries.insert(key, entry);
    }

    /// Removes all entries: the server was restarted, or its tools have changed.
    pub(super) fn clear(&self) {
        *self.kept() = CacheEntries::default();
    }

    fn kept(&self) -> MutexGuard<'_, CacheEntries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CacheEntries ===

impl CacheEntries {
    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.bytes -= entry.bytes;
        }
    }
}

fn size(success: &Success) -> usize {
    let data = serde_json::to_vec(&success.data).map_or(usize::MAX / 2, |data| data.len());
    let attached: usize = success.attachments.iter().map(|attachment| attachment.base64.len()).sum();
    data.saturating_add(attached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::id::TaskId;
    use belljar_contract::tool::AgentKind;
    use serde_json::json;

    fn caller(task: Option<&str>) -> Caller {
        Caller {
            task_id: task.map(|task| TaskId::parse(task).unwrap()),
            ..Caller::of(AgentKind::ProjectManager)
        }
    }

    fn key(task: Option<&str>, tool: &str, arguments: &str) -> Key {
        Key::of(&caller(task), tool, &serde_json::from_str(arguments).unwrap())
    }

    const ONE: Option<&str> = Some("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e");
    const OTHER: Option<&str> = Some("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f");

    #[tokio::test(start_paused = true)]
    async fn cached_answer_is_scoped_to_its_task_and_expires() {
        let cache = Cache::new(Duration::from_secs(60), 8);
        cache.keep(key(ONE, "t", r#"{"a":1,"b":2}"#), &Success::of(json!("secret of one")));
        assert!(cache.find(key(ONE, "t", r#"{"b":2,"a":1}"#)).is_some());
        let others = [
            key(OTHER, "t", r#"{"a":1,"b":2}"#),
            key(None, "t", r#"{"a":1,"b":2}"#),
            key(ONE, "u", r#"{"a":1,"b":2}"#),
            key(ONE, "t", r#"{"a":1,"b":"2"}"#),
        ];
        for other in others {
            assert_eq!(cache.find(other), None);
        }
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(cache.find(key(ONE, "t", r#"{"a":1,"b":2}"#)).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(cache.find(key(ONE, "t", r#"{"a":1,"b":2}"#)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn cache_evicts_least_recently_used_answers() {
        let cache = Cache::new(Duration::from_secs(60), 2);
        let [a, b, c] = ["a", "b", "c"].map(|tool| key(ONE, tool, "{}"));
        cache.keep(a, &Success::of(json!(1)));
        cache.keep(b, &Success::of(json!(2)));
        assert!(cache.find(a).is_some());
        cache.keep(c, &Success::of(json!(3)));
        assert_eq!([a, b, c].map(|key| cache.find(key).is_some()), [true, false, true]);
        let huge = Success::of(json!("x".repeat(20 << 20)));
        cache.keep(b, &huge);
        cache.keep(c, &huge);
        assert_eq!([a, b, c].map(|key| cache.find(key).is_some()), [false, false, true]);
        cache.clear();
        assert_eq!(cache.find(c), None);
    }
}
