//! A body of events (`text/event-stream`), read as it comes.

/// Position in a stream of events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Offset of the next line.
    at: usize,
    /// Data of the event that is being read.
    data: Vec<String>,
}

// === impl Events ===

impl Events {
    /// Returns the data of the next event; `None` until it is complete. `body` is everything that has arrived: the
    /// previous bytes and more.
    pub(super) fn next(&mut self, body: &[u8]) -> Option<String> {
        while let Some((line, next)) = line(body, self.at) {
            self.at = next;
            if line.is_empty() {
                let data = std::mem::take(&mut self.data).join("\n");
                // An event without data is ignored: some servers begin a stream with an event that has only an id.
                if !data.is_empty() {
                    return Some(data);
                }
            } else if let Some(data) = line.strip_prefix(b"data") {
                let data = match data {
                    [b':', b' ', data @ ..] | [b':', data @ ..] => data,
                    [] => data,
                    // Another field, whose name begins like it.
                    _ => continue,
                };
                self.data.push(String::from_utf8_lossy(data).into_owned());
            }
        }
        None
    }
}

/// Returns the line that begins there, and the offset of the next one; `None` if it isn't complete.
fn line(body: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = body.get(at..)?;
    let end = memchr::memchr2(b'\r', b'\n', rest)?;
    let next = match rest.get(end..) {
        Some([b'\r', b'\n', ..]) => end + 2,
        // The next byte may be the line feed of the same line end.
        Some([b'\r']) => return None,
        _ => end + 1,
    };
    Some((&rest[..end], at + next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sse_events_are_parsed_across_chunks_and_line_endings() {
        for end in ["\n", "\r\n", "\r"] {
            let body = [
                ": ping",
                "",
                "event: message",
                "data: {\"a\":",
                "data:1}",
                "id: 3",
                "",
                "database: no",
                "",
                "id: 4",
                "data: ",
                "",
                "data: two",
                "",
                "",
            ];
            let mut body = body.join(end).into_bytes();
            // A single return may be half of something.
            body.extend(b"\n");
            let (mut events, mut found) = (Events::default(), Vec::new());
            for length in 0..=body.len() {
                while let Some(event) = events.next(&body[..length]) {
                    found.push(event);
                }
            }
            assert_eq!(found, ["{\"a\":\n1}", "two"], "{end:?}");
        }
    }

    #[test]
    fn incomplete_sse_event_is_not_returned() {
        assert_eq!(Events::default().next(b"data: {}\n"), None);
        assert_eq!(Events::default().next(b"data: {}"), None);
    }
}
