//! Submitting a job: `POST /v1/worker/jobs:run`.

use super::answer::Refusal;
use super::health::check_recorded;
use super::{SharedApi, body, endpoints, job};
use crate::access_rules::{AccessRequest, PermissionExceeded};
use crate::images::{Image, ImageError, OF_JOB};
use crate::job::context::{self, ContextError};
use crate::models::ModelsError;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::id::JobId;
use belljar_contract::worker::assignment::{Assignment, RunJobRequest};
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::traceparent::TraceParent;
use belljar_policy::access::UnknownAgentError;
use belljar_store::jobs::{AcceptedJob, Callback, JobRecord, Submission};
use std::sync::Arc;
use std::time::Duration;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const TRACEPARENT: &str = "traceparent";
const LONGEST_KEY: usize = 255;

/// Interval at which the database is polled for the end of a job that another node may run.
const LOOK: Duration = Duration::from_secs(1);

pub(super) async fn run(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    if api.stop.is_cancelled() {
        return Err(Refusal::new(ProblemKind::Unavailable, "the node is stopping"));
    }
    check_recorded(&api)?;
    let settings = &api.workplace.settings;
    let idempotency_key = idempotency_key(&request)?;
    let said = traceparent(&request);
    let document = body::read(request, settings.max_request_bytes).await?;
    let RunJobRequest { version: _, wait, assignment } = RunJobRequest::parse(&document)?;
    admitted(&api, &assignment).await?;
    let callback = callback(&api, &assignment)?;
    let job_id = assignment.job_id.clone();
    let resolved = context::resolved(&api.workplace, &assignment).await?;
    let resolved = with_image(&api, &assignment, resolved);
    let resolved = in_trace(resolved, &assignment, said);
    let hired = match &assignment.agent_id {
        Some(agent) => api.workplace.trust.hiring(agent, api.workplace.now()).await?,
        None => None,
    };
    let submission = Submission {
        assignment,
        resolved,
        idempotency_key,
        most_waiting: settings.max_waiting,
        callback: callback.map(|url| (url, api.workplace.owner.instance.clone())),
        hired,
        now: api.workplace.now(),
    };
    let submitted = accept(&api, submission).await?;
    let (status, record) = match wait {
        true => (StatusCode::OK, ended(&api, &job_id, submitted).await?),
        false => (StatusCode::ACCEPTED, submitted),
    };
    job::answer(status, &api.workplace.jobs, record).await
}

/// Accepts a job in a task of its own, so that a client that hangs up meanwhile doesn't interrupt it.
async fn accept(api: &SharedApi, submission: Submission) -> Result<JobRecord, Refusal> {
    let api = Arc::clone(api);
    let accepting = tokio::spawn(async move {
        let callback = submission.callback.clone();
        match api.workplace.jobs.submit(submission).await? {
            AcceptedJob::Known(record) => Ok(record),
            AcceptedJob::New(record) => {
                api.workplace.metrics.job_accepted();
                api.dispatcher.wake();
                if let Some((url, _)) = callback {
                    api.deliverer.follow(Callback { job_id: record.job_id.clone(), url, told: 0 });
                }
                Ok(record)
            }
        }
    });
    let died = |_| Refusal::new(ProblemKind::Internal, "the node has failed; to ask once more is safe");
    accepting.await.map_err(died)?
}

/// Returns the callback URL of a job, if it has one.
fn callback(api: &SharedApi, assignment: &Assignment) -> Result<Option<String>, Refusal> {
    let refuse = |why: &str| Refusal::new(ProblemKind::Authorization, format!("$.callback_url: {why}"));
    let said = assignment.callback_url.as_deref();
    match (&api.workplace.settings.callbacks, said) {
        (Some(callbacks), said) => {
            let destination = callbacks.destination(said).map_err(|why| refuse(&why))?;
            Ok(destination.map(|to| said.map_or_else(|| to.url(), str::to_owned)))
        }
        (None, Some(_)) => {
            Err(refuse("this node sends no messages: its configuration has no `node.callback`"))
        }
        (None, None) => Ok(None),
    }
}

/// Adds the node's default image to a job that names none: another node that claims it may have another default.
fn with_image(api: &SharedApi, assignment: &Assignment, resolved: Option<Assignment>) -> Option<Assignment> {
    let image = match &assignment.sandbox.image {
        None => api.workplace.images.choose(None, OF_JOB).ok(),
        Some(_) => None,
    };
    let Some(image) = image.filter(|_| api.workplace.shares_database) else { return resolved };
    let mut named = resolved.unwrap_or_else(|| assignment.clone());
    named.sandbox.image = Some(image.name());
    Some(named)
}

/// Admits a new job. A job that was accepted before is admitted even if the rules have changed: its state is returned, and
/// its permissions are checked when it begins.
async fn admitted(api: &SharedApi, assignment: &Assignment) -> Result<(), Refusal> {
    let checked = match check(api, assignment) {
        Ok(image) => check_volumes(api, image, OF_JOB).await,
        Err(refusal) => Err(refusal),
    };
    let Err(refusal) = checked else { return Ok(()) };
    match api.workplace.jobs.find(&assignment.job_id).await? {
        Some(_) => Ok(()),
        None => Err(refusal),
    }
}

/// Checks that this node can run the job, before it is accepted.
fn check(api: &SharedApi, assignment: &Assignment) -> Result<Image, Refusal> {
    let sandbox = &assignment.sandbox;
    let image = api.workplace.images.choose(sandbox.image.as_deref(), OF_JOB)?;
    let models = api.workplace.models.allowed(sandbox)?;
    endpoints::check_job(sandbox, models.is_some())?;
    if sandbox.contradicts_itself() {
        let detail = "$.sandbox.network_policy: `none`, and $.sandbox.job_spec.constraints.ext_net_allowed is true: one of \
                      the two can't be meant";
        return Err(Refusal::new(ProblemKind::Validation, detail));
    }
    if let Some(house) = api.workplace.tools.house() {
        house.terms(assignment.agent_id.as_ref(), &AccessRequest::of_job(sandbox, &image))?;
    }
    Ok(image)
}

/// Refuses an image whose containers could write without limit. An image that the engine doesn't have yet is checked when the
/// job begins.
pub(super) async fn check_volumes(api: &SharedApi, image: Image, place: &'static str) -> Result<(), Refusal> {
    if image == Image::Native {
        return Ok(());
    }
    let workplace = Arc::clone(&api.workplace);
    let checking = tokio::task::spawn_blocking(move || workplace.images.check_volumes(&image, place));
    let checked = checking.await.map_err(|_| Refusal::new(ProblemKind::Internal, "the node has failed"))?;
    Ok(checked?)
}

impl From<PermissionExceeded> for Refusal {
    fn from(error: PermissionExceeded) -> Self {
        match error {
            PermissionExceeded::Unknown(error) => error.into(),
            error => Self::new(ProblemKind::Authorization, crate::chain(&error)),
        }
    }
}

impl From<UnknownAgentError> for Refusal {
    fn from(error: UnknownAgentError) -> Self {
        Self::new(ProblemKind::Validation, format!("$.agent_id: {error}"))
    }
}

impl From<ImageError> for Refusal {
    fn from(error: ImageError) -> Self {
        let kind = match error {
            ImageError::Invalid { .. } => ProblemKind::Validation,
            ImageError::Denied { .. } | ImageError::Volumes { .. } => ProblemKind::Authorization,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<ContextError> for Refusal {
    fn from(error: ContextError) -> Self {
        match error {
            ContextError::Database(error) => error.into(),
            ContextError::Unfit { .. } => Self::new(ProblemKind::Validation, error.to_string()),
            ContextError::Event(error) => {
                tracing::error!(%error, "what a job was given can't be recorded");
                Self::new(ProblemKind::Internal, "the node has failed")
            }
        }
    }
}

impl From<ModelsError> for Refusal {
    fn from(error: ModelsError) -> Self {
        Self::new(ProblemKind::Authorization, error.to_string())
    }
}

/// Returns the trace that the request's header names. As W3C Trace Context requires, an invalid header is ignored.
pub(super) fn traceparent(request: &Request) -> Option<TraceParent> {
    let mut said = request.headers().get_all(TRACEPARENT).iter();
    let only = said.next().filter(|_| said.next().is_none())?;
    TraceParent::parse(only.to_str().ok()?).ok()
}

/// Adds the trace of the request's header, if the assignment names none. This doesn't make it another job.
fn in_trace(
    resolved: Option<Assignment>,
    assignment: &Assignment,
    said: Option<TraceParent>,
) -> Option<Assignment> {
    match said.filter(|_| assignment.traceparent.is_none()) {
        Some(said) => {
            let carried_out = resolved.unwrap_or_else(|| assignment.clone());
            Some(Assignment { traceparent: Some(said), ..carried_out })
        }
        None => resolved,
    }
}

fn idempotency_key(request: &Request) -> Result<Option<String>, Refusal> {
    let mut keys = request.headers().get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    if keys.next().is_some() {
        return Err(Refusal::new(
            ProblemKind::Validation,
            "Idempotency-Key: expected one header, found several",
        ));
    }
    let is_plain = |key: &&str| {
        (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let key = key.to_str().ok().filter(is_plain).ok_or_else(|| {
        let detail = format!("Idempotency-Key: expected 1 to {LONGEST_KEY} visible characters of ASCII");
        Refusal::new(ProblemKind::Validation, detail)
    })?;
    Ok(Some(key.to_owned()))
}

/// Waits until a job is over. A client that hangs up meanwhile doesn't affect the job.
async fn ended(api: &SharedApi, job_id: &JobId, mut record: JobRecord) -> Result<JobRecord, Refusal> {
    let mut listener = api.workplace.hub.listen(job_id);
    loop {
        if record.life.state.is_final() {
            return Ok(record);
        }
        tokio::select! {
            () = listener.heard() => {}
            () = tokio::time::sleep(LOOK) => {}
            () = api.stop.cancelled() => {
                let detail = "the node is stopping; the job is kept, and asking for it again tells what became of it";
                return Err(Refusal::new(ProblemKind::Unavailable, detail));
            }
        }
        // While the database can't be read, the job continues.
        if let Ok(found) = api.workplace.jobs.find(job_id).await {
            record = found.ok_or_else(|| job::unknown(job_id))?;
        }
    }
}
