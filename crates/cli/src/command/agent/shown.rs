//! Live output of an agent's run: its calls on standard error, its text on standard output.

use crate::error::CliError;
use crate::output::{UntrustedLines, json_line};
use crate::progress::harmless;
use crate::summary;
use belljar_agent::event::AgentEvent;
use belljar_contract::inference::{CallRecord, Excerpt};
use belljar_execution::run_once::RunObserver;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Output format of an agent's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentOutputFormat {
    People,
    Json,
    Events,
}

/// Prints an agent's calls. The first interrupt stops the agent, and not belljar.
pub(super) struct AgentCallPrinter {
    manner: AgentOutputFormat,
    canceled: Arc<AtomicBool>,
}

// === impl AgentCallPrinter ===

impl AgentCallPrinter {
    pub(super) fn begin(manner: AgentOutputFormat) -> Result<Self, CliError> {
        let canceled = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            signal_hook::flag::register(signal, Arc::clone(&canceled)).map_err(|source| CliError::Watch {
                source: rustix::io::Errno::from_io_error(&source).unwrap_or(rustix::io::Errno::INVAL),
            })?;
        }
        Ok(Self { manner, canceled })
    }
}

/// Returns a function that writes agent events to standard output.
pub(super) fn teller(manner: AgentOutputFormat) -> impl FnMut(AgentEvent) {
    let is_terminal = std::io::stdout().is_terminal();
    let mut ends_line = true;
    move |event| {
        let mut out = std::io::stdout().lock();
        let written = match (manner, &event) {
            (AgentOutputFormat::Json, _) => Ok(()),
            (AgentOutputFormat::Events, event) => {
                let line = json_line(event);
                writeln!(out, "{line}")
            }
            (AgentOutputFormat::People, AgentEvent::TextDelta { delta }) => {
                ends_line = delta.ends_with('\n');
                let text = if is_terminal { readable(delta) } else { delta.clone() };
                out.write_all(text.as_bytes())
            }
            (AgentOutputFormat::People, AgentEvent::Done { .. }) if !ends_line => writeln!(out),
            (AgentOutputFormat::People, _) => Ok(()),
        };
        // A closed standard output doesn't end the agent's run.
        crate::output::note(written.and_then(|()| out.flush()));
    }
}

impl RunObserver for AgentCallPrinter {
    fn called(&mut self, call: &CallRecord) {
        if self.manner != AgentOutputFormat::People {
            return;
        }
        let model = call.model_asked.as_ref().map_or("-", Excerpt::as_str);
        let status = call.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let took = summary::duration(Duration::from_millis(call.total_ms));
        let mut line = format!("{model}  {status} {}  {took}", call.outcome);
        if let Some(usage) = &call.usage {
            let tokens =
                |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
            line += &format!("  {} + {} tokens", tokens(usage.input_tokens), tokens(usage.output_tokens));
            line +=
                &usage.cost_usd.as_ref().map(|cost| format!("  ${}", cost.to_total())).unwrap_or_default();
        }
        crate::output::errln!("· {}", harmless(&line));
    }

    fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }
}

/// Escapes everything in a text that a terminal would act on, except line breaks.
fn readable(text: &str) -> String {
    UntrustedLines(text).to_string()
}
