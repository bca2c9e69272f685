//! Telemetry of the node: `GET /v1/worker/telemetry/…`.

use super::SharedApi;
use super::answer::{Refusal, json};
use super::query::{Query, whole};
use crate::images::NATIVE_RUNTIME;
use crate::machine;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::event::JobEventKind;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::state::JobState;
use belljar_contract::worker::telemetry::{
    Build, ContainerKind, ContainerResponse, ContainerStatus, ContainersResponse, LARGEST_LOGS_BYTES,
    LimitedBy, LogEvent, LogsResponse, LogsTruncation, NodeInfoResponse, NodeStatsResponse, Runtime,
    SourceKind,
};
use belljar_store::telemetry::{ContainerFilter, LogFilter};
use jiff::Timestamp;

/// Default and maximum numbers of entries per page.
const USUAL_CONTAINERS: u32 = 100;
const MOST_CONTAINERS: u32 = 1_000;
const USUAL_LOGS: u32 = 1_000;
const MOST_LOGS: u32 = 5_000;

/// `GET /v1/worker/telemetry/node:info`.
pub(super) async fn info(State(api): State<SharedApi>) -> Response {
    let answer = NodeInfoResponse {
        version: ApiVersion,
        node_slug: api.workplace.settings.node_slug.clone(),
        build: Build { build_version: env!("CARGO_PKG_VERSION").to_owned() },
        platform: machine::platform(),
    };
    json(StatusCode::OK, &answer)
}

/// `GET /v1/worker/telemetry/node:stats`.
pub(super) async fn stats(State(api): State<SharedApi>) -> Result<Response, Refusal> {
    let workplace = &api.workplace;
    let measured = machine::disk(workplace.settings.state.path());
    let disk = measured.map_err(|error| Refusal::new(ProblemKind::Internal, error.to_string()))?;
    let answer = NodeStatsResponse {
        version: ApiVersion,
        captured_at: workplace.now(),
        cpu: machine::cpu(),
        memory: machine::memory(),
        disk,
        container_runtime: Runtime {
            runtime: NATIVE_RUNTIME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
    };
    Ok(json(StatusCode::OK, &answer))
}

/// `GET /v1/worker/telemetry/containers`.
pub(super) async fn containers(State(api): State<SharedApi>, uri: Uri) -> Result<Response, Refusal> {
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    let kinds = "`managed` or `sandbox`";
    let filter = ContainerFilter {
        kind: query.optional("kind", kinds, ContainerKind::from_name)?,
        status: query.optional("status", "a status of a container", ContainerStatus::from_name)?,
        task_id: query.optional("task_id", "a UUID", |text| TaskId::parse(text).ok())?,
        job_id: query.optional("job_id", "a UUID", |text| JobId::parse(text).ok())?,
        before: query.optional("page_token", "a `next_page_token` of this node", whole)?,
    };
    let limit = query.limit(USUAL_CONTAINERS, MOST_CONTAINERS)?;
    query.finish()?;
    let telemetry = &api.workplace.telemetry;
    telemetry.flush().await;
    let (containers, next) = telemetry.containers(&filter, limit).await?;
    let next_page_token = next.map(|number| number.to_string());
    Ok(json(StatusCode::OK, &ContainersResponse { version: ApiVersion, containers, next_page_token }))
}

/// `GET /v1/worker/telemetry/containers/{container_id}`.
pub(super) async fn container(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let telemetry = &api.workplace.telemetry;
    telemetry.flush().await;
    let found = telemetry.container(&id).await?;
    let container = found.ok_or_else(|| {
        Refusal::new(ProblemKind::NotFound, "there is no such container, or it is not kept any more")
    })?;
    Ok(json(StatusCode::OK, &ContainerResponse { version: ApiVersion, container }))
}

/// `GET /v1/worker/telemetry/logs`: logs of a service of the node, or of a sandbox.
pub(super) async fn logs(State(api): State<SharedApi>, uri: Uri) -> Result<Response, Refusal> {
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    let source = query.required("source_kind", "`service` or `container`", |text| match text {
        "service" => Some(SourceKind::Service),
        "container" => Some(SourceKind::Container),
        _ => None,
    })?;
    let plain = |text: &str| Some(text.to_owned());
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let since = query.optional("since", "a time such as 2026-01-02T03:04:05Z", time)?;
    let until = query.optional("until", "a time such as 2026-01-02T03:04:05Z", time)?;
    let stream = query.optional("stream", "`stdout` or `stderr`", |text| {
        ["stdout", "stderr"].contains(&text).then(|| text.to_owned())
    })?;
    let after = query.optional("page_token", "a `next_page_token` of this node", whole)?.unwrap_or_default();
    let limit = query.limit(USUAL_LOGS, MOST_LOGS)?;
    // One more entry is read to learn whether there are more.
    let most = limit + 1;
    let telemetry = &api.workplace.telemetry;
    telemetry.flush().await;
    let found = match source {
        SourceKind::Service => {
            let service = query.required("source_name", "`node_manager` or `worker_api`", plain)?;
            query.finish()?;
            let filter = LogFilter { service, since, until, after };
            let found = telemetry.logs(&filter, most).await?;
            // Log entries of a service have no stream.
            if stream.is_some() { Vec::new() } else { found }
        }
        SourceKind::Container => {
            let container = query.required("container_id", "the id of a container", plain)?;
            query.finish()?;
            let wanted = OutputFilter { since, until, stream, after };
            printed(&api, &container, &wanted, most).await?
        }
    };
    Ok(json(StatusCode::OK, &page(found, limit as usize)))
}

/// Filter for the output of a sandbox's program.
struct OutputFilter {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    stream: Option<String>,
    after: u64,
}

/// Returns the output of a job's command, which is stored with the job.
async fn printed(
    api: &SharedApi,
    container: &str,
    wanted: &OutputFilter,
    most: u32,
) -> Result<Vec<(u64, LogEvent)>, Refusal> {
    let unknown =
        || Refusal::new(ProblemKind::NotFound, "there is no such container, or it is not kept any more");
    let found = api.workplace.telemetry.container(container).await?.ok_or_else(unknown)?;
    let Some(job_id) = found.job_id else { return Ok(Vec::new()) };
    let Ok(run_id) = RunId::parse(container) else { return Err(unknown()) };
    let jobs = &api.workplace.jobs;
    let is_the_last =
        api.workplace.jobs.find(&job_id).await?.is_some_and(|job| job.run_id.as_ref() == Some(&run_id));
    if !is_the_last {
        // Output of an earlier attempt is only among the job's events.
        return Ok(Vec::new());
    }
    // Output before this attempt's begin is an earlier attempt's.
    let states = jobs.states_after(&job_id, 0).await?;
    let begun = states
        .iter()
        .rev()
        .find(|event| matches!(event.happening, JobEventKind::Status { status: JobState::InProgress, .. }));
    let mut after = wanted.after.max(begun.map_or(0, |event| event.id));
    let mut events = Vec::new();
    while events.len() < most as usize {
        let some = jobs.printed_after(&job_id, after, most).await?;
        let Some(last) = some.last() else { break };
        after = last.id;
        for event in some {
            let JobEventKind::Log { stream, text } = event.happening else { continue };
            let stream = stream.as_str();
            let is_wanted = wanted.since.is_none_or(|since| event.at >= since)
                && wanted.until.is_none_or(|until| event.at < until)
                && wanted.stream.as_deref().is_none_or(|wanted| wanted == stream);
            if is_wanted {
                let logged = LogEvent {
                    occurred_at: event.at,
                    source_kind: SourceKind::Container,
                    source_name: found.container_name.clone(),
                    container_id: Some(container.to_owned()),
                    stream: Some(stream.to_owned()),
                    level: None,
                    message: text,
                    fields: serde_json::Map::new(),
                };
                events.push((event.id, logged));
            }
        }
    }
    events.truncate(most as usize);
    Ok(events)
}

/// Returns at most `limit` events, and at most as many bytes as a response may have.
fn page(found: Vec<(u64, LogEvent)>, limit: usize) -> LogsResponse {
    let (has_more, mut limited_by) = (found.len() > limit, LimitedBy::None);
    if has_more {
        limited_by = LimitedBy::Count;
    }
    let (mut events, mut last, mut bytes) = (Vec::new(), None, 0);
    for (number, event) in found.into_iter().take(limit) {
        bytes += serde_json::to_vec(&event).map_or(0, |written| written.len() as u64 + 1);
        // At least one event, however long: otherwise no client could get past it.
        if bytes > LARGEST_LOGS_BYTES && !events.is_empty() {
            limited_by = LimitedBy::Bytes;
            break;
        }
        last = Some(number);
        events.push(event);
    }
    let next_page_token = last.filter(|_| limited_by != LimitedBy::None).map(|number| number.to_string());
    let truncated = LogsTruncation { limited_by, max_bytes: LARGEST_LOGS_BYTES };
    LogsResponse { version: ApiVersion, events, truncated, next_page_token }
}
