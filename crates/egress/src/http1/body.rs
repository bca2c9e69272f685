//! Body lengths and chunked framing.

use super::head::MalformedHttp;
use super::limits::CHUNK_LINE_BYTES;
use std::ops::Range;

/// Length of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// Number of bytes.
    Exact(u64),
    /// In chunks with their own lengths.
    Chunked,
    /// Until the connection is closed; only for answers.
    UntilClose,
}

/// Finds the payload and the end of a chunked body as its bytes pass.
#[derive(Debug, Default)]
pub struct Chunks {
    state: ChunkState,
    /// Line that is being read.
    line: ChunkLine,
}

#[derive(Debug, Default, Clone, Copy)]
struct ChunkLine {
    bytes: [u8; CHUNK_LINE_BYTES],
    length: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChunkState {
    /// In the line with the size of the next chunk.
    #[default]
    Size,
    /// In a chunk, with the number of bytes still to come.
    Payload(u64),
    /// In the line end after a chunk.
    After,
    /// In the empty line after the last chunk. Trailers are refused.
    Last,
    /// After the end of the body.
    Done,
}

// === impl Chunks ===

impl Chunks {
    /// Returns true if the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Takes the next bytes, calls `payload` with the range of each piece of payload, and returns the number of bytes that
    /// belong to the body. Until the end, all of them do.
    ///
    /// # Errors
    /// [`MalformedHttp`]: an extension, a trailer, a line that doesn't end in CR LF, or an invalid size.
    pub fn pass(
        &mut self,
        bytes: &[u8],
        mut payload: impl FnMut(Range<usize>),
    ) -> Result<usize, MalformedHttp> {
        let mut at = 0;
        while at < bytes.len() && self.state != ChunkState::Done {
            match self.state {
                ChunkState::Payload(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                    payload(at..at + here);
                    at += here;
                    self.state = match left - here as u64 {
                        0 => ChunkState::After,
                        left => ChunkState::Payload(left),
                    };
                }
                ChunkState::Size | ChunkState::After | ChunkState::Last => {
                    let byte = bytes[at];
                    at += 1;
                    if self.line.push(byte)? {
                        self.end_line()?;
                    }
                }
                ChunkState::Done => {}
            }
        }
        Ok(at)
    }

    fn end_line(&mut self) -> Result<(), MalformedHttp> {
        let line = std::mem::take(&mut self.line);
        let text = line.text();
        self.state = match self.state {
            ChunkState::Size => match size(text)? {
                0 => ChunkState::Last,
                size => ChunkState::Payload(size),
            },
            ChunkState::After if text.is_empty() => ChunkState::Size,
            ChunkState::Last if text.is_empty() => ChunkState::Done,
            ChunkState::Last => return Err(MalformedHttp::Trailer),
            _ => return Err(MalformedHttp::Chunk),
        };
        Ok(())
    }
}

// === impl ChunkLine ===

impl ChunkLine {
    /// Returns true if the line is complete. It ends in CR LF and nothing else.
    fn push(&mut self, byte: u8) -> Result<bool, MalformedHttp> {
        let before = self.length.checked_sub(1).and_then(|at| self.bytes.get(at));
        match (before, byte) {
            (Some(b'\r'), b'\n') => return Ok(true),
            (Some(b'\r'), _) | (_, b'\n') => return Err(MalformedHttp::LineEnd),
            _ => {}
        }
        *self.bytes.get_mut(self.length).ok_or(MalformedHttp::Chunk)? = byte;
        self.length += 1;
        Ok(false)
    }

    fn text(&self) -> &[u8] {
        // Without the CR.
        self.bytes.get(..self.length.saturating_sub(1)).unwrap_or_default()
    }
}

/// Parses a size: hexadecimal digits only, without sign, space or extension.
fn size(text: &[u8]) -> Result<u64, MalformedHttp> {
    if text.is_empty() || text.len() > 16 || !text.iter().all(u8::is_ascii_hexdigit) {
        return Err(MalformedHttp::Chunk);
    }
    let text = std::str::from_utf8(text).map_err(|_| MalformedHttp::Chunk)?;
    u64::from_str_radix(text, 16).map_err(|_| MalformedHttp::Chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads the bytes in pieces of a size. Returns the payload, whether the body is complete, and the number of unused bytes.
    fn read(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, bool, usize), MalformedHttp> {
        let (mut chunks, mut payload, mut taken) = (Chunks::default(), Vec::new(), 0);
        for piece in bytes.chunks(piece) {
            let used = chunks.pass(piece, |range| payload.extend_from_slice(&piece[range]))?;
            taken += used;
            if chunks.is_done() {
                break;
            }
        }
        Ok((payload, chunks.is_done(), bytes.len() - taken))
    }

    #[test]
    fn chunked_body_ends_exactly_after_its_last_chunk() {
        let read = |bytes: &[u8]| read(bytes, bytes.len().max(1)).unwrap();
        assert_eq!(read(b"0\r\n\r\n"), (Vec::new(), true, 0));
        assert_eq!(read(b"3\r\nabc\r\n0\r\n\r\nGET"), (b"abc".to_vec(), true, 3));
        assert_eq!(read(b"00A\r\n0123456789\r\n0\r\n\r\n"), (b"0123456789".to_vec(), true, 0));
        assert_eq!(read(b"3\r\nab"), (b"ab".to_vec(), false, 0));
    }

    #[test]
    fn ambiguous_chunk_framing_is_refused() {
        for bad in [
            &b"3;a=b\r\nabc\r\n0\r\n\r\n"[..],
            b"3 \r\nabc\r\n0\r\n\r\n",
            b" 3\r\nabc\r\n0\r\n\r\n",
            b"+3\r\nabc\r\n0\r\n\r\n",
            b"-1\r\n",
            b"0x3\r\nabc\r\n0\r\n\r\n",
            b"3_0\r\n",
            b"\r\n",
            b"3\nabc\n0\n\n",
            b"3\r\nabc0\r\n\r\n",
            b"3\r\nabcd\r\n0\r\n\r\n",
            b"3\r\nabc\n\r\n0\r\n\r\n",
            b"3\r\rabc\r\n0\r\n\r\n",
            b"0\r\nX: y\r\n\r\n",
            b"0\r\n\n",
            b"10000000000000000\r\n",
            b"00000000000000000000000000000003\r\nabc\r\n0\r\n\r\n",
            b"3\0\r\nabc\r\n0\r\n\r\n",
        ] {
            assert!(read(bad, bad.len()).is_err(), "{:?}", String::from_utf8_lossy(bad));
            assert!(read(bad, 1).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }

    proptest! {
        #[test]
        fn chunked_body_parses_the_same_for_any_read_sizes(parts: Vec<Vec<u8>>, piece in 1_usize..40, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            for part in parts.iter().filter(|part| !part.is_empty()) {
                bytes.extend(format!("{:x}\r\n", part.len()).bytes());
                bytes.extend(part);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            let whole = bytes.len();
            bytes.extend(&rest);
            let (payload, is_done, left) = read(&bytes, piece).unwrap();
            prop_assert_eq!(payload, parts.concat());
            prop_assert!(is_done);
            prop_assert_eq!(left, bytes.len() - whole);
        }
    }
}
