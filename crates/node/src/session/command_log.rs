//! The latest output of a session's commands, for callers that didn't wait for a command, or lost its response.

use belljar_contract::worker::event::Stream;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The events of a session's commands. Output of terminals is not in it.
#[derive(Default)]
pub(crate) struct CommandLog(Mutex<EventBuffer>);

#[derive(Default)]
struct EventBuffer {
    events: VecDeque<CommandEvent>,
    /// Size of the events, in bytes.
    bytes: usize,
    /// Id of the last event.
    last: u64,
}

/// An event.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CommandEvent {
    /// Its number among the session's events, from 1. Gaps mean dropped events.
    pub(crate) id: u64,
    at: Timestamp,
    /// The command that it belongs to.
    command_id: Uuid,
    #[serde(flatten)]
    happening: CommandEventKind,
}

/// Kind of an event.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum CommandEventKind {
    /// A command was started.
    Started {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// The command has written output.
    Log {
        /// The stream.
        stream: Stream,
        /// The text; invalid UTF-8 is replaced.
        text: String,
    },
    /// The command has ended.
    Ended {
        /// Its exit code, or 128 plus the signal that ended it.
        exit_code: i32,
    },
}

/// Maximum size in bytes, and maximum number of events. The oldest are dropped.
const MOST_BYTES: usize = 1 << 20;
const MOST_EVENTS: usize = 10_000;

// === impl CommandLog ===

impl CommandLog {
    /// Adds an event of a command.
    pub(super) fn add(&self, at: Timestamp, command_id: Uuid, happening: CommandEventKind) {
        let mut kept = self.locked();
        kept.last += 1;
        kept.bytes += happening.bytes();
        let event = CommandEvent { id: kept.last, at, command_id, happening };
        kept.events.push_back(event);
        while kept.bytes > MOST_BYTES || kept.events.len() > MOST_EVENTS {
            let Some(first) = kept.events.pop_front() else { break };
            kept.bytes -= first.happening.bytes();
        }
    }

    /// Returns the events after the one with that id, at most `most`.
    pub(crate) fn after(&self, id: u64, most: usize) -> Vec<CommandEvent> {
        self.locked().events.iter().filter(|event| event.id > id).take(most).cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, EventBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CommandEventKind ===

impl CommandEventKind {
    fn bytes(&self) -> usize {
        match self {
            Self::Started { command } => command.iter().map(String::len).sum(),
            Self::Log { text, .. } => text.len(),
            Self::Ended { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: String) -> CommandEventKind {
        CommandEventKind::Log { stream: Stream::Stdout, text }
    }

    #[test]
    fn oldest_command_events_are_dropped_at_the_size_limits() {
        let all = CommandLog::default();
        (0..3).for_each(|_| all.add(Timestamp::UNIX_EPOCH, Uuid::nil(), log("x".repeat(MOST_BYTES / 2))));
        let ids = |events: Vec<CommandEvent>| events.iter().map(|event| event.id).collect::<Vec<_>>();
        assert_eq!(ids(all.after(0, 10)), [2, 3]);
        assert_eq!(ids(all.after(2, 10)), [3]);
        (0..MOST_EVENTS).for_each(|_| all.add(Timestamp::UNIX_EPOCH, Uuid::nil(), log(String::new())));
        assert_eq!(all.after(0, usize::MAX).len(), MOST_EVENTS);
        assert_eq!(ids(all.after(0, 1)), [4]);
    }
}
