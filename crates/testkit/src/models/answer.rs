//! Scripted answers, and faults in their delivery.

use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;

/// An answer: its content, and how it is sent. It takes the form that the request asks for.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) content: Content,
    pub(super) delivery: Delivery,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Reply of a model.
    Reply(Reply),
    /// An error in the dialect of the request.
    Error { status: u16, message: String, retry_after: Option<u32> },
    /// An error that echoes the request, credentials included.
    Echo { status: u16 },
    /// A status, header lines and a body of the test's own.
    Own { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// Bytes in place of any HTTP.
    Raw(Vec<u8>),
    /// No answer: the connection ends.
    HangUp,
}

/// Reply of a model.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) parts: Vec<Part>,
    pub(super) usage: Usage,
    /// Cost in dollars, as LiteLLM reports it.
    pub(super) cost: Option<f64>,
}

/// Number of tokens of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(Pieces),
    Tool(ToolCall),
}

/// A tool call that the model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Its name.
    pub name: String,
    /// Arguments: an object, or a text for a tool that takes one.
    pub arguments: Value,
    /// Group of the tool, if tools are grouped: only the dialect of OpenAI's responses has groups.
    pub namespace: Option<String>,
}

/// A text in the pieces in which it is streamed.
#[derive(Debug, Clone)]
pub(super) enum Pieces {
    Of(VecDeque<String>),
    Repeated {
        piece: String,
        count: usize,
    },
    /// The time at which each piece is written, in nanoseconds of the monotonic clock.
    Stamped {
        count: usize,
    },
}

/// Delivery of an answer.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) delay: Duration,
    pub(super) pace: Pace,
    pub(super) flaw: Option<DeliveryFlaw>,
    pub(super) chunk_sizes: Vec<usize>,
    pub(super) is_of_version_1_0: bool,
    pub(super) closes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Each event by itself, as soon as the one before it is written.
    EachEvent,
    /// Each event this long after the one before it.
    Every(Duration),
    /// Send as many events at once as fit in a buffer.
    Burst,
    /// Pause before every byte of the body.
    EachByte(Duration),
}

/// Fault in the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryFlaw {
    /// The connection ends after that many bytes of the body, frames included.
    CutAfterBytes(usize),
    /// The connection ends in the middle of this event.
    CutInEvent(usize),
    /// After that many events nothing more is sent, and the connection stays open.
    SilentAfter(usize),
}

// === impl Answer ===

impl Answer {
    /// Answers with a text. It is streamed word by word.
    pub fn text(text: &str) -> Self {
        Self::of(Part::Text(Pieces::Of(text.split_inclusive(' ').map(str::to_owned).collect())))
    }

    /// A text that is streamed in these pieces.
    pub fn pieces(pieces: &[&str]) -> Self {
        Self::of(Part::Text(Pieces::Of(pieces.iter().map(|piece| (*piece).to_owned()).collect())))
    }

    /// A text that is the same piece over and over. Streamed, with [`usize::MAX`] of them, it doesn't end.
    pub fn repeated(piece: &str, count: usize) -> Self {
        Self::of(Part::Text(Pieces::Repeated { piece: piece.to_owned(), count }))
    }

    /// A text whose pieces are the times at which they are written: nanoseconds of the monotonic clock, each with a
    /// blank after it. Where the end of a stream repeats its text, that is another one.
    pub fn stamped(count: usize) -> Self {
        Self::of(Part::Text(Pieces::Stamped { count }))
    }

    /// A call of a tool.
    pub fn tool(call: ToolCall) -> Self {
        Self::of(Part::Tool(call))
    }

    /// Adds a call of a tool.
    #[must_use]
    pub fn and_tool(mut self, call: ToolCall) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.parts.push(Part::Tool(call));
        }
        self
    }

    /// Answers with this status, in the dialect of the request. A 429 has a `Retry-After`.
    pub fn error(status: u16) -> Self {
        let message = format!("the scripted server was told to answer {status}");
        let retry_after = (status == 429).then_some(1);
        Self::with(Content::Error { status, message, retry_after })
    }

    /// Answers with a 429 and a `Retry-After`.
    pub fn rate_limited(retry_after_seconds: u32) -> Self {
        let message = "slow down".to_owned();
        Self::with(Content::Error { status: 429, message, retry_after: Some(retry_after_seconds) })
    }

    /// An error whose message holds the head and the body of the request, as some servers do.
    pub fn echo(status: u16) -> Self {
        Self::with(Content::Echo { status })
    }

    /// Answers with exactly this.
    pub fn own(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self::with(Content::Own { status, headers: headers.collect(), body: body.into() })
    }

    /// These bytes in place of any HTTP, and the end of the connection; with [`Answer::silent_after`], silence.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::with(Content::Raw(bytes.into()))
    }

    /// The end of the connection in place of an answer.
    pub fn hang_up() -> Self {
        Self::with(Content::HangUp)
    }

    /// Sets the reported number of tokens.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.usage = usage;
        }
        self
    }

    /// Sets the reported cost, in dollars: in a header of a whole answer, in the last chunk of a streamed one.
    #[must_use]
    pub fn with_cost(mut self, dollars: f64) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            reply.cost = Some(dollars);
        }
        self
    }

    /// Its head comes this long after the request. [`Duration::MAX`] is for ever.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delivery.delay = delay;
        self
    }

    /// Each of its events comes this long after the one before it.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.delivery.pace = Pace::Every(interval);
        self
    }

    /// Its events come as fast as they can be written, many at a time.
    #[must_use]
    pub fn in_bursts(mut self) -> Self {
        self.delivery.pace = Pace::Burst;
        self
    }

    /// Each byte of its body comes this long after the one before it.
    #[must_use]
    pub fn byte_by_byte(mut self, interval: Duration) -> Self {
        self.delivery.pace = Pace::EachByte(interval);
        self
    }

    /// Ends the connection after that many bytes of its body, frames of chunks included.
    #[must_use]
    pub fn cut_after_bytes(mut self, bytes: usize) -> Self {
        self.delivery.flaw = Some(DeliveryFlaw::CutAfterBytes(bytes));
        self
    }

    /// The connection ends in the middle of this event, counted from zero: in the middle of a chunk.
    #[must_use]
    pub fn cut_in_event(mut self, event: usize) -> Self {
        self.delivery.flaw = Some(DeliveryFlaw::CutInEvent(event));
        self
    }

    /// Sends nothing more after that many events, and keeps the connection open.
    #[must_use]
    pub fn silent_after(mut self, events: usize) -> Self {
        self.delivery.flaw = Some(DeliveryFlaw::SilentAfter(events));
        self
    }

    /// Its body comes in chunks of these sizes, over and over, wherever its events begin and end.
    #[must_use]
    pub fn in_chunks_of(mut self, sizes: &[usize]) -> Self {
        self.delivery.chunk_sizes = sizes.iter().copied().filter(|size| *size > 0).collect();
        self
    }

    /// Makes it an answer of HTTP/1.0, which ends with the connection.
    #[must_use]
    pub fn of_version_1_0(mut self) -> Self {
        self.delivery.is_of_version_1_0 = true;
        self
    }

    /// Ends the connection after the answer, without announcing it.
    #[must_use]
    pub fn then_closes(mut self) -> Self {
        self.delivery.closes = true;
        self
    }

    fn of(part: Part) -> Self {
        let usage = Usage { input: 11, output: 7 };
        Self::with(Content::Reply(Reply { parts: vec![part], usage, cost: None }))
    }

    fn with(content: Content) -> Self {
        Self { content, delivery: Delivery::default() }
    }
}

// === impl Delivery ===

impl Default for Delivery {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            pace: Pace::EachEvent,
            flaw: None,
            chunk_sizes: Vec::new(),
            is_of_version_1_0: false,
            closes: false,
        }
    }
}

// === impl ToolCall ===

impl ToolCall {
    /// A call with these arguments.
    pub fn new(name: &str, arguments: Value) -> Self {
        Self { name: name.to_owned(), arguments, namespace: None }
    }

    /// Puts the tool into a group.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// The arguments as APIs carry them that know no objects there.
    pub(super) fn arguments_as_text(&self) -> String {
        self.arguments.as_str().map_or_else(|| self.arguments.to_string(), str::to_owned)
    }
}

// === impl Reply ===

impl Reply {
    pub(super) fn calls_a_tool(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Tool(_)))
    }

    /// All of its text.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(pieces) => Some(pieces.clone().collect::<String>()),
            Part::Tool(_) => None,
        });
        texts.collect()
    }

    /// Its calls of tools.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Tool(call) => Some(call),
            Part::Text(_) => None,
        })
    }
}

// === impl Pieces ===

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        match self {
            Self::Of(pieces) => pieces.pop_front(),
            Self::Repeated { piece, count } => {
                *count = count.checked_sub(1)?;
                Some(piece.clone())
            }
            Self::Stamped { count } => {
                *count = count.checked_sub(1)?;
                let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
                Some(format!("{} ", i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)))
            }
        }
    }
}
