//! Keeps a request within a model's context window. Outputs of tools are shortened first, oldest first; text of the job
//! never is.

use super::conversation::{ConversationEntry, Definition};

/// Size of the context window.
pub(super) struct Window {
    /// Tokens of the request with its answer.
    pub(super) tokens: u32,
}

/// The request can't be made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the fixed part of every request takes about {needed} tokens, but inference.context_tokens leaves only {room} for it"
)]
pub(super) struct WindowTooSmallError {
    pub(super) needed: usize,
    pub(super) room: usize,
}

/// Number of bytes that are counted as a token: fewer than in prose, because code and numbers have shorter tokens.
pub(super) const BYTES_OF_A_TOKEN: usize = 3;
/// Bytes that providers add to each message.
const OVERHEAD: usize = 24;
/// Divisor of the window for the part that is reserved for the answer.
pub(super) const OF_ANSWER: u32 = 4;
/// Length of a shortened outcome.
const KEPT: usize = 160;
/// Number of the last outcomes, which the model is working with.
const LATEST: usize = 2;

// === impl Window ===

impl Window {
    /// Tokens of a request without its answer.
    fn room(&self) -> usize {
        (self.tokens - self.tokens / OF_ANSWER) as usize
    }

    /// Returns how much of the window is used, in percent.
    pub(super) fn fill_percent(
        &self,
        fixed: (&str, &str, &[Definition]),
        conversation: &[ConversationEntry],
    ) -> usize {
        let said: usize = conversation.iter().map(weight).sum();
        (tokens_of(fixed) + said / BYTES_OF_A_TOKEN) * 100 / self.room().max(1)
    }

    /// Shortens the conversation until it fits beside what every request has.
    pub(super) fn fit(
        &self,
        fixed: (&str, &str, &[Definition]),
        conversation: &mut Vec<ConversationEntry>,
    ) -> Result<(), WindowTooSmallError> {
        let fixed = tokens_of(fixed);
        let room = self.room();
        let left = room.checked_sub(fixed).ok_or(WindowTooSmallError { needed: fixed, room })?;
        let left = left * BYTES_OF_A_TOKEN;
        let mut taken: usize = conversation.iter().map(weight).sum();
        let outcomes =
            conversation.iter().filter(|entry| matches!(entry, ConversationEntry::Outcome { .. })).count();
        for keep in [LATEST, 0] {
            let mut older = outcomes.saturating_sub(keep);
            for entry in conversation.iter_mut() {
                if taken <= left || older == 0 {
                    break;
                }
                if let ConversationEntry::Outcome { call, text } = entry {
                    older -= 1;
                    if let Some(short) = shortened(&call.tool, text) {
                        taken -= text.len() - short.len();
                        *text = short;
                    }
                }
            }
        }
        while taken > left {
            let Some(gone) = forget_oldest(conversation).or_else(|| abridge(conversation)) else {
                return Err(WindowTooSmallError { needed: fixed + taken / BYTES_OF_A_TOKEN, room });
            };
            taken -= gone.min(taken);
        }
        Ok(())
    }
}

/// Returns the number of tokens that every request has.
fn tokens_of((system, runtime, tools): (&str, &str, &[Definition])) -> usize {
    let tools = tools.iter().map(|tool| {
        let Definition { name, description, schema } = tool;
        name.len() + description.len() + schema.to_string().len()
    });
    (system.len() + runtime.len() + tools.sum::<usize>()) / BYTES_OF_A_TOKEN + 1
}

/// Leaves out texts and arguments of the latest exchange, if these are what is too long: its calls have been performed.
fn abridge(conversation: &mut [ConversationEntry]) -> Option<usize> {
    let before: usize = conversation.iter().map(weight).sum();
    for entry in conversation.iter_mut() {
        match entry {
            ConversationEntry::Said { text, calls, raw_calls } => {
                *raw_calls = None;
                if let Some(long) = text.as_mut().filter(|text| text.len() > KEPT) {
                    *long = crate::excerpt::within(std::mem::take(long), KEPT);
                }
                for call in calls.iter_mut().filter(|call| call.arguments.len() > KEPT) {
                    "{}".clone_into(&mut call.arguments);
                }
            }
            ConversationEntry::Outcome { text, .. } if text.len() > KEPT * 2 => {
                *text = crate::excerpt::within(std::mem::take(text), KEPT);
            }
            ConversationEntry::Note(_) | ConversationEntry::Outcome { .. } => {}
        }
    }
    let after: usize = conversation.iter().map(weight).sum();
    (after < before).then(|| before - after)
}

fn weight(entry: &ConversationEntry) -> usize {
    entry.size() + OVERHEAD * BYTES_OF_A_TOKEN
}

/// Returns the beginning with the original length; `None` if that is no shorter.
fn shortened(tool: &str, text: &str) -> Option<String> {
    const MARK: &str = " bytes, left out to make room; call it again if you need it]";
    if text.ends_with(MARK) {
        return None;
    }
    let mut kept = KEPT.min(text.len());
    while !text.is_char_boundary(kept) {
        kept -= 1;
    }
    let short = format!("{}\n[the rest of what {tool} returned, {}{MARK}", &text[..kept], text.len() - kept);
    (short.len() < text.len()).then_some(short)
}

/// Drops the oldest exchange: a message of a model with all outcomes of its calls. Returns its size; `None` if only the
/// latest exchange is left.
fn forget_oldest(conversation: &mut Vec<ConversationEntry>) -> Option<usize> {
    let is_said = |entry: &ConversationEntry| matches!(entry, ConversationEntry::Said { .. });
    let first = conversation.iter().position(is_said)?;
    let next = first + 1 + conversation[first + 1..].iter().position(is_said)?;
    let gone: Vec<ConversationEntry> = conversation.drain(first..next).collect();
    let before: usize = gone.iter().map(weight).sum();
    let called = gone.iter().filter_map(|entry| match entry {
        ConversationEntry::Outcome { call, .. } => Some(call.tool.as_str()),
        _ => None,
    });
    let called: Vec<&str> = called.collect();
    const LEFT_OUT: &str = "[left out to make room: an earlier turn";
    let noted = ConversationEntry::Note(format!("{LEFT_OUT}, which called {}]", called.join(", ")));
    // One such note is enough; several would fill the window themselves.
    match first.checked_sub(1).map(|at| &mut conversation[at]) {
        Some(ConversationEntry::Note(note)) if note.starts_with(LEFT_OUT) => {
            *note = format!("{LEFT_OUT} and those before it]");
            Some(before)
        }
        _ => {
            let added = weight(&noted);
            conversation.insert(first, noted);
            Some(before.saturating_sub(added))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conversation::Call;
    use super::*;

    fn exchange(number: usize, length: usize) -> [ConversationEntry; 2] {
        let call = Call {
            id: format!("{number}"),
            is_named: false,
            tool: "read_file".to_owned(),
            arguments: "{}".to_owned(),
        };
        let text = format!("{number:04}{}", "x".repeat(length));
        [
            ConversationEntry::Said { text: None, calls: vec![call.clone()], raw_calls: None },
            ConversationEntry::Outcome { call, text },
        ]
    }

    fn whole(count: usize, length: usize) -> Vec<ConversationEntry> {
        (0..count).flat_map(|number| exchange(number, length)).collect()
    }

    fn text(entry: &ConversationEntry) -> &str {
        match entry {
            ConversationEntry::Outcome { text, .. } | ConversationEntry::Note(text) => text,
            ConversationEntry::Said { .. } => "",
        }
    }

    #[test]
    fn conversation_that_fits_the_window_is_unchanged() {
        let mut conversation = whole(5, 1_000);
        Window { tokens: 10_000 }.fit(("system", "now", &[]), &mut conversation).unwrap();
        assert_eq!(conversation, whole(5, 1_000));
    }

    #[test]
    fn oldest_tool_results_are_shortened_first_and_every_call_keeps_its_result() {
        let mut conversation = whole(10, 3_000);
        Window { tokens: 8_000 }.fit(("system", "now", &[]), &mut conversation).unwrap();
        assert_eq!(conversation.len(), 20);
        assert!(text(&conversation[1]).contains("left out"), "{:?}", conversation[1]);
        assert!(
            !text(&conversation[19]).contains("left out") && !text(&conversation[17]).contains("left out")
        );
        let before = conversation.clone();
        Window { tokens: 8_000 }.fit(("system", "now", &[]), &mut conversation).unwrap();
        assert_eq!(conversation, before, "nothing is shortened twice");
    }

    #[test]
    fn oldest_exchanges_are_replaced_by_one_note_when_shortening_is_not_enough() {
        let mut conversation = whole(200, 300);
        Window { tokens: 2_000 }.fit(("system", "now", &[]), &mut conversation).unwrap();
        assert!(conversation.len() < 100);
        let notes = conversation.iter().filter(|entry| matches!(entry, ConversationEntry::Note(_))).count();
        assert_eq!(notes, 1);
        assert!(
            matches!(conversation[1], ConversationEntry::Said { .. }),
            "an outcome never stands without its call"
        );
    }

    #[test]
    fn system_prompt_is_never_cut_to_fit_the_window() {
        let system = "x".repeat(30_000);
        let refused = Window { tokens: 8_000 }.fit((&system, "now", &[]), &mut Vec::new()).unwrap_err();
        assert_eq!((refused.needed, refused.room), (10_002, 6_000));
    }
}
