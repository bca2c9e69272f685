//! Says how the job goes on, and hears how long it may: to the host, by the status hatch and by a file.
//!
//! The hatch is a local socket of the host's in the sandbox's files, and speaks HTTP/1.1. It is connected to once, before the
//! runner closes its memory to others, PID 1 among them, which connects sockets in here. Where there is none, or nobody
//! answers, the host finds the file and the result, and the job's own limit holds.

use crate::local_http::{Answer, Reading, connect_local};
use crate::log::Log;
use crate::replaced::{self, Survives};
use belljar_contract::result::{JobResult, JobStatus};
use belljar_contract::worker::status::{ReportedStatus, StatusAnswer, StatusReport};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The way to the host.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    /// Nothing from when it has failed: what would come by it could be the answer to something else.
    hatch: Mutex<Option<UnixStream>>,
    trouble: Option<io::Error>,
    job_id: OnceLock<String>,
    said: AtomicU64,
}

/// The variable with the socket's path.
const SOCKET: &str = "BELLJAR_STATUS_SOCKET";

/// The file that says the same, beside the job's.
const FILE: &str = "status.json";

/// So long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// An answer is shorter.
const LONGEST_ANSWER: usize = 16 << 10;

// === impl StatusLine ===

impl StatusLine {
    /// The one that the environment names, if it names one.
    pub(crate) fn of_environment() -> Self {
        match std::env::var_os(SOCKET).filter(|path| !path.is_empty()) {
            Some(path) => Self::to(Path::new(&path)),
            None => Self::default(),
        }
    }

    fn to(hatch: &Path) -> Self {
        match connect_local(hatch) {
            Ok(stream) => Self { hatch: Mutex::new(Some(stream)), ..Self::default() },
            Err(error) => Self { trouble: Some(error), ..Self::default() },
        }
    }

    /// Names the job that is spoken of.
    pub(crate) fn name_job(&self, job_id: &str) {
        let _ = self.job_id.set(job_id.to_owned());
    }

    /// Says that the job was found sound and begins; how long the host lets it run, if it says so.
    pub(crate) fn begin(&self, job_file: Option<&Path>, log: &Log<'_>) -> Option<Duration> {
        let report = self.report(ReportedStatus::InProgress);
        if let Some(file) = job_file.and_then(Path::parent)
            && let Err(error) = write_beside(file, &report)
        {
            log.warn(format!("{FILE} can't be written: {error}"));
        }
        if let Some(error) = &self.trouble {
            log.warn(format!("there is no way to the host: {error}"));
        }
        self.tell(&report, PATIENCE).unwrap_or_else(|error| {
            log.warn(format!("the host does not hear that the job begins: {error}"));
            None
        })
    }

    /// How long the host lets the job go on, if it says so.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.tell(&self.report(ReportedStatus::InProgress), PATIENCE).ok().flatten()
    }

    /// Asks for so many seconds more than there are; what the host answers, if it does.
    pub(crate) fn ask_for_time(&self, seconds: u32) -> Option<StatusAnswer> {
        let asked = StatusReport {
            extension_request_seconds: Some(seconds),
            ..self.report(ReportedStatus::InProgress)
        };
        self.told(&asked, PATIENCE).ok().flatten()
    }

    /// Says that the job is over. The result goes along only where it could be put nowhere else: it may be long, and a copy of
    /// it would count against the sandbox's memory. Whether the host has it then.
    pub(crate) fn finish(&self, result: &JobResult, is_written: bool, log: &Log<'_>) -> bool {
        let status = match result.status {
            JobStatus::Success => ReportedStatus::Completed,
            JobStatus::Timeout => ReportedStatus::Timeout,
            JobStatus::Failure => ReportedStatus::Failed,
        };
        let untold = if is_written { None } else { serde_json::to_value(result).ok() };
        let has_result = untold.is_some();
        let report = StatusReport { result: untold, ..self.report(status) };
        match self.tell(&report, PATIENCE) {
            Ok(answer) => has_result && answer.is_some(),
            Err(error) => {
                log.warn(format!("the host does not hear what the job has come to: {error}"));
                false
            }
        }
    }

    fn report(&self, status: ReportedStatus) -> StatusReport {
        let seq = self.said.fetch_add(1, Ordering::SeqCst) + 1;
        StatusReport { seq: Some(seq), ..StatusReport::new(status) }
    }

    /// How long the host lets the job go on, when it has heard this.
    fn tell(&self, report: &StatusReport, patience: Duration) -> io::Result<Option<Duration>> {
        let answer = self.told(report, patience)?;
        Ok(answer.map(|answer| Duration::from_millis(answer.remaining_ms)))
    }

    /// Nothing where there is no hatch.
    fn told(&self, report: &StatusReport, patience: Duration) -> io::Result<Option<StatusAnswer>> {
        let mut hatch = self.hatch.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(mut stream), Some(job_id)) = (hatch.take(), self.job_id.get()) else { return Ok(None) };
        let answer = exchange(&mut stream, job_id, report, Instant::now() + patience)?;
        *hatch = Some(stream);
        Ok(Some(answer))
    }
}

/// The same in a file.
fn write_beside(directory: &Path, report: &StatusReport) -> io::Result<()> {
    let directory = replaced::open_directory(directory)?;
    replaced::put(directory, FILE, &serde_json::to_vec(report)?, Survives::Runner)
}

fn exchange(
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
    let mut reading = Reading::of("POST");
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
        // An answer that ends with its connection ends before it is one.
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

fn read_answer(answer: &Answer) -> io::Result<StatusAnswer> {
    match answer.status {
        200 => Ok(serde_json::from_slice(&answer.body)?),
        other => Err(odd(&format!("the answer is {other}"))),
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixListener;

    const ANSWER: &str = r#"{"version":1,"deadline":"2026-01-01T00:00:00Z","remaining_ms":1500}"#;

    fn line(hatch: &Path) -> StatusLine {
        let line = StatusLine::to(hatch);
        line.name_job("j");
        line
    }

    fn quiet(work: impl FnOnce(&Log<'_>)) {
        let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
        work(&Log::to(null.as_fd()));
    }

    #[test]
    fn it_says_so_by_the_hatch_and_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let hatch = folder.path().join("hatch");
        let listener = UnixListener::bind(&hatch).unwrap();
        let host = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = vec![0; 4096];
            let mut size = 0;
            while !heard[..size].ends_with(b"}") {
                size += stream.read(&mut heard[size..]).unwrap();
            }
            let length = ANSWER.len();
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{ANSWER}").unwrap();
            String::from_utf8(heard[..size].to_vec()).unwrap()
        });
        let job = folder.path().join("job.json");
        quiet(|log| assert_eq!(line(&hatch).begin(Some(&job), log), Some(Duration::from_millis(1_500))));
        let heard = host.join().unwrap();
        assert!(heard.starts_with("POST /v1/jobs/j/status HTTP/1.1\r\n"), "{heard}");
        let told = StatusReport::parse(heard.split("\r\n\r\n").nth(1).unwrap().as_bytes()).unwrap();
        let written = StatusReport::parse(&std::fs::read(folder.path().join(FILE)).unwrap()).unwrap();
        assert_eq!((told.status, &told), (ReportedStatus::InProgress, &written));
    }

    #[test]
    fn a_host_that_is_not_there_or_silent_holds_nothing_up_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let nobody = folder.path().join("nobody");
        let silent = folder.path().join("silent");
        let _listener = UnixListener::bind(&silent).unwrap();
        for hatch in [&nobody, &silent] {
            let begun = Instant::now();
            assert_eq!(line(hatch).remaining(), None);
            assert!(begun.elapsed() < PATIENCE * 3);
        }
        assert_eq!(StatusLine::default().remaining(), None);
    }

    /// What is made of an answer, from a host that closes nothing.
    fn answered(said: &str) -> io::Result<StatusAnswer> {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(said.as_bytes()).unwrap();
        let report = StatusReport::new(ReportedStatus::InProgress);
        exchange(&mut ours, "j", &report, Instant::now() + Duration::from_millis(300))
    }

    #[test]
    fn only_an_answer_is_taken_for_one() {
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
