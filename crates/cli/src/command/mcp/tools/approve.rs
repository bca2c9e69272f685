//! `approve`: what a session changed goes into the directory that it is a copy of.

use super::super::execution::CallerGoneSignal;
use super::super::failures;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::{SHORT, SessionTool, SessionToolDescription, diff};
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_sandbox::workspace::digest::{InvalidDigest, ReviewDigest};
use belljar_tools::answer::{Answer, Failure, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const NAME: &str = "approve";

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: NAME,
    summary: "Writes what a session changed into the host's directory that it is a copy of.",
    details: "Call it only after the user has seen the diff and agreed, with the digest that `diff` returned: if the changes differ by \
        then, nothing is written. If this server lets only a person commit changes, the error names the command to type. The \
        session stays open.",
    category: Category::VersionControl,
    effect: Effect::Destructive,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
    /// The digest of the changes that the person has seen, as `diff` returned it.
    reviewed: String,
}

#[derive(Clone)]
pub(super) struct ApproveTool;

impl SessionTool for ApproveTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, given_up: &CallerGoneSignal) -> Answer {
        let client = desk.find(&arguments.session)?;
        let id = &client.session().id;
        let Some(trust) = &desk.offer.approves else {
            let message =
                format!("this server lets only a person commit changes, with `belljar session commit {id}`");
            return Err(Failure::new(DomainCode::PermissionDenied, message));
        };
        let reviewed: ReviewDigest = arguments.reviewed.parse().map_err(|error: InvalidDigest| {
            Failure::new(DomainCode::InvalidArgument, format!("reviewed: {error}"))
        })?;
        if given_up.is_so() {
            return Err(Failure::new(DomainCode::Unavailable, "the caller has canceled the call"));
        }
        let committed =
            client.commit(trust, Some(reviewed), false).map_err(|error| failures::of_approval(id, &error))?;
        let mut told = diff::files(&committed.changes);
        told["digest"] = committed.digest.into();
        Ok(Success::of(told))
    }
}
