//! Records a job's events while it runs: in batches, at most every [`GATHERED`], and up to [`MOST_EVENTS`].

use super::NodeState;
use super::attempt::{StopReason, StopRequest, insistently};
use belljar_contract::id::JobId;
use belljar_contract::worker::event::JobEventKind;
use belljar_policy::lifecycle::Fence;
use belljar_store::jobs::{ChangeError, JobNews, RunStart};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// An event of a run.
#[derive(Debug)]
pub(super) enum RunEvent {
    Started(RunStart),
    Happened(Timestamp, JobEventKind),
}

/// Records the events of one job, for the claim that it runs by.
pub(super) struct JobRecorder {
    workplace: Arc<NodeState>,
    claim: (JobId, Fence),
    stop: StopRequest,
    kept: usize,
}

/// Time for which events are batched. Events at the end are recorded together with the job's end.
const GATHERED: Duration = Duration::from_millis(50);

/// Maximum number of recorded events.
const MOST_EVENTS: usize = 10_000;

// === impl JobRecorder ===

impl JobRecorder {
    pub(super) fn new(workplace: Arc<NodeState>, claim: (JobId, Fence), stop: StopRequest) -> Self {
        Self { workplace, claim, stop, kept: 0 }
    }

    /// Records events until the channel is closed; returns those that are not recorded then.
    pub(super) async fn run(mut self, mut hears: UnboundedReceiver<RunEvent>) -> JobNews {
        loop {
            let Some(first) = hears.recv().await else { return JobNews::default() };
            let mut portion = vec![first];
            let is_over = self.gather(&mut hears, &mut portion).await;
            let portion = self.keep(portion);
            if is_over {
                return told(portion);
            }
            self.record(told(portion)).await;
        }
    }

    /// Collects events for a while. Returns true if the channel is closed.
    async fn gather(&self, hears: &mut UnboundedReceiver<RunEvent>, portion: &mut Vec<RunEvent>) -> bool {
        let pause = tokio::time::sleep(GATHERED);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => return false,
                heard = hears.recv() => match heard {
                    Some(heard) => portion.push(heard),
                    None => return true,
                },
            }
        }
    }

    /// Drops events beyond the limit, with a `Truncated` event in place of the first.
    fn keep(&mut self, portion: Vec<RunEvent>) -> Vec<RunEvent> {
        let mut kept = Vec::with_capacity(portion.len());
        for heard in portion {
            let (at, happening) = match heard {
                RunEvent::Happened(at, happening) if !matches!(happening, JobEventKind::Extension { .. }) => {
                    (at, happening)
                }
                // Starts and extensions decide about a job's deadline, and are few.
                always => {
                    kept.push(always);
                    continue;
                }
            };
            self.kept += 1;
            match self.kept.cmp(&MOST_EVENTS) {
                std::cmp::Ordering::Less => kept.push(RunEvent::Happened(at, happening)),
                std::cmp::Ordering::Equal => kept.push(RunEvent::Happened(at, JobEventKind::Truncated)),
                std::cmp::Ordering::Greater => {}
            }
        }
        kept
    }

    async fn record(&self, told: JobNews) {
        let (job_id, fence) = &self.claim;
        let tell = || self.workplace.jobs.tell(job_id, *fence, told.clone());
        match insistently(&self.workplace.stop, ChangeError::is_passing, tell).await {
            Ok(()) => self.workplace.hub.ring(job_id),
            // Another instance has the job, or it is over: the run here has to stop.
            Err(ChangeError::Refused(_) | ChangeError::Unknown { .. }) => self.stop.because(StopReason::Lost),
            Err(error) => {
                tracing::warn!(%job_id, error = crate::chain(&error), "events of a job are not recorded");
            }
        }
    }
}

fn told(portion: Vec<RunEvent>) -> JobNews {
    let mut told = JobNews::default();
    for heard in portion {
        match heard {
            RunEvent::Started(started) => told.started = Some(started),
            RunEvent::Happened(at, happening) => told.happenings.push((at, happening)),
        }
    }
    told
}
