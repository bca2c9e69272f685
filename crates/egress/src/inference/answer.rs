//! Heads of answers to a sandbox.

use super::models::Models;
use super::refusal::Refusal;
use super::route::Route;
use crate::http1::{BodyLength, ResponseHead};
use belljar_contract::id::RunId;
use belljar_contract::inference::{ApiDialect, Excerpt};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

/// Provider headers that are forwarded. All others reveal something about the host, or let a client cache the answer for
/// others.
const PASSED_ON: &[&[u8]] = &[
    b"content-type",
    b"retry-after",
    b"retry-after-ms",
    b"request-id",
    b"x-request-id",
    b"openai-processing-ms",
    b"openai-version",
    b"x-litellm-call-id",
    b"x-litellm-response-cost",
];
const PREFIXES_PASSED_ON: &[&[u8]] = &[b"x-ratelimit-", b"anthropic-ratelimit-"];

/// Returns the head for a provider's answer. If the answer ends with the provider's connection, the client's connection is
/// closed, too.
pub(crate) fn head_of(answer: &ResponseHead, body: BodyLength, keeps_alive: bool) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    // Writing to memory can't fail.
    let _ = write!(head, "HTTP/1.1 {} {}\r\n", answer.status, phrase(answer.status));
    for (name, value) in answer.headers.iter() {
        let goes_on =
            PASSED_ON.contains(&name) || PREFIXES_PASSED_ON.iter().any(|prefix| name.starts_with(prefix));
        if goes_on {
            for part in [name, b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
    }
    match body {
        // A 204 has no body, and so no length.
        BodyLength::Exact(0) if answer.status == 204 => {}
        BodyLength::Exact(length) => {
            let _ = write!(head, "content-length: {length}\r\n");
        }
        BodyLength::Chunked => head.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        BodyLength::UntilClose => {}
    }
    if !keeps_alive {
        head.extend_from_slice(b"connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Returns a complete answer that the host itself gives.
pub(crate) fn own(status: u16, body: &str, (keeps_alive, may_come_again): (bool, bool)) -> Vec<u8> {
    let mut answer = String::with_capacity(body.len() + 160);
    let _ = write!(answer, "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\n", phrase(status));
    let _ = write!(answer, "content-length: {}\r\n", body.len());
    if may_come_again {
        // A call that waits for others may be repeated soon; a used-up budget doesn't recover.
        answer.push_str("retry-after: 1\r\n");
    }
    if !keeps_alive {
        answer.push_str("connection: close\r\n");
    }
    answer.push_str("\r\n");
    answer.push_str(body);
    answer.into_bytes()
}

/// Returns an answer to a request that only asks for the head.
pub(crate) fn without_body(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", phrase(status))
        .into_bytes()
}

/// Returns an answer that the host gives by itself. The list of models has those that a client of the dialect `surface` can
/// call.
pub(crate) fn told(
    (route, surface): (Route, ApiDialect),
    models: &Models,
    run_id: &RunId,
    body: &[u8],
) -> Result<String, Refusal> {
    let told = match route {
        Route::Health => json!({"status": "ok", "runId": run_id.as_str()}),
        Route::Version => json!({"version": env!("CARGO_PKG_VERSION")}),
        Route::Models => {
            let one =
                |name: &str| json!({"id": name, "object": "model", "created": 0, "owned_by": "belljar"});
            let all: Vec<_> = models.names_on(surface).map(one).collect();
            json!({"object": "list", "data": all})
        }
        Route::Tags => {
            let all: Vec<_> = models.names_on(ApiDialect::Ollama).map(tag).collect();
            json!({"models": all})
        }
        Route::Show => show(models, body)?,
        Route::Call(_) => return Err(Refusal::BadAnswer),
    };
    Ok(told.to_string())
}

fn tag(name: &str) -> serde_json::Value {
    json!({"name": name, "model": name, "modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": "",
           "details": {"format": "", "family": "", "families": null, "parameter_size": "", "quantization_level": ""}})
}

/// Body of `/api/show`. `name` is the older name of `model`.
#[derive(Deserialize)]
struct ShowRequest<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

const SHOW: &str = "/api/show";

fn show(models: &Models, body: &[u8]) -> Result<serde_json::Value, Refusal> {
    let asked: ShowRequest<'_> = serde_json::from_slice(body).map_err(|error| Refusal::not_json(&error))?;
    let name = asked.model.or(asked.name).ok_or(Refusal::NoModel)?;
    let Some(model) = models.get(&name) else {
        let allowed = models.names().into_iter().map(str::to_owned).collect();
        return Err(Refusal::ModelNotAllowed { asked: Excerpt::of(&name), allowed });
    };
    if !model.provider.kind.speaks(ApiDialect::Ollama) {
        return Err(Refusal::wrong_surface(model, SHOW));
    }
    let mut told = tag(&name);
    told["capabilities"] = json!(["completion", "tools"]);
    told["model_info"] = json!({});
    Ok(told)
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Answer",
    }
}
