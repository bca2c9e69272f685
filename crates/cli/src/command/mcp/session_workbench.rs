//! The workbench of the built-in tools: all that an agent does by them is done in one session, on a copy of the usual directory, in
//! that of its sandboxes which is for tools of the category.
//! A person looks at what it changed there and takes it over, as with every other session.

use super::execution::{self, CallerGoneSignal, CommandResult, SessionCommand, waiting};
use super::failures;
use super::mcp_sessions::McpSessions;
use crate::command::session::own_runner;
use belljar_contract::category::Category;
use belljar_contract::path::WORKSPACE;
use belljar_contract::tool::DomainCode;
use belljar_contract::workbench::{
    Answer, LONGEST_ANSWER_BYTES, LONGEST_REQUEST_BYTES, Request, RunProgram, SUBCOMMAND,
};
use belljar_sandbox::session::SessionClient;
use belljar_tools::answer::Failure;
use belljar_tools::caller::Caller;
use belljar_tools::workbench::{Workbench, failure, time_for};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Has things done in the agent's session.
pub(super) struct SessionWorkbench {
    pub(super) desk: Arc<McpSessions>,
}

/// So much longer than what it is asked for the program of ours may take, to end what came of it.
const GRACE: Duration = Duration::from_secs(10);

impl Workbench for SessionWorkbench {
    fn ask<'a>(
        &'a self,
        _: &'a Caller,
        category: Category,
        request: Request,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        async move {
            let _turn = self.desk.turn()?;
            // Dropped with this call, whether it has ended or is given up.
            let (_waiting, given_up) =
                waiting().map_err(|errno| Failure::internal("watch over the call", &errno))?;
            let desk = Arc::clone(&self.desk);
            let request = within(request, desk.offer.quarters.longest_call(category));
            let done = tokio::task::spawn_blocking(move || {
                let client = desk.own_session(category)?;
                let answer = asked(&client, &request, &given_up)?;
                if let Answer::Ran(ran) = &answer {
                    desk.offer.shipping.ship(&client, ran);
                }
                Ok(answer)
            });
            done.await.unwrap_or_else(|error| Err(Failure::internal("do it", &error)))
        }
        .boxed()
    }
}

/// Returns the request; the timeout of a run request is limited to `longest`.
fn within(request: Request, longest: Duration) -> Request {
    match request {
        Request::Run(run) => {
            let most = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
            Request::Run(RunProgram { within_ms: run.within_ms.min(most), ..run })
        }
        request => request,
    }
}

/// Sends a request to Belljar's runner in the session and returns its answer.
fn asked(client: &SessionClient, request: &Request, given_up: &CallerGoneSignal) -> Result<Answer, Failure> {
    let input = serde_json::to_vec(request)
        .map_err(|error| Failure::internal("write down what was asked", &error))?;
    if input.len() > LONGEST_REQUEST_BYTES {
        return Err(Failure::new(DomainCode::LimitExceeded, "that is too much for one call"));
    }
    let command = SessionCommand {
        argv: [own_runner(client), SUBCOMMAND.into()].into(),
        directory: WORKSPACE.to_owned(),
        input,
        within: time_for(request) + GRACE,
        most_bytes: LONGEST_ANSWER_BYTES,
        // Where something may be left of what it ran, it waits to be killed, and that with it.
        ends_with_output: true,
    };
    let ended = execution::run(client, command, given_up).map_err(|error| failures::of_session(&error))?;
    match heard(ended)? {
        Answer::Refused(refused) => Err(failure(refused)),
        answer => Ok(answer),
    }
}

/// The answer, however its program has ended: one that has left something behind waits to be killed.
fn heard(ended: CommandResult) -> Result<Answer, Failure> {
    let answer = ended.stdout.whole().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    answer.ok_or_else(|| {
        let (complaint, _) = ended.stderr.text();
        tracing::warn!(by = ?ended.by, %complaint, "a program of ours in a session has not answered");
        let message =
            "the session has ended meanwhile, or has no room for this; it is not known how far it got";
        Failure::new(DomainCode::Unavailable, message)
    })
}
