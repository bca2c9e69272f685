//! Hostile output of every kind.

use std::io::{ErrorKind, Write};

/// Writes `bytes` bytes to standard output, and for some kinds also elsewhere. Succeeds quietly if the reader is gone.
pub(super) fn write(kind: &str, bytes: &str) -> Result<(), String> {
    let bytes: usize = bytes.parse().map_err(|_| format!("{bytes} is no number of bytes"))?;
    let unit: &[u8] = match kind {
        "line" => b"x",
        "lines" => b"\n",
        "nul" => b"\0",
        "invalid" => b"\xff\xfe\xc3\x28\xed\xa0\x80",
        "escapes" => b"\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\x1b]52;c;aGVsbG8=\x07\x9b2J\x08\x0d",
        "both" => b"out\n",
        _ => return Err(format!("don't know {kind}")),
    };
    let chunk = unit.repeat((64 << 10) / unit.len());
    let (mut out, mut errors) = (std::io::stdout().lock(), std::io::stderr().lock());
    let mut left = bytes;
    while left > 0 {
        let now = left.min(chunk.len());
        left -= now;
        let written = out.write_all(&chunk[..now]).and_then(|()| match kind {
            "both" => errors.write_all(&chunk[..now]),
            _ => Ok(()),
        });
        match written.and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}
