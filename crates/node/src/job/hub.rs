//! Notifications about newly recorded events of jobs. Listeners read the events themselves from the database.

use belljar_contract::id::JobId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Channels of jobs that have listeners.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hub {
    bells: Arc<Mutex<HashMap<String, watch::Sender<()>>>>,
}

/// A listener to one job.
#[derive(Debug)]
pub(crate) struct Listener {
    hub: Hub,
    key: String,
    bell: Option<watch::Receiver<()>>,
}

// === impl Hub ===

impl Hub {
    /// Subscribes to a job from now on.
    pub(crate) fn listen(&self, job_id: &JobId) -> Listener {
        let key = job_id.key();
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        let bell = bells.entry(key.clone()).or_insert_with(|| watch::channel(()).0).subscribe();
        Listener { hub: self.clone(), key, bell: Some(bell) }
    }

    /// Notifies the job's listeners that something was recorded.
    pub(crate) fn ring(&self, job_id: &JobId) {
        let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = bells.get(&job_id.key()) {
            bell.send_replace(());
        }
    }
}

// === impl Listener ===

impl Listener {
    /// Returns when something was recorded since the last call, or since the subscription.
    pub(crate) async fn heard(&mut self) {
        if let Some(bell) = &mut self.bell {
            // The sender lives as long as the job has listeners.
            let _ = bell.changed().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut bells = self.hub.bells.lock().unwrap_or_else(PoisonError::into_inner);
        self.bell = None;
        if bells.get(&self.key).is_some_and(watch::Sender::is_closed) {
            bells.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn listener_gets_earlier_notifications_and_unregisters_on_drop() {
        let (hub, job) = (Hub::default(), JobId::from_uuid(uuid::Uuid::now_v7()));
        hub.ring(&job);
        let (mut one, other) = (hub.listen(&job), hub.listen(&job));
        hub.ring(&job);
        one.heard().await;
        drop(other);
        assert_eq!(hub.bells.lock().unwrap().len(), 1);
        drop(one);
        assert_eq!(hub.bells.lock().unwrap().len(), 0);
    }
}
