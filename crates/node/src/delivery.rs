//! Sends state changes of jobs to an orchestrator, as signed callbacks.
//!
//! ```text
//! states_after(told) ─► message, signed ─► POST ─► 2xx ─► told := event ─► … ─► the last state: acknowledged
//!        ▲                                    └─ anything else: retry with backoff
//!        └─ notified of the job, or polled
//! ```
//! The progress is in the database, so that the next instance continues there after a crash. Delivery is at least once; a
//! repeated message has the same id and digest.

use crate::api;
use crate::job::NodeState;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::callback::CallbackMessage;
use belljar_contract::worker::event::{JobEvent, JobEventKind};
use belljar_egress::callback::{Destination, Message, Sender, SigningKey};
use belljar_egress::upstream::UpstreamError;
use belljar_gateway::apart;
use belljar_store::jobs::{Callback, CallbackAnswer};
use belljar_trusted::tcp_server::ServerUser;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Receiver of job callbacks.
pub struct Callbacks {
    /// Default URL, for jobs that name none.
    pub url: Option<Destination>,
    /// User whose server on this machine gets messages by plain HTTP, besides the node's own user and root.
    pub user: Option<ServerUser>,
    /// The key that messages are signed with.
    pub key: SigningKey,
    /// Origins that jobs may name as receivers.
    pub allowed_origins: Vec<String>,
}

/// Sends callbacks.
pub(crate) struct Deliverer {
    workplace: Arc<NodeState>,
    sender: Sender,
    /// Semaphores by origin, so that an origin that never answers delays no other. The configuration and accepted jobs bound
    /// their number.
    slots: Mutex<HashMap<String, Arc<Semaphore>>>,
    stop: CancellationToken,
    following: Mutex<ActiveDeliveries>,
}

/// The jobs whose callbacks are being sent, by the keys of their ids.
#[derive(Default)]
struct ActiveDeliveries {
    jobs: HashSet<String>,
    tasks: JoinSet<()>,
}

/// Maximum number of messages that are under way to one origin at once.
const MOST_AT_ONCE: usize = 16;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Interval at which the database is polled for states that another node recorded.
const LOOK: Duration = Duration::from_secs(2);

/// HTTP status by which a receiver declines further messages about the job.
const GONE: u16 = 410;

// === impl Callbacks ===

impl Callbacks {
    /// Returns the URL for the messages of a job that names `said`; `None` if no messages are sent.
    ///
    /// # Errors
    /// A description of the accepted URLs, if the job may not name this one.
    pub(crate) fn destination(&self, said: Option<&str>) -> Result<Option<Destination>, String> {
        let Some(said) = said else { return Ok(self.url.clone()) };
        let destination = self.parse(said).map_err(|error| error.to_string())?;
        let own = self.url.as_ref().map(Destination::origin);
        let mut allowed = self.allowed_origins.iter().map(String::as_str).chain(own);
        match allowed.any(|origin| origin == destination.origin()) {
            true => Ok(Some(destination)),
            false => Err(format!("this node sends no messages to {}", destination.origin())),
        }
    }

    /// Parses a URL; the configured user's server is trusted there.
    fn parse(&self, url: &str) -> Result<Destination, UpstreamError> {
        Ok(Destination::parse(url)?.served_by(self.user))
    }
}

// === impl Deliverer ===

impl Deliverer {
    pub(crate) fn start(workplace: Arc<NodeState>, stop: CancellationToken) -> std::io::Result<Self> {
        let sender = Sender::start()?;
        Ok(Self { workplace, sender, slots: Mutex::default(), stop, following: Mutex::default() })
    }

    /// Sends the callbacks of a job from now on, until its last state is acknowledged.
    pub(crate) fn follow(self: &Arc<Self>, callback: Callback) {
        let key = callback.job_id.key();
        let mut following = self.locked();
        if !following.jobs.insert(key.clone()) {
            return;
        }
        while following.tasks.try_join_next().is_some() {}
        let deliverer = Arc::clone(self);
        following.tasks.spawn(async move {
            let stop = deliverer.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = deliverer.tell_all(callback) => {}
            }
            deliverer.locked().jobs.remove(&key);
        });
    }

    /// Compares this instance's callbacks in the database with those being sent, and starts the missing ones: a job may have
    /// been accepted while the connection broke.
    pub(crate) async fn look(self: &Arc<Self>) {
        if let Ok(own) = self.workplace.jobs.callbacks_of(&self.workplace.owner.instance).await {
            own.into_iter().for_each(|callback| self.follow(callback));
        }
    }

    fn slots_of(&self, origin: &str) -> Arc<Semaphore> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let of_origin = slots.entry(origin.to_owned());
        Arc::clone(of_origin.or_insert_with(|| Arc::new(Semaphore::new(MOST_AT_ONCE))))
    }

    fn locked(&self) -> MutexGuard<'_, ActiveDeliveries> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over callbacks of instances that are gone.
    pub(crate) async fn take_over(self: &Arc<Self>) {
        // A node without a callback configuration leaves them to other nodes.
        if self.workplace.settings.callbacks.is_none() {
            return;
        }
        match self.workplace.jobs.take_callbacks(&self.workplace.owner.instance).await {
            Ok(orphaned) => orphaned.into_iter().for_each(|callback| self.follow(callback)),
            Err(error) => tracing::warn!(error = crate::chain(&error), "can't look for callbacks"),
        }
    }

    async fn tell_all(&self, callback: Callback) {
        let Callback { job_id, url, mut told } = callback;
        let callbacks = self.workplace.settings.callbacks.as_ref();
        let set_up = callbacks.and_then(|callbacks| Some((callbacks, callbacks.parse(&url).ok()?)));
        let Some((callbacks, destination)) = set_up else {
            tracing::warn!(%job_id, "no messages are sent about a job: this node is not configured for it any more");
            // Logged once; the callback waits until the node is started with another configuration.
            return std::future::pending().await;
        };
        let mut listener = self.workplace.hub.listen(&job_id);
        loop {
            // While the database can't be read there is nothing to send.
            let events = self.workplace.jobs.states_after(&job_id, told).await.unwrap_or_default();
            for event in events {
                told = event.id;
                let is_last =
                    matches!(event.happening, JobEventKind::Status { status, .. } if status.is_final());
                if !self.tell(&destination, &callbacks.key, (&job_id, event), is_last).await || is_last {
                    return;
                }
            }
            tokio::select! {
                () = listener.heard() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
            if matches!(self.workplace.jobs.find(&job_id).await, Ok(None)) {
                // The job's retention has ended.
                return;
            }
        }
    }

    /// Sends an event until it is acknowledged. Returns true if more events may follow.
    async fn tell(
        &self,
        destination: &Destination,
        key: &SigningKey,
        (job_id, event): (&belljar_contract::id::JobId, JobEvent),
        is_last: bool,
    ) -> bool {
        let (jobs, instance) = (&self.workplace.jobs, &self.workplace.owner.instance);
        let mut pause = FIRST_PAUSE;
        loop {
            let heard = match self.send(destination, key, (job_id, &event)).await {
                Ok(200..=299) if is_last => Some(CallbackAnswer::Result),
                Ok(200..=299) => Some(CallbackAnswer::Event),
                Ok(GONE) => Some(CallbackAnswer::NoMore),
                Ok(status) => {
                    tracing::warn!(%job_id, event = event.id, status, "a callback was not taken");
                    None
                }
                Err(why) => {
                    tracing::warn!(%job_id, event = event.id, why, "a callback did not arrive");
                    None
                }
            };
            self.workplace.metrics.callback_sent(heard.is_some());
            if let Some(heard) = heard {
                let noted =
                    jobs.note_callback_heard(job_id, instance, (event.id, heard), self.workplace.now()).await;
                match noted {
                    Ok(is_ours) => return is_ours && heard != CallbackAnswer::NoMore,
                    // The message is sent again, which is harmless.
                    Err(error) => {
                        tracing::warn!(%job_id, error = crate::chain(&error), "a callback is not noted");
                    }
                }
            } else {
                let _ = jobs.note_callback_tried(job_id, instance).await;
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn send(
        &self,
        destination: &Destination,
        key: &SigningKey,
        (job_id, event): (&belljar_contract::id::JobId, &JobEvent),
    ) -> Result<u16, String> {
        // The semaphore is never closed.
        let slots = self.slots_of(destination.origin());
        let _slot = slots.acquire().await.map_err(|error| error.to_string())?;
        let jobs = &self.workplace.jobs;
        let found = jobs.find(job_id).await.map_err(|error| crate::chain(&error))?;
        let job = found.ok_or_else(|| "the job is not kept any more".to_owned())?;
        let (jobs, event_told) = (jobs.clone(), event.clone());
        // A job's result may be long, so it is serialized apart from the runtime's threads.
        let body = apart(async move {
            let job = api::response(&jobs, job).await.map_err(|error| crate::chain(&error))?;
            let message = CallbackMessage { version: ApiVersion, event: event_told, job };
            serde_json::to_vec(&message).map_err(|error| error.to_string())
        });
        let body = body.await.map_err(|error| error.to_string())??;
        let message = Message { id: format!("{job_id}.{}", event.id), at: self.workplace.now(), body };
        self.sender.send(destination, &message, Some(key)).await.map_err(|error| crate::chain(&error))
    }
}

/// Returns a random duration between half of the pause and all of it, so that messages refused together are not retried
/// together.
fn jittered(pause: Duration) -> Duration {
    let (_, random) = uuid::Uuid::new_v4().as_u64_pair();
    let part = u32::try_from(random % 1_000).unwrap_or_default();
    pause / 2 + pause * part / 2_000
}
