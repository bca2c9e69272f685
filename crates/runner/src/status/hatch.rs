//! Reports by a socket of Belljar's host, over one connection (`POST /v1/jobs/{job_id}/status`).

use crate::http_client::{HttpResponse, ResponseReader};
use belljar_contract::worker::status::{StatusAnswer, StatusReport};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// An answer is shorter.
const LONGEST_ANSWER: usize = 16 << 10;

/// Sends a report and reads the answer.
pub(super) fn exchange(
    stream: &mut UnixStream,
    job_id: &str,
    report: &StatusReport,
    until: Instant,
) -> io::Result<StatusAnswer> {
    let body = serde_json::to_vec(report)?;
    let head = format!(
        "POST /v1/jobs/{job_id}/status HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    for bytes in [head.as_bytes(), &body] {
        write_until(stream, bytes, until)?;
    }
    let mut reading = ResponseReader::of("POST");
    let mut buffer = [0; 4096];
    let mut heard = 0;
    while heard < LONGEST_ANSWER {
        stream.set_read_timeout(Some(left(until)?))?;
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        heard += count;
        // An answer that would only end with the connection is incomplete.
        if let Some((answer, _)) = reading.hear(&buffer[..count]).map_err(odd)? {
            return read_answer(&answer);
        }
    }
    Err(odd("the answer is too long"))
}

fn write_until(stream: &mut UnixStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes) {
            Ok(size) => bytes = &bytes[size..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read_answer(answer: &HttpResponse) -> io::Result<StatusAnswer> {
    match answer.status {
        200 => Ok(serde_json::from_slice(&answer.body)?),
        other => Err(odd(&format!("the response status is {other}"))),
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::worker::status::ReportedStatus;

    const ANSWER: &str = r#"{"version":1,"deadline":"2026-01-01T00:00:00Z","remaining_ms":1500}"#;

    /// Returns the parsed answer of a host that doesn't close the connection.
    fn answered(said: &str) -> io::Result<StatusAnswer> {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(said.as_bytes()).unwrap();
        let report = StatusReport::new(ReportedStatus::InProgress);
        exchange(&mut ours, "j", &report, Instant::now() + Duration::from_millis(300))
    }

    #[test]
    fn malformed_or_truncated_status_response_is_rejected() {
        let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{ANSWER}", ANSWER.len());
        assert_eq!(answered(&whole).unwrap().remaining_ms, 1_500);
        for short in [0, 10, whole.len() - 1] {
            assert!(answered(&whole[..short]).is_err(), "{short}");
        }
        for odd in [
            "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\n\r\n{}",
        ] {
            assert!(answered(odd).is_err(), "{odd}");
        }
        let long = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", 20_000, "x".repeat(20_000));
        assert!(answered(&long).unwrap_err().to_string().contains("too long"));
    }
}
