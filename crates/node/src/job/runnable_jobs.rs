//! Decides which jobs a node can run, of those in a database that several nodes share.
//!
//! ```text
//! waiting job ─► runs here? ─ yes ─► claimed
//!                   │ no
//!                   └─► runs at another instance? ─ yes ─► it waits for that one
//!                          │ no, for PATIENCE
//!                          └─► claimed, and ended with the reason
//! ```
//! Each instance announces its abilities. An instance without an announcement is assumed to run any job.

use super::NodeState;
use crate::images::{Image, OF_JOB};
use belljar_contract::image::ImageReference;
use belljar_contract::worker::assignment::{Assignment, NATIVE_IMAGE};
use belljar_policy::image::{ImagePattern, ImageRules};
use belljar_store::jobs::{Instance, JobFilter, JobRecord};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Images and models of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceCapabilities {
    /// True if the node's own programs run: its last canary sandbox succeeded.
    #[serde(default = "yes")]
    native: bool,
    images: Vec<String>,
    requires_digest: bool,
    models: Vec<String>,
}

/// Chooses the waiting jobs that an instance claims.
pub(super) struct JobSelector {
    workplace: Arc<NodeState>,
    unwanted: Mutex<UnrunnableJobs>,
}

/// Jobs that no instance can run, and since when.
#[derive(Debug, Default)]
struct UnrunnableJobs(HashMap<u64, Instant>);

fn yes() -> bool {
    true
}

/// Time that a job waits for an instance that can run it, such as one that is being restarted.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl InstanceCapabilities ===

impl InstanceCapabilities {
    /// Returns the current abilities of a node.
    pub(crate) fn of(workplace: &NodeState) -> Self {
        let rules = workplace.images.rules();
        let models = workplace.models.names();
        let images = rules.allowed.iter().map(ToString::to_string).collect();
        let native = workplace.canary.was_well();
        Self { native, images, requires_digest: rules.requires_digest, models }
    }

    /// Returns the text that is announced to other instances.
    pub(crate) fn announcement(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns true if a job's image and models are available there. Its other requirements are checked when it begins.
    fn can_run(&self, assignment: &Assignment) -> bool {
        self.has_image(assignment.sandbox.image.as_deref()) && self.has_models(assignment)
    }

    fn has_image(&self, image: Option<&str>) -> bool {
        // A job without an image gets the default of the node that claims it. Jobs are accepted with one.
        let image = match image {
            Some(NATIVE_IMAGE) => return self.native,
            Some(image) => image,
            None => return true,
        };
        let allowed = self.images.iter().filter_map(|text| ImagePattern::parse(text).ok()).collect();
        let rules = ImageRules { allowed, requires_digest: self.requires_digest };
        ImageReference::parse(image).is_ok_and(|image| rules.decide(image).is_ok())
    }

    fn has_models(&self, assignment: &Assignment) -> bool {
        let sandbox = &assignment.sandbox;
        let listed = sandbox.job_spec.as_ref().and_then(|spec| spec.job.inference.as_ref());
        match listed {
            Some(listed) => self.models.iter().any(|name| listed.allowed_models.contains(name)),
            None => !sandbox.use_inference || !self.models.is_empty(),
        }
    }
}

// === impl JobSelector ===

impl JobSelector {
    pub(super) fn new(workplace: Arc<NodeState>) -> Self {
        Self { workplace, unwanted: Mutex::default() }
    }
}

impl JobFilter for JobSelector {
    fn runs(&self, assignment: &Assignment) -> bool {
        let (sandbox, workplace) = (&assignment.sandbox, &self.workplace);
        let image = workplace.images.choose(sandbox.image.as_deref(), OF_JOB);
        // If sandboxes can't be made at the moment, each claim checks that again.
        let can_make = |image: Image| image != Image::Native || workplace.canary.was_well();
        image.is_ok_and(can_make) && workplace.models.allowed(sandbox).is_ok()
    }

    fn gives_up(&self, job: &JobRecord, assignment: &Assignment, others: &[Instance]) -> bool {
        let mut unwanted = self.unwanted.lock().unwrap_or_else(PoisonError::into_inner);
        let can_another = others.iter().any(|other| can_run(other, assignment));
        unwanted.is_over(job.number, can_another, Instant::now())
    }
}

fn can_run(instance: &Instance, assignment: &Assignment) -> bool {
    let announced = instance.abilities.as_deref().map(serde_json::from_str::<InstanceCapabilities>);
    // An older node announces nothing, and a newer one may announce more: both are assumed to run any job.
    !matches!(announced, Some(Ok(abilities)) if !abilities.can_run(assignment))
}

// === impl UnrunnableJobs ===

impl UnrunnableJobs {
    /// Returns true if no instance could run that job for [`PATIENCE`].
    fn is_over(&mut self, number: u64, can_another: bool, now: Instant) -> bool {
        // Forgets jobs that were canceled or claimed meanwhile.
        self.0.retain(|_, since| now.duration_since(*since) < 2 * PATIENCE);
        if can_another {
            self.0.remove(&number);
            return false;
        }
        now.duration_since(*self.0.entry(number).or_insert(now)) >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn assignment(sandbox: &serde_json::Value) -> Assignment {
        let id = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
        let text = json!({ "task_id": id, "job_id": id, "sandbox": sandbox }).to_string();
        Assignment::parse(text.as_bytes()).unwrap()
    }

    fn abilities(images: &[&str], models: &[&str]) -> InstanceCapabilities {
        let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
        InstanceCapabilities {
            native: true,
            images: texts(images),
            requires_digest: false,
            models: texts(models),
        }
    }

    #[test]
    fn instance_can_run_jobs_with_an_allowed_image_and_model() {
        let image = assignment(&json!({ "command": ["true"], "image": "debian:12" }));
        assert!(abilities(&["docker.io/library/debian:*"], &[]).can_run(&image));
        assert!(!abilities(&["alpine:*"], &[]).can_run(&image));
        assert!(!abilities(&[], &[]).can_run(&image));
        let pinned = InstanceCapabilities { requires_digest: true, ..abilities(&["debian:*"], &[]) };
        assert!(!pinned.can_run(&image));
        let native = assignment(&json!({ "command": ["true"], "image": "native" }));
        assert!(pinned.can_run(&native));
        assert!(!InstanceCapabilities { native: false, ..pinned }.can_run(&native));
        let models = assignment(&json!({ "command": ["true"], "use_inference": true }));
        assert!(abilities(&[], &["small"]).can_run(&models));
        assert!(!abilities(&[], &[]).can_run(&models));
    }

    #[test]
    fn instance_with_unknown_capabilities_may_run_any_job() {
        let job = assignment(&json!({ "command": ["true"], "image": "debian:12" }));
        let instance = |abilities: Option<String>| Instance {
            id: "i".to_owned(),
            node: "n".to_owned(),
            beat: 1,
            abilities,
        };
        assert!(can_run(&instance(None), &job));
        assert!(can_run(&instance(Some("[]".to_owned())), &job));
        assert!(!can_run(&instance(Some(abilities(&[], &[]).announcement())), &job));
        assert!(can_run(&instance(Some(abilities(&["debian:12"], &[]).announcement())), &job));
    }

    #[test]
    fn unrunnable_job_fails_after_a_delay_that_capability_resets() {
        let (mut unwanted, begun) = (UnrunnableJobs::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert!(!unwanted.is_over(1, false, begun));
        assert!(!unwanted.is_over(1, false, begun + PATIENCE - second));
        // An instance that can run it has appeared.
        assert!(!unwanted.is_over(1, true, begun + PATIENCE - second));
        assert!(!unwanted.is_over(1, false, begun + PATIENCE));
        assert!(!unwanted.is_over(2, false, begun + PATIENCE));
        assert!(unwanted.is_over(1, false, begun + 2 * PATIENCE));
    }
}
