//! A container that can be killed from outside: by its PID 1 where that may be looked at, and by its engine otherwise.

use super::channel::Channel;
use super::engine::Engine;
use super::measured::MeasuredIsolation;
use super::sandbox::Container;
use crate::disk_quota::QuotaTarget;
use belljar_confine::sealed::InitHandle;
use std::sync::Arc;

/// A watched container.
#[derive(Debug)]
pub(super) struct WatchedContainer {
    process: Option<InitHandle>,
    engine: Arc<Engine>,
    id: String,
    channel: Arc<Channel>,
}

// === impl WatchedContainer ===

impl WatchedContainer {
    pub(super) fn of(container: &Container, measured: &MeasuredIsolation, channel: &Arc<Channel>) -> Self {
        Self {
            process: container.handle(measured),
            engine: Arc::clone(container.engine()),
            id: container.id().to_owned(),
            channel: Arc::clone(channel),
        }
    }

    /// The connection to its relay.
    pub(super) fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    /// Kills everything in it, and waits for nothing.
    pub(super) fn kill_all(&self) {
        match &self.process {
            Some(process) => process.kill(),
            None => self.engine.kill(&self.id),
        }
        // An engine that does not do it, or takes its time: PID 1 ends when it is alone.
        self.channel.hang_up();
    }
}

impl QuotaTarget for Arc<WatchedContainer> {
    fn process(&self) -> Option<&InitHandle> {
        self.process.as_ref()
    }

    fn has_ended(&self) -> bool {
        self.channel.is_gone() || self.process.as_ref().is_some_and(InitHandle::has_ended)
    }

    fn kill(&self) {
        self.kill_all();
    }
}
