//! Request bodies: complete, within size and time limits, and declared as JSON.

use super::answer::Refusal;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use belljar_contract::worker::problem::ProblemKind;
use futures_util::StreamExt;
use std::time::Duration;

/// A client that sends nothing for this long is treated as gone.
const IDLE: Duration = Duration::from_secs(30);

/// Reads a request's body if it has one; an empty body needs no content type.
pub(super) async fn read_or_nothing(request: Request, most: usize) -> Result<Vec<u8>, Refusal> {
    match axum::body::HttpBody::is_end_stream(request.body()) {
        true => Ok(Vec::new()),
        false => read(request, most).await,
    }
}

/// Reads a request's body.
pub(super) async fn read(request: Request, most: usize) -> Result<Vec<u8>, Refusal> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let found = if essence.is_empty() { "nothing" } else { essence };
        let detail = format!("the body's Content-Type is {found}; expected application/json");
        return Err(Refusal::new(ProblemKind::MediaType, detail));
    }
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > most as u64) {
        return Err(too_large(most));
    }
    gather(request.into_body(), most).await
}

async fn gather(body: Body, most: usize) -> Result<Vec<u8>, Refusal> {
    let mut frames = body.into_data_stream();
    let mut bytes = Vec::new();
    loop {
        let next = tokio::time::timeout(IDLE, frames.next()).await;
        match next {
            Ok(None) => return Ok(bytes),
            Ok(Some(Ok(frame))) if frame.len() > most - bytes.len() => return Err(too_large(most)),
            Ok(Some(Ok(frame))) => bytes.extend_from_slice(&frame),
            Ok(Some(Err(error))) => {
                return Err(Refusal::new(ProblemKind::Validation, format!("the body is not whole: {error}")));
            }
            Err(_) => {
                let detail = format!("the body is not whole: nothing came for {} s", IDLE.as_secs());
                return Err(Refusal::new(ProblemKind::Validation, detail));
            }
        }
    }
}

fn too_large(most: usize) -> Refusal {
    Refusal::new(ProblemKind::TooLarge, format!("the body is larger than {most} bytes"))
}
