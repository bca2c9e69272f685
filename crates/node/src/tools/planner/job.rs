//! `job.*`: jobs of this node, as in the Worker API.

use super::endpoint_client::{EndpointClient, EndpointRequest, RequestBuilder, text};
use super::{changing, define, id, object};
use axum::http::Method;
use belljar_contract::action::BuiltInAction;
use belljar_contract::category::Category;
use belljar_contract::id::{JobId, SessionId};
use belljar_contract::scope::MOST_GROUPS;
use belljar_contract::tool::{CostTier, DomainCode, InvalidToolNameError};
use belljar_contract::worker::assignment::MOST_ATTEMPTS;
use belljar_tools::answer::{Answer, Failure, Success};
use belljar_tools::caller::Caller;
use belljar_tools::definition::{Definition, EXPECTED_MARK, Effect};
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

/// Tool whose jobs are done as the submitting agent.
pub(super) const SUBMIT: &str = "job.submit";

/// Maximum number of events per answer.
const EVENTS_AT_ONCE: u32 = 200;

pub(super) fn endpoints() -> Result<Vec<(Definition, RequestBuilder)>, InvalidToolNameError> {
    let submit = define(SUBMIT, "Submits a job; it is carried out in a sandbox.", what_submit_takes())?;
    let submit = Definition {
        cost: CostTier::Expensive,
        description:
            "Submits a job and gives its state at once; `job.get` tells what becomes of it. The same job \
            under the same id again is the same job."
                .to_owned(),
        ..changing(submit, Effect::Idempotent, BuiltInAction::CodeWrite)
    };
    let of_job = object(&["job_id"], &json!({ "job_id": id("The job.") }));
    let get = define("job.get", "Tells how a job stands, and what came of it.", of_job.clone())?;
    let cancel = define("job.cancel", "Stops a job.", of_job)?;
    let cancel =
        Definition { is_guarded: true, ..changing(cancel, Effect::Destructive, BuiltInAction::CodeWrite) };
    Ok(vec![(submit, ask_submit), (get, ask_get), (cancel, ask_cancel)])
}

fn what_submit_takes() -> Value {
    let categories = Category::ALL.map(Category::as_str);
    object(
        &["task_id", "job_id", "sandbox"],
        &json!({
            "task_id": id("The task that the job is of."),
            "job_id": id("The job's id: one of your choice, a UUID."),
            "project_id": named("The project whose preferences and skills count; your own if you are bound to one."),
            "user_id": named("The user whose preferences and skills count."),
            "group_ids": {
                "type": "array", "maxItems": MOST_GROUPS, "items": named("A group."),
                "description": "The groups of that user, whose preferences and skills count too."
            },
            "task_category": {
                "type": "string", "enum": categories,
                "description": "Category of the task, for the trust record of the agent that does it."
            },
            "max_attempts": {
                "type": "integer", "minimum": 1, "maximum": MOST_ATTEMPTS,
                "description": "How often it may be begun, if the node dies under it."
            },
            "sandbox": {
                "type": "object",
                "description": "What is run and where: `job_spec` (a job) and `context_files`, or `command`; `image`, `env`, \
                    `network_policy`, `timeout_seconds`, as the Worker API has it."
            },
        }),
    )
}

/// The schema of an id of a person, a group or a project.
pub(super) fn named(about: &str) -> Value {
    json!({
        "type": "string", "pattern": "^[!-~]{1,128}$", EXPECTED_MARK: "1 to 128 visible characters of ASCII",
        "description": about
    })
}

fn ask_submit(arguments: &Arguments) -> EndpointRequest {
    let mut body = Value::Object(arguments.clone());
    body["version"] = json!(1);
    body["wait"] = json!(false);
    EndpointRequest {
        method: Method::POST,
        path: "/v1/worker/jobs:run".to_owned(),
        body: Some(body),
        told: None,
    }
}

fn ask_get(arguments: &Arguments) -> EndpointRequest {
    let path = format!("/v1/worker/jobs/{}", text(arguments, "job_id"));
    EndpointRequest { method: Method::GET, path, body: None, told: None }
}

fn ask_cancel(arguments: &Arguments) -> EndpointRequest {
    let path = format!("/v1/worker/jobs/{}:cancel", text(arguments, "job_id"));
    EndpointRequest { method: Method::POST, path, body: None, told: None }
}

/// Returns events and output of a job, after a given event.
struct JobEventsTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

pub(super) fn events(desk: &Arc<EndpointClient>) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let takes = object(
        &["task_id", "job_id"],
        &json!({
            "task_id": id("The task that the job is of."),
            "job_id": id("The job, or the id under which the sandbox was made."),
            "after": { "type": "integer", "minimum": 0, "description": "Only what came after the event of that id." },
        }),
    );
    let summary = "Tells what a job or a sandbox that stays has printed, and what else has happened to it, event by event.";
    let definition = define("sandbox.stream_logs", summary, takes)?;
    Ok(Arc::new(JobEventsTool { definition, desk: Arc::clone(desk) }))
}

impl Tool for JobEventsTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            self.desk.check_job(caller, &arguments).await?;
            let after = arguments.get("after").and_then(Value::as_u64).unwrap_or_default();
            let told = match self.of_job(&arguments, after).await? {
                Some(told) => told,
                None => self.of_sandbox(caller, &arguments, after)?,
            };
            let EventPage { events, last, is_over } = told;
            let last = last.unwrap_or(after);
            Ok(Success::of(json!({ "events": events, "last_event_id": last, "is_over": is_over })))
        }
        .boxed()
    }
}

/// A page of events of a job or a session.
struct EventPage {
    events: Value,
    /// Id of the last one.
    last: Option<u64>,
    /// True if no more events will follow.
    is_over: bool,
}

// === impl JobEventsTool ===

impl JobEventsTool {
    /// Returns the events of the job with that id, if there is one.
    async fn of_job(&self, arguments: &Arguments, after: u64) -> Result<Option<EventPage>, Failure> {
        let Ok(job_id) = JobId::parse(text(arguments, "job_id")) else { return Ok(None) };
        let api = self.desk.api()?;
        let unreachable = |error| Failure::unreachable(&error);
        let found = api.workplace.jobs.find(&job_id).await.map_err(unreachable)?;
        let Some(job) = found.filter(|job| is_of_task(job.task_id.as_str(), arguments)) else {
            return Ok(None);
        };
        let events = api.workplace.jobs.events_after(&job_id, after, EVENTS_AT_ONCE).await;
        let events = events.map_err(unreachable)?;
        Ok(Some(EventPage {
            last: events.last().map(|event| event.id),
            is_over: job.life.state.is_final() && events.len() < EVENTS_AT_ONCE as usize,
            events: json!(events),
        }))
    }

    /// Returns the output of commands in the session with that id.
    fn of_sandbox(&self, caller: &Caller, arguments: &Arguments, after: u64) -> Result<EventPage, Failure> {
        let unknown = || Failure::new(DomainCode::NotFound, "the task has no such job and no such sandbox");
        let id = SessionId::parse(text(arguments, "job_id")).map_err(|_| unknown())?;
        let session = self.desk.api()?.sessions.find(&id).map_err(|_| unknown())?;
        if !is_of_task(session.request().task_id.as_str(), arguments) {
            return Err(unknown());
        }
        self.desk.check_level(caller, arguments)?;
        let events = session.log().after(after, EVENTS_AT_ONCE as usize);
        Ok(EventPage { last: events.last().map(|event| event.id), is_over: false, events: json!(events) })
    }
}

fn is_of_task(task: &str, arguments: &Arguments) -> bool {
    task.eq_ignore_ascii_case(text(arguments, "task_id"))
}
