//! Report of each program that a tool has run: a line of the server's log, as `log.container_log_shipping` says.

use belljar_contract::id::RunId;
use belljar_contract::workbench::{OutputExcerpt, ProgramExit, ProgramResult};
use belljar_sandbox::config::LogShippingConfig;
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::event::{Event, EventSink, SinkFull};
use belljar_sandbox::session::SessionClient;
use belljar_sandbox::shipping::{ExecutionOutcome, FinishedExecution, Shipper};
use std::sync::Arc;
use std::time::Duration;

/// Reports programs.
pub(super) struct ProgramLogShipper {
    shipper: Shipper,
    correlation: Correlation,
}

/// The log of this server.
#[derive(Debug)]
struct ServerLog;

// === impl ProgramLogShipper ===

impl ProgramLogShipper {
    pub(super) fn new(config: LogShippingConfig, correlation: Correlation) -> Self {
        Self { shipper: Shipper::new(config, Arc::new(ServerLog)), correlation }
    }

    /// Reports a program that has run in that session.
    pub(super) fn ship(&self, client: &SessionClient, ran: &ProgramResult) {
        let session = client.session();
        let Ok(run) = RunId::parse(&session.id) else { return };
        let correlation =
            Correlation { session_id: CorrelationId::parse(&session.id).ok(), ..self.correlation.clone() };
        let (stdout, stderr) = (bytes(&ran.stdout), bytes(&ran.stderr));
        let finished = FinishedExecution {
            sandbox: &run,
            backend: client.backend().as_str(),
            correlation: &correlation,
            outcome: match ran.ending {
                ProgramExit::Exited(code) => ExecutionOutcome::Exited(code),
                ProgramExit::Killed(signal) => ExecutionOutcome::Signaled(signal),
                ProgramExit::OutOfTime => ExecutionOutcome::TimedOut,
            },
            stdout: &stdout,
            stderr: &stderr,
            is_truncated: ran.stdout.left_out_bytes + ran.stderr.left_out_bytes > 0,
            took: Duration::from_millis(ran.duration_ms),
        };
        self.shipper.ship(&finished, None);
    }
}

fn bytes(kept: &OutputExcerpt) -> Vec<u8> {
    [kept.head.0.as_slice(), &kept.tail.0].concat()
}

// === impl ServerLog ===

impl EventSink for ServerLog {
    fn offer(&self, event: Event) -> Result<(), SinkFull> {
        let text = serde_json::to_string(&event).map_err(|_| SinkFull)?;
        tracing::info!(event = %text, "a tool has run a program");
        Ok(())
    }
}
