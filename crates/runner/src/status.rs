//! Progress reports to the host, and its answers with the remaining time: by the status hatch or a URL, and by a file.
//!
//! Belljar's hatch is a Unix socket in the sandbox's file system. It is connected to once, before the runner becomes
//! undumpable, because PID 1, which connects sockets here, must read its memory. Other nodes name a URL
//! (`SBA_JOB_STATUS_URL`, `SBA_CALLBACK_URL`), which gets the same reports, and at the end the whole result. Without
//! either, or without an answer, the host finds the file and the result, and the job's own limit applies.

mod hatch;
mod url;

use crate::atomic_file::{self, Durability};
use crate::http_client::{HttpClient, ServerAddress, connect_local};
use crate::invocation::Transport;
use crate::log::Log;
use belljar_contract::result::{JobResult, JobStatus};
use belljar_contract::worker::status::{ReportedStatus, StatusAnswer, StatusReport};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Connection to the host.
#[derive(Default)]
pub(crate) struct StatusLine {
    way: Mutex<Option<StatusTransport>>,
    trouble: Option<String>,
    /// Directory of the status file, if the job came in a file.
    directory: Option<PathBuf>,
    /// True if this run has written to the file that the job is in progress.
    has_begun: AtomicBool,
    job_id: OnceLock<String>,
    said: AtomicU64,
}

enum StatusTransport {
    /// Dropped after a failure: a late answer could be mistaken for one to another report.
    Hatch(UnixStream),
    Url(Box<HttpClient>),
}

/// The variable with the socket's path.
const SOCKET: &str = "BELLJAR_STATUS_SOCKET";

/// The variables with a URL that reports are posted to; the first that is set counts.
const URLS: [&str; 2] = ["SBA_JOB_STATUS_URL", "SBA_CALLBACK_URL"];

/// Status file, beside the job's.
const FILE: &str = "status.json";

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

// === impl StatusLine ===

impl StatusLine {
    /// Opens the connection that the environment names, if it names one. The status file lies beside the job's.
    pub(crate) fn of_environment(transport: &Transport) -> Self {
        let directory = match transport {
            Transport::Files { job, .. } => job.parent().map(Path::to_owned),
            Transport::Stdio => None,
        };
        let is_set = |value: &String| !value.is_empty();
        let named = URLS.iter().find_map(|name| Some((*name, std::env::var(name).ok().filter(is_set)?)));
        let line = match (std::env::var_os(SOCKET).filter(|path| !path.is_empty()), named) {
            (Some(path), _) => Self::by_hatch(Path::new(&path)),
            (None, Some((name, url))) => Self::by_url(name, &url),
            (None, None) => Self::default(),
        };
        Self { directory, ..line }
    }

    fn by_hatch(hatch: &Path) -> Self {
        match connect_local(hatch) {
            Ok(stream) => Self { way: Mutex::new(Some(StatusTransport::Hatch(stream))), ..Self::default() },
            Err(error) => Self { trouble: Some(error.to_string()), ..Self::default() },
        }
    }

    fn by_url(name: &str, url: &str) -> Self {
        match ServerAddress::of_endpoint(url) {
            Ok(place) => Self {
                way: Mutex::new(Some(StatusTransport::Url(Box::new(HttpClient::at(place))))),
                ..Self::default()
            },
            Err(error) => Self { trouble: Some(format!("{name}: {error}")), ..Self::default() },
        }
    }

    /// Sets the id of the reported job.
    pub(crate) fn name_job(&self, job_id: &str) {
        let _ = self.job_id.set(job_id.to_owned());
    }

    /// Reports that the job is valid and begins; returns the time that the host lets it run, if it answers.
    pub(crate) fn begin(&self, log: &Log<'_>) -> Option<Duration> {
        let report = self.report(ReportedStatus::InProgress);
        self.has_begun.store(true, Ordering::SeqCst);
        self.write_file(&report, log);
        if let Some(error) = &self.trouble {
            log.warn(format!("no connection to the host: {error}"));
        }
        self.tell(&report, PATIENCE).unwrap_or_else(|error| {
            log.warn(format!("cannot report the start of the job to the host: {error}"));
            None
        })
    }

    /// Returns the time that the host lets the job go on; `None` without an answer.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.tell(&self.report(ReportedStatus::InProgress), PATIENCE).ok().flatten()
    }

    /// Requests an extension by that many seconds; returns the host's answer, if there is one.
    pub(crate) fn ask_for_time(&self, seconds: u32) -> Option<StatusAnswer> {
        let asked = StatusReport {
            extension_request_seconds: Some(seconds),
            ..self.report(ReportedStatus::InProgress)
        };
        self.told(&asked, PATIENCE).ok().flatten()
    }

    /// Reports that the job is over. By a URL the result is sent, too. By Belljar's hatch it is sent only if it could
    /// be written nowhere else, because it may be long, and a copy would count against the sandbox's memory. Returns
    /// true if the host has the result by this.
    pub(crate) fn finish(&self, result: &JobResult, is_written: bool, log: &Log<'_>) -> bool {
        let status = match result.status {
            JobStatus::Success => ReportedStatus::Completed,
            JobStatus::Timeout => ReportedStatus::Timeout,
            JobStatus::Failure => ReportedStatus::Failed,
        };
        let report = self.report(status);
        // An interrupted run may have left a status file, too, which reports the job as in progress.
        let is_there = || self.directory.as_ref().is_some_and(|place| place.join(FILE).is_file());
        if self.has_begun.load(Ordering::SeqCst) || is_there() {
            self.write_file(&report, log);
        }
        let delivered = match &mut *self.way.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(StatusTransport::Url(peer)) => Some(url::deliver(peer, &report, result)),
            _ => None,
        };
        let heard = match delivered {
            Some(delivered) => delivered.map(|()| true),
            None => {
                let untold = if is_written { None } else { serde_json::to_value(result).ok() };
                let has_result = untold.is_some();
                let report = StatusReport { result: untold, ..report };
                self.tell(&report, PATIENCE).map(|answer| has_result && answer.is_some())
            }
        };
        heard.unwrap_or_else(|error| {
            log.warn(format!("cannot report the outcome of the job to the host: {error}"));
            false
        })
    }

    fn report(&self, status: ReportedStatus) -> StatusReport {
        let seq = self.said.fetch_add(1, Ordering::SeqCst) + 1;
        StatusReport { seq: Some(seq), ..StatusReport::new(status) }
    }

    /// Sends a report; returns the time that the host lets the job go on.
    fn tell(&self, report: &StatusReport, patience: Duration) -> io::Result<Option<Duration>> {
        let answer = self.told(report, patience)?;
        Ok(answer.map(|answer| Duration::from_millis(answer.remaining_ms)))
    }

    /// Sends a report. Returns `None` if there is no connection to the host, or if its answer is in another format.
    fn told(&self, report: &StatusReport, patience: Duration) -> io::Result<Option<StatusAnswer>> {
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(job_id) = self.job_id.get() else { return Ok(None) };
        match way.take() {
            Some(StatusTransport::Hatch(mut stream)) => {
                let answer = hatch::exchange(&mut stream, job_id, report, Instant::now() + patience)?;
                *way = Some(StatusTransport::Hatch(stream));
                Ok(Some(answer))
            }
            Some(StatusTransport::Url(mut peer)) => {
                let answer = url::post(&mut peer, &serde_json::to_vec(report)?, patience);
                *way = Some(StatusTransport::Url(peer));
                answer
            }
            None => Ok(None),
        }
    }

    fn write_file(&self, report: &StatusReport, log: &Log<'_>) {
        let Some(directory) = &self.directory else { return };
        if let Err(error) = write_beside(directory, report) {
            log.warn(format!("cannot write {FILE}: {error}"));
        }
    }
}

/// Writes the report into the status file.
fn write_beside(directory: &Path, report: &StatusReport) -> io::Result<()> {
    let directory = atomic_file::open_directory(directory)?;
    atomic_file::put(directory, FILE, &serde_json::to_vec(report)?, Durability::Runner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixListener;

    const ANSWER: &str = r#"{"version":1,"deadline":"2026-01-01T00:00:00Z","remaining_ms":1500}"#;

    fn line(hatch: &Path) -> StatusLine {
        let line = StatusLine::by_hatch(hatch);
        line.name_job("j");
        line
    }

    fn quiet(work: impl FnOnce(&Log<'_>)) {
        let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
        work(&Log::to(null.as_fd()));
    }

    #[test]
    fn status_is_reported_to_the_hatch_and_the_status_file() {
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
        let line = StatusLine { directory: Some(folder.path().to_owned()), ..line(&hatch) };
        quiet(|log| assert_eq!(line.begin(log), Some(Duration::from_millis(1_500))));
        let heard = host.join().unwrap();
        assert!(heard.starts_with("POST /v1/jobs/j/status HTTP/1.1\r\n"), "{heard}");
        let told = StatusReport::parse(heard.split("\r\n\r\n").nth(1).unwrap().as_bytes()).unwrap();
        let written = StatusReport::parse(&std::fs::read(folder.path().join(FILE)).unwrap()).unwrap();
        assert_eq!((told.status, &told), (ReportedStatus::InProgress, &written));
    }

    #[test]
    fn absent_or_silent_host_delays_a_status_report_only_briefly() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent");
        let silent = folder.path().join("silent");
        let _listener = UnixListener::bind(&silent).unwrap();
        for hatch in [&absent, &silent] {
            let begun = Instant::now();
            assert_eq!(line(hatch).remaining(), None);
            assert!(begun.elapsed() < PATIENCE * 3);
        }
        assert_eq!(StatusLine::default().remaining(), None);
    }
}
