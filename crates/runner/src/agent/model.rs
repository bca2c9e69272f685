//! Models of the agent: only those of the job; the first that answers is used, and another when it fails.

mod ollama;
mod openai;
mod refusal;
mod route;

pub(super) use refusal::UnusableReply;

use super::conversation::{ConversationEntry, Reply, Request};
use crate::deadline::{Deadline, Interruption};
use crate::failure_code::Fault;
use crate::http_client::{HttpError, HttpRequest, HttpResponse};
use belljar_contract::failure::FailureCode;
use belljar_contract::text::with_causes;
use openai::TokenLimitParameter;
use refusal::RetryDecision;
use route::{Dialect, ModelRoute};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The models of a job.
pub(super) struct Models {
    routes: Vec<ModelRoute>,
    candidates: Vec<ModelCandidate>,
    /// Index of the candidate that answered last, which is asked first.
    current: usize,
}

/// Answer of a model, with the model's name.
pub(super) struct ModelAnswer {
    pub(super) model: String,
    pub(super) reply: Reply,
}

/// Reason why no model has answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelError {
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    #[error("the model budget is exhausted: {said}")]
    Spent { said: String },
    /// Concurrent calls of the same run use up its allowance. A job can cause that, so it is not a failure of the
    /// provider.
    #[error("concurrent calls of this run use up its model limits: {said}")]
    Held { said: String },
    /// The request must be shortened.
    #[error("the request is too long: {said}")]
    TooLong { said: String },
    #[error("no model is available: {why}")]
    Unreachable { why: String },
}

/// A model by a way.
struct ModelCandidate {
    model: String,
    route: usize,
    /// Reason why it is not asked any more.
    is_out: Option<CandidateFailure>,
    /// See [`Request::is_said_first`].
    is_said_first: bool,
    limit: TokenLimitParameter,
}

/// Reason why a candidate gave no answer.
#[derive(Clone)]
struct CandidateFailure {
    model: String,
    said: String,
    /// The model isn't available by that route. Another route may have it.
    is_absent: bool,
}

const JSON: &str = "application/json";

/// A model may think for that long.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pauses after each round in which all candidates were tried; the last round has none.
const ROUNDS: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8), Duration::ZERO];
/// Maximum number of calls in one answer; further ones are dropped.
const MOST_CALLS: usize = 128;
const LONGEST_ID: usize = 256;
/// Maximum length of a provider's raw calls, in bytes; longer ones are dropped.
const LONGEST_RAW: usize = 64 << 10;
const LONGEST_WAIT: Duration = Duration::from_secs(30);

// === impl Models ===

impl Models {
    /// Creates candidates for the allowed models, by all routes that the environment names.
    pub(super) fn of_environment(allowed: &[String]) -> Result<Self, ModelError> {
        let routes = route::of_environment()?;
        let by_each = |model: &String| {
            let model = model.clone();
            (0..routes.len()).map(move |route| ModelCandidate {
                model: model.clone(),
                route,
                is_out: None,
                is_said_first: false,
                limit: TokenLimitParameter::MaxTokens,
            })
        };
        let candidates = allowed.iter().flat_map(by_each).collect();
        Ok(Self { routes, candidates, current: 0 })
    }

    /// Returns the first answer of a candidate.
    pub(super) fn ask(
        &mut self,
        request: &Request<'_>,
        turn: u32,
        deadline: &Deadline<'_>,
    ) -> Result<ModelAnswer, ModelError> {
        let (mut why, mut held): (Vec<CandidateFailure>, _) = (Vec::new(), None);
        for pause in ROUNDS {
            why.clear();
            held = None;
            let (mut soonest, mut too_long): (Option<Duration>, _) = (None, None);
            for at in self.order() {
                if let Some(reason) = self.reason_to_pass_over(at, deadline)? {
                    why.push(reason);
                    continue;
                }
                let (error, retry_after) = match self.ask_one(at, request, turn, deadline)? {
                    Ok(reply) => {
                        self.current = at;
                        return Ok(ModelAnswer { model: self.candidates[at].model.clone(), reply });
                    }
                    Err(failed) => failed,
                };
                let said = with_causes(&error);
                let (model, is_absent) = (self.candidates[at].model.clone(), error.is_of_other_route());
                let reason = CandidateFailure { model, said: said.clone(), is_absent };
                match error.next() {
                    RetryDecision::Spent => return Err(ModelError::Spent { said }),
                    // Another candidate may accept the request unchanged.
                    RetryDecision::Shorter => too_long = Some(said),
                    RetryDecision::Never => self.candidates[at].is_out = Some(reason.clone()),
                    RetryDecision::Later => {
                        held = error.is_held_by_run().then_some(said).or(held);
                        let wait = retry_after.unwrap_or(pause).max(pause);
                        soonest = Some(soonest.map_or(wait, |other| other.min(wait)));
                    }
                }
                why.push(reason);
            }
            if let Some(said) = too_long {
                return Err(ModelError::TooLong { said });
            }
            match soonest {
                Some(wait) if !pause.is_zero() => rest(wait.min(LONGEST_WAIT), deadline)?,
                _ => break,
            }
        }
        match held {
            Some(said) => Err(ModelError::Held { said }),
            None => Err(ModelError::Unreachable { why: told(&why) }),
        }
    }

    /// Returns the order of attempts: the candidate that answered last, then the others in the job's order.
    fn order(&self) -> Vec<usize> {
        let others = (0..self.candidates.len()).filter(|at| *at != self.current);
        std::iter::once(self.current).chain(others).collect()
    }

    /// Returns the reason why a candidate is skipped, if it is.
    fn reason_to_pass_over(
        &mut self,
        at: usize,
        deadline: &Deadline<'_>,
    ) -> Result<Option<CandidateFailure>, ModelError> {
        let ModelCandidate { model, route, is_out, .. } = &self.candidates[at];
        if is_out.is_some() {
            return Ok(is_out.clone());
        }
        let reachable = self.routes[*route].reachable(deadline)?;
        let is_there = |listed: &Vec<String>| {
            listed.iter().any(|name| name == model || name.strip_suffix(":latest") == Some(model))
        };
        let is_missing = reachable.as_ref().is_some_and(|listed| !is_there(listed));
        Ok(is_missing.then(|| CandidateFailure {
            model: model.clone(),
            said: "not among the available models".to_owned(),
            is_absent: true,
        }))
    }

    fn ask_one(
        &mut self,
        at: usize,
        request: &Request<'_>,
        turn: u32,
        deadline: &Deadline<'_>,
    ) -> Result<Result<Reply, (UnusableReply, Option<Duration>)>, ModelError> {
        let ModelCandidate { model, route, is_said_first, limit, .. } = &self.candidates[at];
        let limit = *limit;
        let route = &mut self.routes[*route];
        let request = Request { is_said_first: *is_said_first, ..*request };
        let (path, body) = match route.dialect {
            Dialect::OpenAi => (openai::CHAT, openai::body(model, &request, limit)),
            Dialect::Ollama => (ollama::CHAT, ollama::body(model, &request)),
        };
        let body = body.to_string().into_bytes();
        let question = HttpRequest {
            method: "POST",
            path,
            headers: &[],
            body: Some(&body),
            accept: JSON,
            is_idempotent: true,
            patience: PATIENCE,
        };
        let answer = match route.peer.ask(question, deadline) {
            Ok(answer) => answer,
            Err(HttpError::Interrupted(interrupted)) => return Err(interrupted.into()),
            Err(error) => return Ok(Err((error.into(), None))),
        };
        let HttpResponse { status: 200..=299, body, .. } = &answer else {
            let refused = UnusableReply::of(&answer);
            if let Some(limit) = limit.after(&refused).filter(|_| matches!(answer.status, 400 | 422)) {
                self.candidates[at].limit = limit;
                return self.ask_one(at, &request, turn, deadline);
            }
            if answer.status == 400 && refused.next() == RetryDecision::Never && !request.is_said_first {
                self.candidates[at].is_said_first = true;
                return self.ask_one(at, &request, turn, deadline);
            }
            return Ok(Err((refused, answer.retry_after)));
        };
        let reply = match route.dialect {
            Dialect::OpenAi => openai::reply(body, turn),
            Dialect::Ollama => ollama::reply(body, turn),
        };
        Ok(reply.map_err(|error| (error, None)))
    }
}

/// Lists the reasons for a person. A model's absence on one route is left out if another route has it.
fn told(reasons: &[CandidateFailure]) -> String {
    let is_elsewhere = |model: &str| reasons.iter().any(|other| other.model == model && !other.is_absent);
    let told = reasons.iter().filter(|reason| !(reason.is_absent && is_elsewhere(&reason.model)));
    let mut lines: Vec<String> =
        told.map(|CandidateFailure { model, said, .. }| format!("{model}: {said}")).collect();
    lines.dedup();
    lines.join("; ")
}

/// Waits, but not beyond the deadline.
fn rest(wait: Duration, deadline: &Deadline<'_>) -> Result<(), Interruption> {
    const GLANCE: Duration = Duration::from_millis(50);
    let until = Instant::now() + wait;
    loop {
        deadline.check()?;
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return Ok(()),
            left => std::thread::sleep(left.min(GLANCE)),
        }
    }
}

/// Returns the messages of a request in a provider's format.
fn messages(request: &Request<'_>, word: impl Fn(&ConversationEntry) -> Value) -> Vec<Value> {
    let first = match request.is_said_first {
        true => format!("{}{}", request.system, request.runtime),
        false => request.system.to_owned(),
    };
    let last = ConversationEntry::Note(request.runtime.to_owned());
    let conversation = request.conversation.iter().chain((!request.is_said_first).then_some(&last));
    let mut messages = vec![json!({ "role": "system", "content": first })];
    for message in conversation.map(word) {
        // Some providers require alternating roles.
        match messages.last_mut() {
            Some(before) if before["role"] == "user" && message["role"] == "user" => {
                let texts =
                    [&before["content"], &message["content"]].map(|text| text.as_str().unwrap_or_default());
                before["content"] = texts.join("\n\n").into();
            }
            _ => messages.push(message),
        }
    }
    messages
}

/// Returns arguments as text; some providers return them as JSON values.
fn text_of(arguments: Value) -> String {
    match arguments {
        Value::String(text) => text,
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

impl Fault for ModelError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Interrupted(interrupted) => interrupted.code(),
            Self::Spent { .. } | Self::Held { .. } => FailureCode::BudgetExhausted,
            Self::TooLong { .. } => FailureCode::ConstraintViolation,
            Self::Unreachable { .. } => FailureCode::InferenceUnavailable,
        }
    }
}
