//! Detects whether an answer is complete, and whether its reported usage is final.
//!
//! A stream may report usage before its end: Anthropic's first event does, and some providers do in each event. Such a report
//! doesn't cover the output after it. A stream that stops without its last event, or with an error, has no final report.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Progress of an answer.
#[derive(Debug, Default)]
pub(super) struct Completion {
    report: ReportState,
    /// True if the last line with content is one that ends a stream.
    is_ended: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReportState {
    #[default]
    None,
    /// No output came after the report.
    Last,
    /// Output or an error came after the report.
    Outdated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Line that ends a stream.
    Last,
    /// Output, an error, or anything unknown.
    Event,
}

#[derive(Deserialize)]
struct EventType<'t> {
    #[serde(borrow)]
    r#type: Option<&'t RawValue>,
}

/// Shorter lines hold no output: they are empty, name an event, or keep a connection open.
const SHORTEST_EVENT: usize = 48;
/// Types of the events that end a stream and carry its usage (OpenAI's Responses).
const ENDS_WITH_USAGE: [&str; 3] =
    ["\"response.completed\"", "\"response.incomplete\"", "\"response.failed\""];
const ENDS: &str = "\"message_stop\"";

// === impl Completion ===

impl Completion {
    /// Notes a line that reports usage, and whether it ends the stream.
    pub(super) fn reported(&mut self, is_end: bool) {
        (self.report, self.is_ended) = (ReportState::Last, is_end);
    }

    /// Takes the next lines without a usage report. The last one decides about the end. The others are parsed only while they
    /// could outdate a report.
    pub(super) fn lines(&mut self, lines: &[u8]) {
        if self.report == ReportState::Last {
            let mut rest = Some(lines);
            while let Some(here) = rest {
                let end = memchr::memchr(b'\n', here);
                if kind(&here[..end.unwrap_or(here.len())]) == Some(LineKind::Event) {
                    self.report = ReportState::Outdated;
                    break;
                }
                rest = end.map(|end| &here[end + 1..]);
            }
        }
        let mut rest = Some(lines);
        while let Some(here) = rest {
            let begin = memchr::memrchr(b'\n', here);
            if let Some(kind) = kind(&here[begin.map_or(0, |at| at + 1)..]) {
                self.is_ended = kind == LineKind::Last;
                return;
            }
            rest = begin.map(|at| &here[..at]);
        }
    }

    /// Returns true if the stream is complete.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Returns true if the stream is complete, and nothing that counts came after the last report.
    pub(super) fn is_final(&self) -> bool {
        self.is_ended && self.report == ReportState::Last
    }
}

/// Returns true if a line with a usage report ends its stream, by its type. A document outside of an event is the whole answer.
pub(super) fn ends_with_usage(line: &[u8], kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| ENDS_WITH_USAGE.contains(&kind)) || line.trim_ascii_start().starts_with(b"{")
}

/// Returns the kind of a line without usage; `None` for a line without content.
fn kind(line: &[u8]) -> Option<LineKind> {
    let line = line.trim_ascii();
    let Some(data) = line.strip_prefix(b"data:") else {
        // Field of an event, or a comment.
        let is_field = [&b"event:"[..], b"id:", b"retry:", b":"].iter().any(|field| line.starts_with(field));
        return (!line.is_empty() && !is_field).then_some(LineKind::Event);
    };
    let data = data.trim_ascii_start();
    if data == b"[DONE]" || is_message_stop(data) {
        return Some(LineKind::Last);
    }
    let is_short = line.len() < SHORTEST_EVENT && memchr::memmem::find(line, b"error").is_none();
    (!is_short).then_some(LineKind::Event)
}

fn is_message_stop(data: &[u8]) -> bool {
    memchr::memmem::find(data, ENDS.as_bytes()).is_some()
        && serde_json::from_slice::<EventType<'_>>(data)
            .is_ok_and(|typed| typed.r#type.is_some_and(|kind| kind.get() == ENDS))
}

#[cfg(test)]
mod tests {
    use super::super::{AnswerFormat, Observer, Usage};
    use belljar_contract::inference::ApiDialect;

    fn ends_of(surface: ApiDialect, shape: AnswerFormat, text: &str) -> Option<(bool, bool)> {
        let mut all = None;
        for piece in [1, 7, 60, text.len()] {
            let mut observer = Observer::new(surface, shape);
            text.as_bytes().chunks(piece).for_each(|piece| observer.see(piece));
            let Usage { is_ended, is_final, .. } = observer.finish();
            assert!(all.is_none_or(|all| all == (is_ended, is_final)), "{piece}: {text}");
            all = Some((is_ended, is_final));
        }
        all
    }

    #[test]
    fn usage_report_is_final_only_at_the_end_of_a_stream() {
        let pad = "a".repeat(60);
        let begun = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n";
        let said = format!("data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"{pad}\"}}}}\n\n");
        let told =
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n";
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
        let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n: on\n\n";
        for (stream, expected) in [
            ([begun, &said, told, stop].concat(), (true, true)),
            ([begun, &said, told, ping, stop].concat(), (true, true)),
            ([begun, &said, error].concat(), (false, false)),
            ([begun, &said].concat(), (false, false)),
            ([begun, &said, told].concat(), (false, false)),
            ([begun, &said, stop].concat(), (true, false)),
            ([begun, &said, told, error, stop].concat(), (true, false)),
            ([begun, &said, told, &said, stop].concat(), (true, false)),
            ([&said, stop].concat(), (true, false)),
            ([begun, error].concat(), (false, false)),
        ] {
            assert_eq!(
                ends_of(ApiDialect::Anthropic, AnswerFormat::Lines, &stream),
                Some(expected),
                "{stream}"
            );
        }
    }

    #[test]
    fn end_of_stream_is_detected_for_each_api_format() {
        let pad = "a".repeat(60);
        let said = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{pad}\"}}}}],\"usage\":{{\"completion_tokens\":1}}}}\n\n"
        );
        let unsaid =
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{pad}\"}}}}],\"usage\":null}}\n\n");
        let told = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\r\n\r\n";
        let done = "data: [DONE]\r\n\r\n";
        let of = |kind: &str, usage: &str| {
            format!(
                "event: x\ndata: {{\"type\":\"{kind}\",\"response\":{{\"usage\":{usage},\"x\":\"{pad}\"}}}}\n\n"
            )
        };
        let counts = "{\"input_tokens\":5,\"output_tokens\":7}";
        for (stream, expected) in [
            ([&said, told, done].concat(), (true, true)),
            (said.repeat(2), (false, false)),
            ([&said, "data: {\"error\":{}}\n\n", done].concat(), (true, false)),
            ([&said, &unsaid, done].concat(), (true, false)),
            (of("response.completed", counts), (true, true)),
            (of("response.incomplete", counts), (true, true)),
            (of("response.failed", "null"), (false, false)),
            (of("response.in_progress", counts), (false, false)),
            ([of("response.completed", counts), done.to_owned()].concat(), (true, true)),
            // Whole document in answer to a request for a stream.
            (format!("{{\"choices\":[],\"usage\":{counts}}}"), (true, true)),
        ] {
            assert_eq!(ends_of(ApiDialect::Openai, AnswerFormat::Lines, &stream), Some(expected), "{stream}");
        }
        let line = "{\"message\":{\"content\":\"a\"},\"done\":false,\"eval_count\":1}\n";
        let last = "{\"done\":true,\"prompt_eval_count\":5,\"eval_count\":7}\n";
        let error = "{\"error\":\"the runner has stopped\"}\n";
        for (stream, expected) in [
            ([line, last].concat(), (true, true)),
            ([line, error].concat(), (false, false)),
            (line.to_owned(), (false, false)),
        ] {
            assert_eq!(ends_of(ApiDialect::Ollama, AnswerFormat::Lines, &stream), Some(expected), "{stream}");
        }
    }

    #[test]
    fn incomplete_document_has_no_final_usage() {
        let usage = "\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}";
        for text in ["a".to_owned(), "a".repeat(400 << 10)] {
            for (document, expected) in [
                (format!("{{{usage},\"x\":\"{text}\"}}"), (true, true)),
                (format!("{{\"x\":\"{text}\"}}\n"), (true, false)),
                (format!("{{{usage},\"x\":\"{text}"), (false, false)),
                (format!("data: {{{usage},\"x\":\"{text}\"}}\n\ndata: {{}}\n\n"), (false, false)),
            ] {
                let mut observer = Observer::new(ApiDialect::Openai, AnswerFormat::Whole);
                document.as_bytes().chunks(9_999).for_each(|piece| observer.see(piece));
                let Usage { is_ended, is_final, .. } = observer.finish();
                assert_eq!((is_ended, is_final), expected, "{}", document.len());
            }
        }
    }
}
