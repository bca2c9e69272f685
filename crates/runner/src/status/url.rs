//! Reports to a URL that another node names.
//!
//! The reports are those of Belljar's hatch. An answer in the format of Belljar's node is used as such; any other
//! answer with a success status only confirms the report.

use crate::cancellation::Cancellation;
use crate::deadline::{Deadline, JobTime};
use crate::http_client::{HttpClient, HttpError, HttpRequest};
use belljar_contract::result::JobResult;
use belljar_contract::text::with_causes;
use belljar_contract::worker::status::{StatusAnswer, StatusReport};
use serde::Serialize;
use std::io;
use std::time::{Duration, Instant};

/// A report with the whole result, which is borrowed.
#[derive(Serialize)]
struct ResultDelivery<'d> {
    #[serde(flatten)]
    report: &'d StatusReport,
    result: &'d JobResult,
}

/// Maximum time for attempts to deliver the result.
const OF_RESULT: Duration = Duration::from_secs(10);
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Posts a report.
pub(super) fn post(
    peer: &mut HttpClient,
    body: &[u8],
    patience: Duration,
) -> io::Result<Option<StatusAnswer>> {
    match exchange(peer, body, patience) {
        Ok((200..=299, body)) => Ok(serde_json::from_slice(&body).ok()),
        Ok((status, _)) => Err(refused(status)),
        Err(error) => Err(io::Error::other(with_causes(&error))),
    }
}

/// Posts the result until it is accepted, refused for good, or the time is over.
pub(super) fn deliver(peer: &mut HttpClient, report: &StatusReport, result: &JobResult) -> io::Result<()> {
    let body = serde_json::to_vec(&ResultDelivery { report, result })?;
    let until = Instant::now() + OF_RESULT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let trouble = match exchange(peer, &body, left) {
            Ok((200..=299, _)) => return Ok(()),
            Ok((status @ (408 | 425 | 429 | 500..=599), _)) => refused(status),
            Ok((status, _)) => return Err(refused(status)),
            Err(error) => io::Error::other(with_causes(&error)),
        };
        if Instant::now() + AGAIN_AFTER >= until {
            return Err(trouble);
        }
        std::thread::sleep(AGAIN_AFTER);
    }
}

fn refused(status: u16) -> io::Error {
    io::Error::other(format!("the response status is {status}"))
}

/// Reports have a timeout of their own: they are also sent when the job's time is over, or cancellation was requested.
fn exchange(peer: &mut HttpClient, body: &[u8], patience: Duration) -> Result<(u16, Vec<u8>), HttpError> {
    let cancellation = Cancellation::new().map_err(HttpError::Connect)?;
    let time = JobTime::start(patience * 2, None, &|| None);
    let question = HttpRequest {
        method: "POST",
        path: "",
        headers: &[],
        body: Some(body),
        accept: "application/json",
        // Reports are numbered.
        is_idempotent: true,
        patience,
    };
    let answer = peer.ask(question, &Deadline::of_job(&time, &cancellation))?;
    Ok((answer.status, answer.body))
}
