//! Reads what a call has cost out of its answer, while that passes untouched.

use belljar_contract::inference::{Cost, Surface};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What an answer says that it has cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// In dollars.
    pub(crate) cost: Option<Cost>,
}

/// Looks at the bytes of one answer as they pass.
pub(crate) struct Observer {
    shape: Shape,
    surface: Surface,
    /// Of the line that isn't complete yet, or of the whole.
    kept: Vec<u8>,
    /// A line that is too long to be kept is passed over.
    skips_line: bool,
    usage: Usage,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One JSON document.
    Whole,
    /// Lines, each with a document, perhaps behind `data:`.
    Lines,
}

/// The longest line that is looked at; the longest document.
const LONGEST_LINE: usize = 1 << 20;
const LONGEST_WHOLE: usize = 16 << 20;

/// Every way to say it, of all that there are. Members of these names may be of other types elsewhere.
#[derive(Deserialize)]
struct Said<'s> {
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
}

#[derive(Deserialize)]
struct Inner<'s> {
    #[serde(borrow)]
    usage: Option<&'s RawValue>,
}

#[derive(Deserialize)]
struct Counts<'s> {
    #[serde(borrow)]
    prompt_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    input_tokens: Option<&'s RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'s RawValue>,
    /// As it is written: what is billed is not rounded.
    #[serde(borrow)]
    cost: Option<&'s RawValue>,
}

fn number(value: Option<&RawValue>) -> Option<u64> {
    value?.get().parse().ok()
}

// === impl Observer ===

impl Observer {
    pub(crate) fn new(surface: Surface, shape: Shape) -> Self {
        Self { shape, surface, kept: Vec::new(), skips_line: false, usage: Usage::default() }
    }

    /// Looks at bytes that follow those before.
    pub(crate) fn see(&mut self, bytes: &[u8]) {
        match self.shape {
            Shape::Whole if self.kept.len() + bytes.len() <= LONGEST_WHOLE => {
                self.kept.extend_from_slice(bytes);
            }
            Shape::Whole => self.kept.clear(),
            Shape::Lines => self.lines(bytes),
        }
    }

    /// What it has cost, when there is no more.
    pub(crate) fn finish(mut self) -> Usage {
        let kept = std::mem::take(&mut self.kept);
        self.line(&kept);
        self.usage
    }

    fn lines(&mut self, mut bytes: &[u8]) {
        let Some(last) = memchr::memrchr(b'\n', bytes) else { return self.keep(bytes) };
        if !self.kept.is_empty() || self.skips_line {
            let first = memchr::memchr(b'\n', bytes).unwrap_or(last);
            let (head, rest) = bytes.split_at(first);
            self.keep(head);
            let line = std::mem::take(&mut self.kept);
            if !std::mem::take(&mut self.skips_line) {
                self.line(&line);
            }
            bytes = rest;
        }
        let end = memchr::memrchr(b'\n', bytes).unwrap_or_default();
        let (whole, rest) = bytes.split_at(end);
        // Nearly all lines say nothing about it, and are not even told apart.
        let mut at = 0;
        while let Some(found) = whole.get(at..).and_then(|rest| memchr::memmem::find(rest, self.sign())) {
            let found = at + found;
            let begin = memchr::memrchr(b'\n', &whole[..found]).map_or(0, |at| at + 1);
            let end = memchr::memchr(b'\n', &whole[found..]).map_or(whole.len(), |length| found + length);
            self.line(&whole[begin..end]);
            at = end;
        }
        self.keep(rest.strip_prefix(b"\n").unwrap_or(rest));
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.kept.len() + bytes.len() > LONGEST_LINE {
            self.kept.clear();
            self.skips_line = true;
        } else if !self.skips_line {
            self.kept.extend_from_slice(bytes);
        }
    }

    /// What stands in every line that says it.
    fn sign(&self) -> &'static [u8] {
        match self.surface {
            Surface::Ollama => b"eval_count\"",
            Surface::Openai | Surface::Anthropic => b"\"usage\"",
        }
    }

    fn line(&mut self, line: &[u8]) {
        if memchr::memmem::find(line, self.sign()).is_none() {
            return;
        }
        let line = line.trim_ascii();
        let document = line.strip_prefix(b"data:").unwrap_or(line);
        let Ok(said) = serde_json::from_slice::<Said<'_>>(document) else { return };
        for counts in [said.usage, usage_of(said.response), usage_of(said.message)].into_iter().flatten() {
            self.count(counts);
        }
        self.usage.input_tokens = number(said.prompt_eval_count).or(self.usage.input_tokens);
        self.usage.output_tokens = number(said.eval_count).or(self.usage.output_tokens);
    }

    /// A later word counts: Anthropic tells the beginning first.
    fn count(&mut self, counts: &RawValue) {
        let Ok(counts) = serde_json::from_str::<Counts<'_>>(counts.get()) else { return };
        let (input, output) = (number(counts.prompt_tokens), number(counts.completion_tokens));
        let input = input.or_else(|| number(counts.input_tokens));
        let output = output.or_else(|| number(counts.output_tokens));
        self.usage.input_tokens = input.or(self.usage.input_tokens);
        self.usage.output_tokens = output.or(self.usage.output_tokens);
        if let Some(cost) = counts.cost.and_then(|cost| Cost::parse(cost.get()).ok()) {
            self.usage.cost = Some(cost);
        }
    }
}

fn usage_of(value: Option<&RawValue>) -> Option<&RawValue> {
    serde_json::from_str::<Inner<'_>>(value?.get()).ok()?.usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(
        surface: Surface,
        shape: Shape,
        text: &str,
        piece: usize,
    ) -> (Option<u64>, Option<u64>, Option<f64>) {
        let mut observer = Observer::new(surface, shape);
        text.as_bytes().chunks(piece).for_each(|piece| observer.see(piece));
        let Usage { input_tokens, output_tokens, cost } = observer.finish();
        (input_tokens, output_tokens, cost.map(|cost| cost.as_str().parse().unwrap()))
    }

    #[test]
    fn what_it_cost_is_read_however_it_is_said_and_however_it_is_cut() {
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
            let lines = |surface, text| observed(surface, Shape::Lines, text, piece);
            assert_eq!(lines(Surface::Openai, chat), (Some(5), Some(7), Some(0.25)), "{piece}");
            assert_eq!(lines(Surface::Openai, responses), (Some(5), Some(7), Some(0.25)), "{piece}");
            assert_eq!(lines(Surface::Anthropic, messages), (Some(5), Some(7), Some(0.25)), "{piece}");
            assert_eq!(lines(Surface::Ollama, ollama), (Some(5), Some(7), None), "{piece}");
            assert_eq!(lines(Surface::Ollama, generated), (Some(5), Some(7), None), "{piece}");
            let whole =
                "{\"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 7, \"cost\": 0.25}, \"x\": 1}";
            let whole = observed(Surface::Openai, Shape::Whole, whole, piece);
            assert_eq!(whole, (Some(5), Some(7), Some(0.25)), "{piece}");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory_and_hides_no_later_one() {
        let long =
            format!("data: {{\"x\":\"{}\"}}\ndata: {{\"usage\":{{\"cost\":1.0}}}}\n", "a".repeat(3 << 20));
        let mut observer = Observer::new(Surface::Openai, Shape::Lines);
        for piece in long.as_bytes().chunks(10_000) {
            observer.see(piece);
            assert!(observer.kept.capacity() <= 2 * LONGEST_LINE);
        }
        assert_eq!(observer.finish().cost, Cost::parse("1.0").ok());
        let negative = observed(Surface::Openai, Shape::Lines, "data: {\"usage\":{\"cost\":-1.0}}\n", 99);
        assert_eq!(negative, (None, None, None));
    }
}
