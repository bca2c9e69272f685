//! `run`: one command in a sandbox of its own.

use super::super::execution::CallerGoneSignal;
use super::super::failures;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::diff::{self, DiffPart};
use super::exec::{ExecRequest, ran};
use super::{AROUND_A_COMMAND, LONGEST_COMMAND, SessionTool, SessionToolDescription};
use belljar_contract::category::Category;
use belljar_sandbox::session::{Refusal, SessionError};
use belljar_tools::answer::{Answer, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const NAME: &str = "run";

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: NAME,
    summary: "Runs one command in a fresh sealed sandbox on a copy of a directory, and returns its exit code, its output and its \
        changes.",
    details: "Give either `argv` or `shell`. The sandbox goes with the command, and so does what was changed: to go on with it, \
        `open` a session. There is no network access, unless the operator of this server has allowed some.",
    category: Category::Terminal,
    effect: Effect::Additive,
    within: Duration::from_secs(LONGEST_COMMAND.as_secs() + AROUND_A_COMMAND.as_secs()),
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Directory to copy into the workspace, one of those that the server was started with. Default: the first of them.
    #[schemars(length(min = 1, max = 4096))]
    directory: Option<String>,
    /// The program and its arguments.
    argv: Option<Vec<String>>,
    /// Command line for /bin/sh.
    shell: Option<String>,
    /// Working directory: /workspace or a path below it.
    cwd: Option<String>,
    /// Environment variables for this command only. They are not recorded.
    #[schemars(extend("x-belljar-secret" = true))]
    env: Option<BTreeMap<String, String>>,
    /// Standard input of the command.
    stdin: Option<String>,
    /// Timeout in seconds, after which the command is killed. Default: 120.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u64>,
    /// Maximum number of bytes kept of each output stream, half from the beginning and half from the end. Default: 32768.
    #[schemars(range(min = 256, max = 131072))]
    output_bytes: Option<usize>,
}

#[derive(Clone)]
pub(super) struct RunTool;

impl SessionTool for RunTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::New(arguments.directory)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, given_up: &CallerGoneSignal) -> Answer {
        let Arguments { directory, argv, shell, cwd, env, stdin, timeout_seconds, output_bytes } = arguments;
        let said = ExecRequest { argv, shell, cwd, env, stdin, timeout_seconds, output_bytes };
        let command = said.command()?;
        let client = desk.open(directory.as_deref())?;
        let answer = ran(&client, command, given_up).map(|mut told| {
            match client.changes() {
                Ok(review) if review.changes.files.is_empty() => {}
                Ok(review) => told["changes"] = diff::told(&review.changes, DiffPart::new(None, None), 0),
                // It is the copy of nothing.
                Err(SessionError::Refused(Refusal::Empty)) => {}
                Err(error) => told["changes_are_not_told"] = failures::of_session(&error).message.into(),
            }
            Success::of(told)
        });
        // A session that can't be ended has ended already.
        let _ = desk.close(&client.session().id);
        answer
    }
}
