//! Delivery of checkpoints to the anchors of one log: by the writer itself for a required anchor, by a thread of its
//! own for each other one.

use super::courier::AnchorThread;
use super::file;
use super::note::Signer;
use super::status::StatusFile;
use super::{AnchorError, AnchorSettings, AnchorTarget, bucket::Bucket, syslog};
use crate::audit::AuditError;
use crate::audit::chain::Position;
use crate::audit::event::Event;
use belljar_contract::text::with_causes;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds of the audit records about anchors.
const FAILED: &str = "audit_anchor_failed";
const RECOVERED: &str = "audit_anchor_recovered";

/// All anchors of a log that is open.
#[derive(Debug, Default)]
pub(in crate::audit) struct Anchors {
    required: Vec<AnchorDelivery>,
    couriers: Vec<AnchorThread>,
    events: AnchorEvents,
}

/// Events of anchors that are to be recorded. The writer thread takes them.
pub(super) type AnchorEvents = Arc<Mutex<Vec<Event>>>;

/// Delivers to one anchor.
#[derive(Debug)]
pub(super) struct AnchorDelivery {
    settings: AnchorSettings,
    signer: Signer,
    status: StatusFile,
    events: AnchorEvents,
    /// Opened at the first use.
    bucket: Option<Bucket>,
}

// === impl Anchors ===

impl Anchors {
    /// Starts a thread for each anchor that isn't required. `at` is the present end of the log.
    pub(in crate::audit) fn start(
        folder: &Path,
        settings: &[AnchorSettings],
        signer: &Signer,
        at: Position,
    ) -> Result<Self, AuditError> {
        let mut anchors = Self::default();
        for settings in settings {
            let failed = |source| AuditError::anchor(settings.target.to_string(), source);
            if let (AnchorTarget::File(path), Some(state)) = (&settings.target, folder.parent()) {
                file::must_be_elsewhere(path, state).map_err(failed)?;
            }
            let delivery = AnchorDelivery {
                settings: settings.clone(),
                signer: signer.clone(),
                status: StatusFile::open(folder, settings),
                events: Arc::clone(&anchors.events),
                bucket: None,
            };
            match settings.is_required {
                true => anchors.required.push(delivery),
                false => anchors.couriers.push(
                    AnchorThread::start(delivery, at)
                        .map_err(|error| AuditError::io("start a thread for an anchor of", folder, error))?,
                ),
            }
        }
        Ok(anchors)
    }

    /// Delivers the new end of the log: the records up to it are on disk, and not acknowledged yet.
    ///
    /// # Errors
    /// [`AuditError::Anchor`] when a required anchor hasn't accepted it.
    pub(in crate::audit) fn reach(&mut self, at: Position) -> Result<(), AuditError> {
        self.couriers.iter().for_each(|courier| courier.reach(at));
        for delivery in &mut self.required {
            delivery.deliver(at).map_err(|error| AuditError::anchor(delivery.target(), error))?;
        }
        Ok(())
    }

    /// Takes the events that are to be recorded.
    pub(in crate::audit) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the pending deliveries, and waits for them a limited time.
    pub(in crate::audit) fn finish(&mut self) {
        self.couriers.iter().for_each(AnchorThread::close);
        self.couriers.drain(..).for_each(AnchorThread::wait);
    }
}

// === impl AnchorDelivery ===

impl AnchorDelivery {
    pub(super) fn target(&self) -> String {
        self.settings.target.to_string()
    }

    pub(super) fn settings(&self) -> &AnchorSettings {
        &self.settings
    }

    /// Returns the sequence number up to which the anchor has the log that ends at `end`.
    pub(super) fn delivered_to(&self, end: Position) -> u64 {
        self.status.delivered_to(&self.signer.log.to_string(), end)
    }

    pub(super) fn deliver(&mut self, at: Position) -> Result<(), AnchorError> {
        let (checkpoint, note) = self.signer.note(at);
        let sent = match &self.settings.target {
            AnchorTarget::File(path) => file::append(path, &note),
            AnchorTarget::Syslog(socket) => syslog::send(socket, &note),
            AnchorTarget::Bucket(url) => match &self.bucket {
                Some(bucket) => bucket.put(&checkpoint, note),
                None => {
                    Bucket::open(url).and_then(|opened| self.bucket.insert(opened).put(&checkpoint, note))
                }
            },
        };
        match &sent {
            Ok(()) => {
                if let Some(ended) = self.status.succeeded(&checkpoint) {
                    let event = json!({ "target": self.target(), "failed_since": ended.since,
                        "error": ended.error, "sequence": at.sequence });
                    self.record(RECOVERED, &event);
                }
            }
            Err(error) => self.note_failure(error, at),
        }
        sent
    }

    pub(super) fn note_failure(&mut self, error: &AnchorError, at: Position) {
        if self.status.failed(with_causes(&error)) {
            let event =
                json!({ "target": self.target(), "error": with_causes(&error), "sequence": at.sequence });
            self.record(FAILED, &event);
        }
    }

    fn record(&self, kind: &str, event: &serde_json::Value) {
        if let Ok(event) = Event::new(kind, None, event) {
            self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }
    }
}
