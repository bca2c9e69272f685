//! `exec`: a command in a session.

use super::super::execution::{self, CallerGoneSignal, CommandEnd, CommandResult, SessionCommand};
use super::super::failures;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::{AROUND_A_COMMAND, LONGEST_COMMAND, SessionTool, SessionToolDescription};
use crate::programs;
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_sandbox::session::{ProgramOutcome, SessionClient, SessionError};
use belljar_tools::answer::{Answer, Failure, Success};
use belljar_tools::definition::Effect;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

pub(super) const NAME: &str = "exec";

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: NAME,
    summary: "Runs a command in a session, and returns its exit code and output.",
    details: "Give either `argv` or `shell`. A command that fails is no error of this tool: look at `exit_code`.",
    category: Category::Terminal,
    effect: Effect::Additive,
    within: Duration::from_secs(LONGEST_COMMAND.as_secs() + AROUND_A_COMMAND.as_secs()),
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
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

/// A command as clients say it.
pub(super) struct ExecRequest {
    pub(super) argv: Option<Vec<String>>,
    pub(super) shell: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) env: Option<BTreeMap<String, String>>,
    pub(super) stdin: Option<String>,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) output_bytes: Option<usize>,
}

#[derive(Clone)]
pub(super) struct ExecTool;

impl SessionTool for ExecTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, given_up: &CallerGoneSignal) -> Answer {
        let Arguments { session, argv, shell, cwd, env, stdin, timeout_seconds, output_bytes } = arguments;
        let said = ExecRequest { argv, shell, cwd, env, stdin, timeout_seconds, output_bytes };
        let command = said.command()?;
        ran(&desk.find(&session)?, command, given_up).map(Success::of)
    }
}

// === impl ExecRequest ===

impl ExecRequest {
    /// The command, if it is one.
    pub(super) fn command(self) -> Result<SessionCommand, Failure> {
        let argv = match (self.argv, self.shell) {
            (Some(argv), None) if !argv.is_empty() => argv,
            (None, Some(line)) => ["/bin/sh".to_owned(), "-c".to_owned(), line].to_vec(),
            _ => return Err(Failure::argument("either `argv`, with a program in it, or `shell` is needed")),
        };
        let argv = with_variables(self.env.unwrap_or_default(), argv)?;
        if argv.iter().any(|argument| argument.contains('\0')) {
            return Err(Failure::argument("an argument has no zero byte"));
        }
        Ok(SessionCommand {
            argv: argv.into_iter().map(OsString::from).collect(),
            directory: directory(self.cwd.as_deref())?,
            input: self.stdin.unwrap_or_default().into_bytes(),
            within: Duration::from_secs(self.timeout_seconds.unwrap_or(120)).min(LONGEST_COMMAND),
            most_bytes: self.output_bytes.unwrap_or(32 << 10),
            ends_with_output: false,
        })
    }
}

/// Returns the absolute working directory. Relative paths begin at the workspace.
fn directory(cwd: Option<&str>) -> Result<String, Failure> {
    match cwd {
        None => Ok("/workspace".to_owned()),
        Some(cwd) if cwd.contains('\0') => Err(Failure::argument("a path has no zero byte")),
        Some(cwd) if cwd.starts_with('/') => Ok(cwd.to_owned()),
        Some(cwd) => Ok(format!("/workspace/{cwd}")),
    }
}

/// The command with variables of its own: a shell sets them and becomes the program.
fn with_variables(env: BTreeMap<String, String>, argv: Vec<String>) -> Result<Vec<String>, Failure> {
    if env.is_empty() {
        return Ok(argv);
    }
    let is_name = |name: &str| {
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_word && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
    };
    if let Some(name) = env.keys().find(|name| !is_name(name)) {
        return Err(Failure::argument(format!("{name:?} is no name of a variable")));
    }
    // Assignments contain an equals sign; the `--` that ends them doesn't.
    let script = r#"while [ "$1" != -- ]; do export "$1"; shift; done; shift; exec "$@""#;
    let assignments = env.into_iter().map(|(name, value)| format!("{name}={value}"));
    let begins = ["/bin/sh", "-c", script, "sh"].map(str::to_owned);
    let ends = std::iter::once("--".to_owned());
    Ok(begins.into_iter().chain(assignments).chain(ends).chain(argv).collect())
}

/// Runs it, and tells what came of it.
pub(super) fn ran(
    client: &SessionClient,
    command: SessionCommand,
    given_up: &CallerGoneSignal,
) -> Result<Value, Failure> {
    match execution::run(client, command, given_up) {
        Ok(ended) => told(ended),
        // As a shell tells it.
        Err(SessionError::NotStarted { program, source }) => {
            let code = if matches!(source, Errno::NOENT | Errno::NOTDIR) { 127 } else { 126 };
            let hint = programs::hint(&program, source, client.session().programs.as_ref());
            let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            let stderr = format!("can't run {program}: {source}{hint}");
            Ok(json!({ "exit_code": code, "stdout": "", "stderr": stderr, "timed_out": false }))
        }
        Err(error) => Err(failures::of_session(&error)),
    }
}

fn told(ended: CommandResult) -> Result<Value, Failure> {
    let ((stdout, stdout_cut), (stderr, stderr_cut)) = (ended.stdout.text(), ended.stderr.text());
    let outcome = match ended.by {
        CommandEnd::GivenUp => {
            return Err(Failure::new(DomainCode::Unavailable, "the caller has canceled the call"));
        }
        CommandEnd::OutOfTime | CommandEnd::Silent => None,
        CommandEnd::Outcome(outcome) => Some(outcome),
    };
    let mut told = json!({
        "exit_code": outcome.map(ProgramOutcome::exit_code),
        "stdout": stdout,
        "stderr": stderr,
        "timed_out": outcome.is_none(),
    });
    let cut = [("stdout_bytes_left_out", stdout_cut), ("stderr_bytes_left_out", stderr_cut)];
    for (name, count) in cut.into_iter().filter(|(_, count)| *count > 0) {
        told[name] = count.into();
    }
    match outcome {
        Some(ProgramOutcome::Killed) => told["session_ended"] = "it was ended meanwhile".into(),
        Some(ProgramOutcome::Exceeded(limit)) => told["session_ended"] = limit.to_string().into(),
        Some(ProgramOutcome::Signaled(signal)) => told["signal"] = signal.into(),
        _ => {}
    }
    Ok(told)
}
