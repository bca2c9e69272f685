//! Waiting for a job: what happens to it is told on standard error, and Ctrl-C is heard.

use super::INTERRUPTED;
use crate::client::events::JobEventReceiver;
use crate::client::{Client, ClientError};
use crate::command::job::event_text::lines;
use crate::command::job::watch::ConnectionNotice;
use crate::error::CliError;
use belljar_contract::id::JobId;
use belljar_contract::worker::event::JobEvent;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag that is set once a signal asks this command to end.
pub(super) struct Interrupts(Arc<AtomicBool>);

/// State of a command that waits for a job.
pub(super) struct JobWait<'c> {
    client: &'c Client,
    id: &'c JobId,
    interrupts: &'c Interrupts,
    /// True if the job ends with this process.
    is_here: bool,
    is_canceled: bool,
    lost: ConnectionNotice,
}

// === impl Interrupts ===

impl Interrupts {
    /// Takes them over, if the command has something to say about them.
    pub(super) fn take(are_wanted: bool) -> Result<Self, CliError> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|_| are_wanted) {
            let taken = signal_hook::flag::register(signal, Arc::clone(&came));
            taken.map_err(|source| CliError::Runtime { source })?;
        }
        Ok(Self(came))
    }

    /// Whether one has come since this was asked last.
    pub(super) fn came(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

// === impl JobWait ===

impl<'c> JobWait<'c> {
    /// For a job that this very process runs.
    pub(super) fn here(client: &'c Client, id: &'c JobId, interrupts: &'c Interrupts) -> Self {
        Self { is_here: true, ..Self::there(client, id, interrupts) }
    }

    /// For a job of another node's.
    pub(super) fn there(client: &'c Client, id: &'c JobId, interrupts: &'c Interrupts) -> Self {
        Self { client, id, interrupts, is_here: false, is_canceled: false, lost: ConnectionNotice::default() }
    }

    /// Says what becomes of a job that is not waited for any more; the exit code for that.
    pub(super) fn leave(&self) -> u8 {
        let id = self.id;
        match self.is_here {
            true => {
                crate::output::errln!("belljar: the job was ended, because it can't outlive this command");
            }
            false => crate::output::errln!(
                "belljar: the job goes on: `belljar job watch {id}` tells of it, `belljar job cancel {id}` stops it"
            ),
        }
        INTERRUPTED
    }
}

impl JobEventReceiver for JobWait<'_> {
    fn heard(&mut self, _: &Value, event: Option<&JobEvent>) -> Result<(), CliError> {
        self.lost.is_back();
        for line in event.map(lines).unwrap_or_default() {
            crate::output::errln!("{line}");
        }
        Ok(())
    }

    fn has_enough(&mut self) -> Result<bool, CliError> {
        if !self.interrupts.came() {
            return Ok(false);
        }
        if !self.is_here || std::mem::replace(&mut self.is_canceled, true) {
            return Ok(true);
        }
        crate::output::errln!("belljar: cancellation was requested; interrupt again to stop waiting");
        match self.client.cancel(self.id) {
            // It may be over by now.
            Ok(_) | Err(ClientError::Refused { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn lost(&mut self, error: Option<&ClientError>) {
        self.lost.tell(error);
    }
}
