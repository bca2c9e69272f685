//! The messages: a client's call, the data that the host adds to it, and a provider's response.

use memchr::memmem;
use serde::{Deserialize, Serialize};

/// The API key that the provider requires.
pub(crate) const KEY: &str = "sk-bench-4f9aB7zKd82QmX01";
/// The billing account.
pub(crate) const ACCOUNT: &str = "bench";
pub(crate) const RUN: &str = "01a20073-e9f5-7598-b496-5102b8186da2";
/// Metadata of the call's cost, in LiteLLM's format.
pub(crate) const METADATA: &str =
    r#"{"run_id":"01a20073-e9f5-7598-b496-5102b8186da2","attempt":0,"graph_id":"sandbox:agent"}"#;

/// The client's placeholder for the key. It must not reach the provider.
const KEY_INSIDE: &str = "inside";

/// A piece of a streamed response in a provider's format.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum StreamPiece {
    /// LiteLLM reports usage in the last piece only.
    LiteLlm,
    /// OpenAI sends `"usage":null` in each event.
    OpenAi,
}

/// Parser state of a chunked body.
#[derive(Default)]
pub(crate) struct ChunkParser {
    left: usize,
    line: Vec<u8>,
    /// True if the next line is the empty one after a chunk.
    is_behind: bool,
    is_done: bool,
}

/// Returns a call as clients of models send it; or, for direct calls, as it reaches a provider.
pub(crate) fn call(streams: bool, is_direct: bool) -> Vec<u8> {
    let model = if is_direct { "gpt-4o-mini" } else { "small" };
    let stream = if streams { ",\"stream\":true" } else { "" };
    let body = format!(
        "{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"system\",\"content\":\"You are a careful engineer.\"}},\
         {{\"role\":\"user\",\"content\":\"Say in one word whether this works.\"}}],\"max_tokens\":16{stream}}}"
    );
    let key = if is_direct { KEY } else { KEY_INSIDE };
    let hosts = match is_direct {
        true => {
            format!("x-litellm-end-user-id: {ACCOUNT}\r\nx-litellm-spend-logs-metadata: {METADATA}\r\n")
        }
        false => String::new(),
    };
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost:8080\r\naccept: application/json\r\n\
         content-type: application/json\r\nuser-agent: OpenAI/Python 2.8.1\r\nauthorization: Bearer {key}\r\n\
         accept-encoding: identity\r\nx-stainless-lang: python\r\nx-stainless-os: Linux\r\n\
         x-stainless-retry-count: 0\r\n{hosts}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Returns true if a call has the host's data, and none of the caller's.
pub(crate) fn is_from_host(call: &[u8]) -> bool {
    let has = |text: &str| memmem::find(call, text.as_bytes()).is_some();
    has(&format!("authorization: Bearer {KEY}\r\n"))
        && has(&format!("x-litellm-end-user-id: {ACCOUNT}\r\n"))
        && has(&format!("x-litellm-spend-logs-metadata: {{\"run_id\":\"{RUN}\""))
        && !has(&format!("Bearer {KEY_INSIDE}"))
}

/// Returns a provider's response to a call without streaming.
pub(crate) fn answer() -> Vec<u8> {
    let body = "{\"id\":\"chatcmpl-8d3c1b2a6e0f4a579d513f2b7c9e1a04\",\"created\":1790000000,\"model\":\"gpt-4o-mini\",\
                \"object\":\"chat.completion\",\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"message\":{\
                \"content\":\"Yes.\",\"role\":\"assistant\"}}],\"usage\":{\"completion_tokens\":2,\"prompt_tokens\":24,\
                \"total_tokens\":26}}";
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-litellm-call-id: 01a20073-e9f5-7598-b496-5102b8186da3\r\n\
         x-litellm-response-cost: 0.0000048\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Response to a call that isn't the host's.
pub(crate) const NOT_FROM_HOST: &[u8] = b"HTTP/1.1 418 Not From The Host\r\ncontent-length: 0\r\n\r\n";

/// Head of a streamed response.
pub(crate) const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// End of a streamed response.
pub(crate) const LAST_EVENT: &[u8] = b"data: [DONE]\n\n";

/// Returns the length of the message at the start of these bytes, if it is complete and has a `Content-Length`.
pub(crate) fn whole(bytes: &[u8]) -> Option<usize> {
    let end = head_end(bytes)?;
    let length = bytes[..end].split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked("content-length:".len())?;
        name.eq_ignore_ascii_case(b"content-length:")
            .then(|| std::str::from_utf8(value).ok()?.trim().parse().ok())?
    });
    let whole = end + length.unwrap_or(0_usize);
    (bytes.len() >= whole).then_some(whole)
}

pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4)
}

/// Panics unless this is a good response: the time of an error would be meaningless.
pub(crate) fn must_be_good(answer: &[u8]) {
    assert!(answer.starts_with(b"HTTP/1.1 200"), "not an answer: {}", String::from_utf8_lossy(answer));
}

// === impl StreamPiece ===

impl StreamPiece {
    /// Returns an event with an empty timestamp.
    pub(crate) fn event(self) -> Vec<u8> {
        let (finish, usage) = match self {
            Self::LiteLlm => ("", ""),
            Self::OpenAi => (",\"logprobs\":null,\"finish_reason\":null", ",\"usage\":null"),
        };
        format!(
            "data: {{\"id\":\"chatcmpl-8d3c1b2a6e0f4a579d513f2b7c9e1a04\",\"created\":1790000000,\"model\":\"gpt-4o-mini\",\
             \"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{:0STAMP_LENGTH$}\"}}\
             {finish}}}]{usage}}}\n\n",
            0
        )
        .into_bytes()
    }

    /// Returns the position of the timestamp in it.
    pub(crate) fn stamp(self) -> std::ops::Range<usize> {
        let before = b"\"content\":\"";
        let begin = memmem::find(&self.event(), before).expect("an event says something") + before.len();
        begin..begin + STAMP_LENGTH
    }
}

const STAMP_LENGTH: usize = 20;

// === impl ChunkParser ===

impl ChunkParser {
    /// Consumes bytes that follow the previous ones, and passes on the payload. Returns true if the body is complete.
    pub(crate) fn take(&mut self, mut bytes: &[u8], mut payload: impl FnMut(&[u8])) -> bool {
        while !bytes.is_empty() && !self.is_done {
            if self.left > 0 {
                let (here, rest) = bytes.split_at(self.left.min(bytes.len()));
                payload(here);
                self.left -= here.len();
                self.is_behind = self.left == 0;
                bytes = rest;
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                self.line.extend_from_slice(bytes);
                break;
            };
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_line();
        }
        self.is_done
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        if std::mem::take(&mut self.is_behind) {
            assert!(text.is_empty(), "a chunk that goes on");
            return;
        }
        match text {
            // After the last chunk, which was empty.
            b"" => self.is_done = true,
            size => {
                let size =
                    std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
                self.left = size.expect("the size of a chunk");
            }
        }
        self.line = line;
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_message_is_complete_when_its_body_has_arrived() {
        for message in [call(false, true), answer(), NOT_FROM_HOST.to_vec()] {
            assert_eq!(whole(&message), Some(message.len()));
            assert_eq!(whole(&message[..message.len() - 1]), None);
            assert_eq!(whole(&[&message[..], b"HTTP/1.1"].concat()), Some(message.len()));
        }
        assert!(is_from_host(&call(true, true)) && !is_from_host(&call(true, false)));
    }

    #[test]
    fn chunked_body_parses_the_same_for_any_split() {
        let event = StreamPiece::OpenAi.event();
        let mut bytes = format!("{:x}\r\n", event.len()).into_bytes();
        bytes.extend_from_slice(&event);
        bytes.extend_from_slice(b"\r\n3\r\nabc\r\n0\r\n\r\n");
        for size in 1..bytes.len() {
            let (mut chunks, mut all, mut is_done) = (ChunkParser::default(), Vec::new(), false);
            for cut in bytes.chunks(size) {
                assert!(!is_done);
                is_done = chunks.take(cut, |payload| all.extend_from_slice(payload));
            }
            assert!(is_done);
            assert_eq!(all, [&event[..], b"abc"].concat());
        }
        assert!(event[StreamPiece::OpenAi.stamp()].iter().all(|byte| *byte == b'0'));
    }
}
