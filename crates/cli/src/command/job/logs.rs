//! `belljar job logs`: what a job has written to its standard output and its standard error, to those of this command.

use super::parse_id;
use super::watch::ConnectionNotice;
use crate::client::events::{FollowExtent, JobEventReceiver, follow};
use crate::client::{Client, ClientError};
use crate::error::CliError;
use crate::output::UntrustedLines;
use belljar_contract::id::JobId;
use belljar_contract::worker::event::{JobEvent, JobEventKind, Stream};
use belljar_contract::worker::job::JobOutcome;
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct LogsArguments {
    /// The job's id
    #[arg(value_parser = parse_id)]
    id: JobId,
    /// Follow the output until the job ends
    #[arg(short, long)]
    follow: bool,
}

#[derive(Default)]
struct LogPrinter {
    lost: ConnectionNotice,
    is_cut: bool,
}

// === impl LogsArguments ===

impl LogsArguments {
    pub(super) fn run(&self, client: &Client, is_remote: bool) -> Result<ExitCode, CliError> {
        let told = client.job(&self.id)?;
        if let Some(outcome) = &told.known.outcome {
            whole(outcome)?;
            return Ok(ExitCode::SUCCESS);
        }
        let extent = if self.follow && is_remote { FollowExtent::Whole } else { FollowExtent::SoFar };
        let mut writer = LogPrinter::default();
        follow(client, &self.id, extent, &mut writer)?;
        if writer.is_cut {
            crate::output::errln!(
                "belljar: the job's output exceeds the limit for running jobs; the rest is available when the job has ended"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the output of a finished job.
fn whole(outcome: &JobOutcome) -> Result<(), CliError> {
    write(Stream::Stdout, &outcome.stdout)?;
    write(Stream::Stderr, &outcome.stderr)?;
    if outcome.truncated.stdout || outcome.truncated.stderr {
        crate::output::errln!("belljar: the job's output exceeds the limit and was cut off");
    }
    Ok(())
}

impl JobEventReceiver for LogPrinter {
    fn heard(&mut self, _: &Value, event: Option<&JobEvent>) -> Result<(), CliError> {
        self.lost.is_back();
        match event.map(|event| &event.happening) {
            Some(JobEventKind::Log { stream, text }) => write(*stream, text),
            Some(JobEventKind::Truncated) => {
                self.is_cut = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn lost(&mut self, error: Option<&ClientError>) {
        self.lost.tell(error);
    }
}

/// Writes a job's output unchanged, but escaped for a terminal if it goes to one. A reader may close the pipe early.
fn write(stream: Stream, text: &str) -> Result<(), CliError> {
    let (is_terminal, mut output): (bool, Box<dyn Write>) = match stream {
        Stream::Stdout => (std::io::stdout().is_terminal(), Box::new(std::io::stdout().lock())),
        Stream::Stderr => (std::io::stderr().is_terminal(), Box::new(std::io::stderr().lock())),
    };
    let shown = if is_terminal { for_terminal(text) } else { text.to_owned() };
    match output.write_all(shown.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(CliError::output),
    }
}

/// Lines stay lines, and tabs tabs; each line whole, however long it is.
fn for_terminal(text: &str) -> String {
    UntrustedLines(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_logs_are_escaped_for_terminals() {
        assert_eq!(
            for_terminal("a\tb\r\n\u{1b}[2Jc\u{9b}d\u{202e}e\u{7}\n"),
            "a\tb\\u{d}\n\\u{1b}[2Jc\\u{9b}d\\u{202e}e\\u{7}\n"
        );
        assert_eq!(for_terminal(&"x".repeat(1_000)).len(), 1_000);
    }
}
