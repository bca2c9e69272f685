//! Extracts a call's usage from the answer, which is forwarded unchanged.

mod completion;
mod members;
mod received;

use self::completion::{Completion, ends_with_usage};
use self::members::{MemberScanner, NestedMembers};
use self::received::ReceivedSize;
use belljar_contract::inference::{ApiDialect, Cost};
use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::sync::LazyLock;

/// Usage and cost that an answer reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// Input tokens that some providers count separately: those written to a cache or read from it.
    pub(crate) cache_tokens: Option<u64>,
    /// Cost in US dollars.
    pub(crate) cost: Option<Cost>,
    /// Output tokens that have come, estimated from the size of the answer.
    pub(crate) received_tokens: u64,
    /// True if the answer is complete: with the event that ends a stream, or as one complete document.
    pub(crate) is_ended: bool,
    /// True if the answer is complete and its report covers all of it.
    pub(crate) is_final: bool,
}

// === impl Usage ===

impl Usage {
    /// Returns the sum of all reported tokens; `None` if none are reported.
    pub(crate) fn tokens(&self) -> Option<u64> {
        let counts = [self.input_tokens, self.output_tokens, self.cache_tokens];
        counts.into_iter().flatten().reduce(u64::saturating_add)
    }

    fn reports_something(&self) -> bool {
        self.tokens().is_some() || self.cost.is_some()
    }
}

/// Parses the bytes of one answer as they pass.
pub(crate) struct Observer {
    shape: AnswerFormat,
    surface: ApiDialect,
    /// Bytes of the incomplete line, or of the whole document.
    kept: Vec<u8>,
    /// Parser for a line or document that is too long to be kept.
    members: Option<MemberScanner>,
    usage: Usage,
    received: ReceivedSize,
    completion: Completion,
}

/// Format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerFormat {
    /// One JSON document.
    Whole,
    /// Lines with one JSON document each, perhaps after `data:`.
    Lines,
}

/// Maximum size of a line or document that is kept whole, in bytes.
const LONGEST: usize = 256 << 10;
/// Members that are looked for in a longer one.
const MEMBERS: &[&str] = &["usage", "prompt_eval_count", "eval_count", "type", "done"];
const INNER: NestedMembers = NestedMembers { holders: &["response", "message"], names: &["usage"] };

/// Members by which any provider reports usage. Members of these names may have other types elsewhere.
#[derive(Deserialize)]
struct UsageMembers<'s> {
    #[serde(borrow)]
    usage: Option<&'s RawValue>,
    #[serde(borrow)]
    response: Option<&'s RawValue>,
    #[serde(borrow)]
    message: Option<&'s RawValue>,
    #[serde(borrow)]
    prompt_eval_count: Option<&'s RawValue>,
    #[serde(borrow)]
    eval_count: Option<&'s RawValue>,
    /// Type of an event (OpenAI's Responses, Anthropic).
    #[serde(borrow)]
    r#type: Option<&'s RawValue>,
    /// True on the last line (Ollama).
    #[serde(borrow)]
    done: Option<&'s RawValue>,
    #[serde(borrow)]
    prompt_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    input_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    cache_creation_input_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    cache_read_input_tokens: Option<&'s RawValue>,
    /// Counts of each pass of a call with several; the counts beside it are those of the last pass (Anthropic's compaction).
    #[serde(borrow)]
    iterations: Option<&'s RawValue>,
    /// Cost as it is written: the billed amount is not rounded.
    #[serde(borrow)]
    cost: Option<&'s RawValue>,
}

/// Stands for a line that was too long to be kept and reports nothing.
const LONG_LINE: &[u8] = b"(a long line)";

fn is_true(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get() == "true")
}

fn number(value: Option<&RawValue>) -> Option<u64> {
    value?.get().parse().ok()
}

// === impl Observer ===

impl Observer {
    pub(crate) fn new(surface: ApiDialect, shape: AnswerFormat) -> Self {
        let received = ReceivedSize::new(shape);
        let (usage, completion) = (Usage::default(), Completion::default());
        Self { shape, surface, kept: Vec::new(), members: None, usage, received, completion }
    }

    /// Takes the next bytes of the answer.
    pub(crate) fn see(&mut self, bytes: &[u8]) {
        self.received.see(bytes);
        match self.shape {
            AnswerFormat::Whole => self.keep(bytes),
            AnswerFormat::Lines => self.lines(bytes),
        }
    }

    /// Returns the usage, as far as it is known.
    pub(crate) fn finish(&mut self) -> Usage {
        let is_document = self.shape == AnswerFormat::Whole && self.is_document();
        self.kept_line();
        let received_tokens = self.received.tokens();
        let usage = Usage { received_tokens, ..std::mem::take(&mut self.usage) };
        let (is_ended, is_final) = match self.shape {
            AnswerFormat::Whole => (is_document, is_document && usage.reports_something()),
            AnswerFormat::Lines => (self.completion.is_ended(), self.completion.is_final()),
        };
        Usage { is_ended, is_final, ..usage }
    }

    /// Returns true if the answer was one complete document.
    fn is_document(&self) -> bool {
        match &self.members {
            Some(members) => members.is_document(),
            None => serde_json::from_slice::<IgnoredAny>(&self.kept).is_ok(),
        }
    }

    fn lines(&mut self, mut bytes: &[u8]) {
        let Some(last) = memchr::memrchr(b'\n', bytes) else { return self.keep(bytes) };
        if !self.kept.is_empty() || self.members.is_some() {
            let first = memchr::memchr(b'\n', bytes).unwrap_or(last);
            let (head, rest) = bytes.split_at(first);
            self.keep(head);
            self.kept_line();
            bytes = rest;
        }
        let end = memchr::memrchr(b'\n', bytes).unwrap_or_default();
        let (whole, rest) = bytes.split_at(end);
        // Nearly all lines report nothing. They are not even split.
        let (mut at, mut reported) = (0, 0);
        let sign = self.sign();
        while let Some(found) = whole.get(at..).and_then(|rest| sign.find(rest)) {
            let found = at + found;
            at = found + sign.needle().len();
            if says_nothing(&whole[at..]) {
                continue;
            }
            let begin = memchr::memrchr(b'\n', &whole[..found]).map_or(0, |at| at + 1);
            let end = memchr::memchr(b'\n', &whole[found..]).map_or(whole.len(), |length| found + length);
            if self.line(&whole[begin..end]) {
                reported = end;
            }
            at = end;
        }
        self.completion.lines(&whole[reported..]);
        self.keep(rest.strip_prefix(b"\n").unwrap_or(rest));
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.members.is_none() && self.kept.len() + bytes.len() <= LONGEST {
            self.kept.extend_from_slice(bytes);
            return;
        }
        let members = self.members.get_or_insert_with(|| MemberScanner::new(MEMBERS, INNER));
        members.see(&std::mem::take(&mut self.kept));
        members.see(bytes);
    }

    /// Ends the kept line.
    fn kept_line(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        let is_report = match self.members.take() {
            Some(members) => self.long_line(&members),
            None => self.line(&kept),
        };
        if !is_report {
            self.completion.lines(&kept);
        }
    }

    /// Reads a line that was too long to be kept. Returns true if it reports usage.
    fn long_line(&mut self, members: &MemberScanner) -> bool {
        let value =
            |name: &str| serde_json::from_slice::<&RawValue>(members.get(name)?.strip_prefix(b":")?).ok();
        let mut is_report = value("usage").is_some_and(|counts| self.count(counts));
        if self.surface == ApiDialect::Ollama {
            is_report |= self.evaluated([value("prompt_eval_count"), value("eval_count")]);
        }
        let kind = value("type").map(RawValue::get);
        let is_end = self.surface == ApiDialect::Ollama && is_true(value("done"));
        match is_report {
            true => self.completion.reported(is_end || ends_with_usage(members.beginning(), kind)),
            // The beginning is gone, and the line is longer than any that ends a stream.
            false => self.completion.lines(LONG_LINE),
        }
        true
    }

    /// Notes Ollama's counts. Returns true if there are any.
    fn evaluated(&mut self, [input, output]: [Option<&RawValue>; 2]) -> bool {
        let (input, output) = (number(input), number(output));
        self.usage.input_tokens = input.or(self.usage.input_tokens);
        self.usage.output_tokens = output.or(self.usage.output_tokens);
        input.is_some() || output.is_some()
    }

    /// Returns the finder of a text that every line with a report contains.
    fn sign(&self) -> &'static Finder<'static> {
        static COUNTS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("eval_count\""));
        static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage\""));
        match self.surface {
            ApiDialect::Ollama => &COUNTS,
            ApiDialect::Openai | ApiDialect::Anthropic => &USAGE,
        }
    }

    /// Reads a line. Returns true if it reports usage.
    fn line(&mut self, line: &[u8]) -> bool {
        if self.sign().find(line).is_none() {
            return false;
        }
        let line = line.trim_ascii();
        let document = line.strip_prefix(b"data:").unwrap_or(line);
        let Ok(said) = serde_json::from_slice::<UsageMembers<'_>>(document) else { return false };
        let mut is_report = false;
        for counts in [said.usage, usage_of(said.response), usage_of(said.message)].into_iter().flatten() {
            is_report |= self.count(counts);
        }
        is_report |= self.evaluated([said.prompt_eval_count, said.eval_count]);
        if is_report {
            let is_end = match self.surface {
                ApiDialect::Ollama => is_true(said.done),
                ApiDialect::Openai | ApiDialect::Anthropic => {
                    ends_with_usage(line, said.r#type.map(RawValue::get))
                }
            };
            self.completion.reported(is_end);
        }
        is_report
    }

    /// Notes counts. Returns true if there are any. A later report replaces an earlier one: Anthropic reports input tokens
    /// first.
    fn count(&mut self, counts: &RawValue) -> bool {
        let Ok(counts) = serde_json::from_str::<UsageMembers<'_>>(counts.get()) else { return false };
        let [input, output, cached] = all_passes(&counts);
        self.usage.input_tokens = input.or(self.usage.input_tokens);
        self.usage.output_tokens = output.or(self.usage.output_tokens);
        self.usage.cache_tokens = cached.or(self.usage.cache_tokens);
        let cost = counts.cost.and_then(|cost| Cost::parse(cost.get()).ok());
        let is_report = [input, output, cached].iter().any(Option::is_some) || cost.is_some();
        self.usage.cost = cost.or(self.usage.cost.take());
        is_report
    }
}

/// Returns the input, output and separately counted tokens: the sums of all passes, where those are larger.
fn all_passes(counts: &UsageMembers<'_>) -> [Option<u64>; 3] {
    let mut sums = [None; 3];
    let passes =
        counts.iterations.and_then(|passes| serde_json::from_str::<Vec<UsageMembers<'_>>>(passes.get()).ok());
    for pass in passes.iter().flatten() {
        for (sum, count) in sums.iter_mut().zip(of_pass(pass)) {
            *sum = (*sum).into_iter().chain(count).reduce(u64::saturating_add);
        }
    }
    let [input, output, cached] = of_pass(counts);
    [input.max(sums[0]), output.max(sums[1]), cached.max(sums[2])]
}

fn of_pass(counts: &UsageMembers<'_>) -> [Option<u64>; 3] {
    let (input, output) = (number(counts.prompt_tokens), number(counts.completion_tokens));
    let cached = [counts.cache_creation_input_tokens, counts.cache_read_input_tokens].map(number);
    [
        input.or_else(|| number(counts.input_tokens)),
        output.or_else(|| number(counts.output_tokens)),
        cached.into_iter().flatten().reduce(u64::saturating_add),
    ]
}

/// Returns true if the value after a name is `null`: some providers send that in each event but the last.
fn says_nothing(behind: &[u8]) -> bool {
    behind
        .trim_ascii_start()
        .strip_prefix(b":")
        .is_some_and(|value| value.trim_ascii_start().starts_with(b"null"))
}

fn usage_of(value: Option<&RawValue>) -> Option<&RawValue> {
    serde_json::from_str::<UsageMembers<'_>>(value?.get()).ok()?.usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(
        surface: ApiDialect,
        shape: AnswerFormat,
        text: &str,
        piece: usize,
    ) -> (Option<u64>, Option<u64>, Option<f64>) {
        let mut observer = Observer::new(surface, shape);
        text.as_bytes().chunks(piece).for_each(|piece| observer.see(piece));
        let Usage { input_tokens, output_tokens, cost, .. } = observer.finish();
        (input_tokens, output_tokens, cost.map(|cost| cost.as_str().parse().unwrap()))
    }

    #[test]
    fn usage_and_cost_are_read_from_every_format_and_any_read_sizes() {
        let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"the \\\"usage\\\": {} is\"}}],\"usage\":null}\n\n\
                    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7,\"cost\":0.25}}\r\n\r\n\
                    data: [DONE]\n\n";
        let responses = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":\
                         {\"usage\":{\"input_tokens\":5,\"output_tokens\":7,\"cost\":0.25}}}\n\n";
        let messages = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
                        {\"input_tokens\":5,\"output_tokens\":1}}}\n\nevent: message_delta\n\
                        data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7,\"cost\":0.25}}\n\n";
        let generated = "{\"response\":\"a\",\"done\":true,\"prompt_eval_count\":5,\"eval_count\":7}\n";
        let ollama = "{\"message\":{\"content\":\"eval_count\"},\"done\":false}\n\
                      {\"done\":true,\"prompt_eval_count\":5,\"eval_count\":7}";
        for piece in 1..chat.len() {
            let lines = |surface, text| observed(surface, AnswerFormat::Lines, text, piece);
            assert_eq!(lines(ApiDialect::Openai, chat), (Some(5), Some(7), Some(0.25)), "{piece}");
            assert_eq!(lines(ApiDialect::Openai, responses), (Some(5), Some(7), Some(0.25)), "{piece}");
            assert_eq!(lines(ApiDialect::Anthropic, messages), (Some(5), Some(7), Some(0.25)), "{piece}");
            assert_eq!(lines(ApiDialect::Ollama, ollama), (Some(5), Some(7), None), "{piece}");
            assert_eq!(lines(ApiDialect::Ollama, generated), (Some(5), Some(7), None), "{piece}");
            let whole =
                "{\"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 7, \"cost\": 0.25}, \"x\": 1}";
            let whole = observed(ApiDialect::Openai, AnswerFormat::Whole, whole, piece);
            assert_eq!(whole, (Some(5), Some(7), Some(0.25)), "{piece}");
        }
    }

    #[test]
    fn usage_is_read_from_lines_too_long_to_be_buffered() {
        let spoof = format!("\\\"usage\\\":{{\\\"cost\\\":9}} {}", "a".repeat(3 << 20));
        let lines = format!(
            "data: {{\"x\":\"{spoof}\",\"usage\":{{\"cost\":0.5}},\"y\":null}}\ndata: {{\"usage\":{{\"prompt_tokens\":7}}}}\n"
        );
        let mut observer = Observer::new(ApiDialect::Openai, AnswerFormat::Lines);
        for piece in lines.as_bytes().chunks(10_000) {
            observer.see(piece);
            assert!(observer.kept.capacity() <= 2 * LONGEST);
        }
        let usage = observer.finish();
        assert_eq!((usage.cost, usage.input_tokens), (Cost::parse("0.5").ok(), Some(7)));
        let whole =
            format!("{{\"data\":\"{spoof}\",\"usage\" : {{\"prompt_tokens\":5,\"cost\":0.25}},\"id\":1}}");
        for piece in [1 << 10, LONGEST, whole.len()] {
            assert_eq!(
                observed(ApiDialect::Openai, AnswerFormat::Whole, &whole, piece),
                (Some(5), None, Some(0.25))
            );
        }
        // Output of the model is nested deeper, and may come last.
        let tool = r#"[{"type":"tool_use","input":{"usage":{"cost":9},"x":0}}]"#;
        let early = format!("{{\"data\":\"{spoof}\",\"usage\":{{\"cost\":0.25}},\"content\":{tool}}}");
        assert_eq!(
            observed(ApiDialect::Anthropic, AnswerFormat::Whole, &early, 9_999),
            (None, None, Some(0.25))
        );
        let cut = early.split_inclusive("\"x\"").next().unwrap();
        assert_eq!(
            observed(ApiDialect::Anthropic, AnswerFormat::Whole, cut, 9_999),
            (None, None, Some(0.25))
        );
        // A provider may repeat the objects of a request, in any order.
        for echo in ["reasoning", "text", "metadata", "tool_choice"] {
            let echo =
                format!("\"{echo}\":{{\"effort\":\"low\",\"usage\":{{\"prompt_tokens\":0,\"cost\":0}}}}");
            let told = "\"usage\":{\"prompt_tokens\":5,\"cost\":0.25}";
            for answer in [
                format!("{{\"instructions\":\"{spoof}\",{told},{echo}}}"),
                format!("{{{echo},\"instructions\":\"{spoof}\",{told}}}"),
                format!("{{\"instructions\":\"{spoof}\",\"response\":{{{told}}},{echo}}}"),
            ] {
                let read = observed(ApiDialect::Openai, AnswerFormat::Whole, &answer, 9_999);
                assert_eq!(read, (Some(5), None, Some(0.25)), "{echo}");
            }
        }
        let ollama = format!("{{\"response\":\"{spoof}\",\"prompt_eval_count\":5,\"eval_count\":7}}");
        assert_eq!(
            observed(ApiDialect::Ollama, AnswerFormat::Whole, &ollama, 9_999),
            (Some(5), Some(7), None)
        );
    }

    #[test]
    fn tokens_of_all_iterations_of_a_call_are_added() {
        let pass = |input: u64, output: u64| {
            format!("{{\"input_tokens\":{input},\"output_tokens\":{output},\"cache_read_input_tokens\":1}}")
        };
        let passes = format!("[{},{}]", pass(180_000, 3_500), pass(23, 7));
        let usage = format!("{{\"input_tokens\":23,\"output_tokens\":7,\"iterations\":{passes}}}");
        let whole = format!("{{\"usage\":{usage}}}");
        let begun = "data: {\"message\":{\"usage\":{\"input_tokens\":23,\"output_tokens\":1}}}\n";
        let stream = format!("{begun}data: {{\"usage\":{usage}}}\n");
        for (shape, text) in [(AnswerFormat::Whole, whole), (AnswerFormat::Lines, stream)] {
            let mut observer = Observer::new(ApiDialect::Anthropic, shape);
            observer.see(text.as_bytes());
            let usage = observer.finish();
            assert_eq!((usage.input_tokens, usage.output_tokens), (Some(180_023), Some(3_507)), "{shape:?}");
            assert_eq!(usage.cache_tokens, Some(2));
        }
        // Controls: a single pass, and values that are no list of passes.
        for passes in [format!("[{}]", pass(23, 7)), "[]".to_owned(), "null".to_owned(), "3".to_owned()] {
            let whole =
                format!("{{\"usage\":{{\"input_tokens\":23,\"output_tokens\":7,\"iterations\":{passes}}}}}");
            let read = observed(ApiDialect::Anthropic, AnswerFormat::Whole, &whole, 99);
            assert_eq!(read, (Some(23), Some(7), None), "{passes}");
        }
    }

    #[test]
    fn cache_tokens_are_counted_and_negative_costs_are_ignored() {
        let cached = "{\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":10,\"cache_read_input_tokens\":20}}";
        let mut observer = Observer::new(ApiDialect::Anthropic, AnswerFormat::Whole);
        observer.see(cached.as_bytes());
        assert_eq!(observer.finish().cache_tokens, Some(30));
        let negative =
            observed(ApiDialect::Openai, AnswerFormat::Lines, "data: {\"usage\":{\"cost\":-1.0}}\n", 99);
        assert_eq!(negative, (None, None, None));
    }
}
