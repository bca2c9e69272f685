//! Calls the node's own endpoints, within this process.

use super::job::SUBMIT;
use super::sandbox::{self, CREATE, EXEC};
use crate::api::{self, Api};
use crate::tools::projects;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request, StatusCode};
use belljar_contract::id::{ProjectId, SessionId, TaskId};
use belljar_contract::tool::DomainCode;
use belljar_tools::answer::{Answer, Failure, Page, Success};
use belljar_tools::caller::{Caller, Identity};
use belljar_tools::definition::Definition;
use belljar_tools::typed::guard;
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use std::sync::{Arc, Weak};

/// The client of the endpoints.
pub(super) struct EndpointClient {
    /// Weak, so that it ends with the node.
    api: Weak<Api>,
}

/// A request to an endpoint.
pub(super) struct EndpointRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// Member of the response that is returned; the whole response if `None`.
    pub(super) told: Option<&'static str>,
}

/// Makes the request of a call.
pub(super) type RequestBuilder = fn(&Arguments) -> EndpointRequest;

/// A tool that is one endpoint.
pub(super) struct EndpointTool {
    definition: Definition,
    ask: RequestBuilder,
    desk: Arc<EndpointClient>,
}

/// Maximum size of an endpoint's response, in bytes.
const LARGEST_ANSWER_BYTES: usize = 64 << 20;

// === impl EndpointClient ===

impl EndpointClient {
    pub(super) fn new(api: Weak<Api>) -> Self {
        Self { api }
    }

    /// Returns the state of the endpoints, unless the node is stopping.
    pub(super) fn api(&self) -> Result<Arc<Api>, Failure> {
        let stopping = || Failure::new(DomainCode::Unavailable, "the node is stopping");
        self.api.upgrade().filter(|api| !api.stop.is_cancelled()).ok_or_else(stopping)
    }

    /// Sends a request, and returns the endpoint's response.
    pub(super) async fn ask(&self, asked: EndpointRequest) -> Result<Value, Failure> {
        let failed = |error: &(dyn std::error::Error + 'static)| Failure::internal("ask itself", error);
        let body = asked.body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = Request::builder().method(asked.method).uri(asked.path);
        let request = request.header(CONTENT_TYPE, "application/json").body(body).map_err(|e| failed(&e))?;
        let endpoints = TowerToHyperService::new(api::unguarded(self.api()?));
        let Ok(response) = endpoints.call(request).await;
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), LARGEST_ANSWER_BYTES).await;
        let mut said: Value = match bytes.map(|bytes| serde_json::from_slice(&bytes)) {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => return Err(failed(&error)),
            Err(error) => return Err(failed(&error)),
        };
        if !status.is_success() {
            return Err(problem(status, &said));
        }
        match asked.told {
            Some(member) => Ok(said[member].take()),
            None => Ok(said),
        }
    }

    /// Checks that the caller's permissions cover those of the sandbox in which a program is to run: otherwise the caller could
    /// exceed its own.
    pub(super) fn check_level(&self, caller: &Caller, arguments: &Arguments) -> Result<(), Failure> {
        let api = self.api()?;
        let (Some(house), Some(identity)) = (api.workplace.tools.house(), &caller.identity) else {
            return Ok(());
        };
        // The endpoint reports an unknown session.
        let id = SessionId::parse(text(arguments, "job_id")).ok();
        let session = id.and_then(|id| api.sessions.find(&id).ok());
        let has_less = session.is_some_and(|session| match session.terms() {
            Some(terms) => !house.has(identity, terms),
            None => true,
        });
        match has_less {
            false => Ok(()),
            true => Err(Failure::new(
                DomainCode::PermissionDenied,
                "that sandbox was made for an agent that may do more; one of your own, `sandbox.create` makes",
            )),
        }
    }

    /// Checks that a job or a session with that id belongs to the task and the project that the caller is bound to, if any.
    /// Other ids are reported as unknown.
    pub(super) async fn check_job(&self, caller: &Caller, arguments: &Arguments) -> Result<(), Failure> {
        let is_bound = caller.task_id.is_some() || caller.project_id.is_some();
        let Some(job) = arguments.get("job_id").filter(|_| is_bound && caller.job_id.is_none()) else {
            return Ok(());
        };
        let job = job.as_str().unwrap_or_default();
        let unknown = || Failure::new(DomainCode::NotFound, format!("there is no job {job}"));
        let job_id = belljar_contract::id::JobId::parse(job).map_err(|_| unknown())?;
        let api = self.api()?;
        let found = api.workplace.jobs.find(&job_id).await;
        let found = found.map_err(|error| Failure::unreachable(&error))?;
        let found = found.map(|job| (job.task_id, job.project_id));
        let session = SessionId::parse(job).ok().and_then(|id| api.sessions.find(&id).ok());
        let session = session.map(|session| session.request().clone());
        let session = session.map(|request| (request.task_id, request.project_id));
        // An unknown id is accepted: the job may be about to be made.
        let bound = projects::of(caller);
        let is_own = |(task_id, project_id): (TaskId, Option<ProjectId>)| {
            caller.task_id.as_ref().is_none_or(|task| task.key() == task_id.key())
                && (bound.is_none() || bound == project_id)
        };
        if found.into_iter().chain(session).all(is_own) { Ok(()) } else { Err(unknown()) }
    }
}

/// Converts an endpoint's problem to a tool's failure.
fn problem(status: StatusCode, said: &Value) -> Failure {
    let code = match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => DomainCode::InvalidArgument,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => DomainCode::PermissionDenied,
        StatusCode::NOT_FOUND => DomainCode::NotFound,
        StatusCode::CONFLICT => DomainCode::Conflict,
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => DomainCode::LimitExceeded,
        StatusCode::SERVICE_UNAVAILABLE => DomainCode::Unavailable,
        _ => DomainCode::Internal,
    };
    Failure::new(code, said["detail"].as_str().unwrap_or("the node does not say why"))
}

// === impl EndpointTool ===

impl EndpointTool {
    /// Returns the tool. If it is guarded, its schema gets the guards' arguments, which are not part of the request.
    pub(super) fn tool(
        mut definition: Definition,
        ask: RequestBuilder,
        desk: &Arc<EndpointClient>,
    ) -> Arc<dyn Tool> {
        if definition.is_guarded {
            guard(&mut definition.input);
        }
        Arc::new(Self { definition, ask, desk: Arc::clone(desk) })
    }

    /// Adds the task and the project that the caller is bound to, if the tool takes them and the call doesn't name them.
    fn of_bounds(&self, caller: &Caller, mut arguments: Arguments) -> Arguments {
        let task = caller.task_id.as_ref().map(|id| ("task_id", id.as_str()));
        let project = caller.project_id.as_deref().map(|id| ("project_id", id));
        for (name, bound) in task.into_iter().chain(project).filter(|(name, _)| self.takes(name)) {
            arguments.entry(name).or_insert_with(|| Value::from(bound));
        }
        arguments
    }

    /// Sets the caller's agent for jobs and sandboxes that it makes, so that none of them has more permissions than the caller.
    fn of_agent(&self, caller: &Caller, mut arguments: Arguments) -> Arguments {
        let is_for_agent = [SUBMIT, CREATE].contains(&self.definition.name.as_str());
        if let (true, Some(Identity::Agent(agent))) = (is_for_agent, &caller.identity) {
            arguments.insert("agent_id".to_owned(), Value::from(agent.as_str()));
            if self.definition.name.as_str() == SUBMIT {
                arguments.insert("submitted_by".to_owned(), Value::from(agent.as_str()));
            }
        }
        arguments
    }

    fn takes(&self, name: &str) -> bool {
        self.definition.input["properties"].get(name).is_some()
    }
}

impl Tool for EndpointTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            self.desk.check_job(caller, &arguments).await?;
            if self.definition.name.as_str() == EXEC {
                sandbox::check_program(&arguments)?;
                self.desk.check_level(caller, &arguments)?;
            }
            let arguments = self.of_agent(caller, self.of_bounds(caller, arguments));
            let told = self.desk.ask((self.ask)(&arguments)).await;
            if told.is_err() {
                // A session of another task may have been made meanwhile: the endpoint's error about it must not be returned.
                self.desk.check_job(caller, &arguments).await?;
            }
            match told? {
                Value::Array(mut list) => {
                    leave_out_others(caller, &mut list);
                    Ok(Success::page(list, Page::asked(&arguments)))
                }
                told => Ok(Success::of(told)),
            }
        }
        .boxed()
    }
}

/// Removes entries of other tasks, jobs or projects than the caller is bound to.
fn leave_out_others(caller: &Caller, list: &mut Vec<Value>) {
    let is = |said: &Value, bound: &str| said.as_str().is_some_and(|said| said.eq_ignore_ascii_case(bound));
    let is_theirs = |one: &Value| {
        // A session is named by the id of a job.
        let job = one.get("job_id").unwrap_or(&one["session_id"]);
        caller.task_id.as_ref().is_none_or(|bound| is(&one["task_id"], bound.as_str()))
            && caller.job_id.as_ref().is_none_or(|bound| is(job, bound.as_str()))
            && caller.project_id.as_ref().is_none_or(|bound| one["project_id"] == bound.as_str())
    };
    list.retain(is_theirs);
}

/// Returns a text argument; the schema has ensured that required ones exist.
pub(super) fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a body with the version and the given arguments, each under the endpoint's name for it.
pub(super) fn body(arguments: &Arguments, names: &[(&str, &str)]) -> Value {
    let said =
        names.iter().filter_map(|(name, member)| Some(((*member).to_owned(), arguments.get(*name)?.clone())));
    std::iter::once(("version".to_owned(), Value::from(1))).chain(said).collect()
}
