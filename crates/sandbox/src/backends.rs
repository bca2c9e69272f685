//! The backends of a configuration: each that is named is made and tried once, at the start.
//!
//! One that can't be had spoils the categories that need it, and those only. Nothing ever falls back to another one: a
//! category runs where its configuration says, or not at all.

pub mod chosen;
pub mod here;

use crate::backend::{Backend, BackendError, with_causes};
use crate::clock::Clock;
use crate::config::{BackendName, LifecycleConfig, Sandboxing, Strategy};
use crate::event::EventSink;
use crate::lifecycle::{Lifecycle, configured};
use belljar_contract::category::Category;
use belljar_contract::id::RunId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The backends that a configuration names.
#[derive(Debug)]
pub struct Backends {
    sandboxing: Sandboxing,
    made: BTreeMap<BackendName, Result<Made, Arc<str>>>,
}

/// A backend that can be used.
#[derive(Debug, Clone)]
pub struct Made {
    /// It.
    pub backend: Arc<dyn Backend>,
    /// How long its sandboxes live.
    pub lifecycle: Arc<dyn Lifecycle>,
}

/// How backends are made, by name. Each is asked at most once, and only if its backend is named.
#[derive(Default)]
pub struct Makers<'m>(BTreeMap<BackendName, Maker<'m>>);

type Maker<'m> = Box<dyn FnOnce(&Sandboxing) -> Result<Box<dyn Backend>, BackendError> + Send + 'm>;

/// A category has no backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {backend} backend is not available: {why}; needed for {}", in_words(.categories))]
pub struct BackendMissing {
    /// Its name.
    pub backend: BackendName,
    /// What is missing.
    pub why: Arc<str>,
    /// What can't be done without it.
    pub categories: Vec<Category>,
}

/// What became of one backend's leftovers.
pub type Cleared = BTreeMap<BackendName, Result<Vec<RunId>, BackendError>>;

// === impl Backends ===

impl Backends {
    /// Makes and tries every backend that is named, all at the same time.
    pub fn build(
        sandboxing: Sandboxing,
        makers: Makers<'_>,
        clock: &Arc<dyn Clock>,
        events: &Arc<dyn EventSink>,
    ) -> Self {
        let Makers(mut makers) = makers;
        let named = sandboxing.named_backends();
        let made = std::thread::scope(|scope| {
            let begun: Vec<_> = named
                .into_iter()
                .map(|name| {
                    let (maker, sandboxing) = (makers.remove(&name), &sandboxing);
                    (name, scope.spawn(move || make(name, maker, sandboxing)))
                })
                .collect();
            let finished = begun.into_iter().map(|(name, thread)| {
                let made = thread.join().unwrap_or_else(|_| Err("making it panicked".into()));
                (name, made)
            });
            finished.collect::<Vec<_>>()
        });
        let with_lifecycle = made.into_iter().map(|(name, backend)| {
            let config = lifecycle_of(&sandboxing, name);
            let lifecycle = || configured(&config, Arc::clone(clock), Arc::clone(events));
            (name, backend.map(|backend| Made { backend, lifecycle: lifecycle() }))
        });
        let made = with_lifecycle.collect();
        Self { sandboxing, made }
    }

    /// What the backends are for.
    pub fn sandboxing(&self) -> &Sandboxing {
        &self.sandboxing
    }

    /// The backend for a category.
    ///
    /// # Errors
    /// [`BackendMissing`] if it can't be had.
    pub fn for_category(&self, category: Category) -> Result<&Made, BackendMissing> {
        let name = self.sandboxing.backend_for(category);
        match self.made.get(&name) {
            Some(Ok(made)) => Ok(made),
            Some(Err(why)) => Err(self.missing(name, Arc::clone(why))),
            None => Err(self.missing(name, "it was never made".into())),
        }
    }

    /// Every backend that is needed and can't be had.
    pub fn all_missing(&self) -> Vec<BackendMissing> {
        let failed = self.made.iter().filter_map(|(name, made)| Some((*name, made.as_ref().err()?)));
        failed.map(|(name, why)| self.missing(name, Arc::clone(why))).collect()
    }

    /// Destroys every sandbox and clears away what is left, of all backends at the same time. What goes wrong with one
    /// hinders no other.
    pub fn cleanup(&self) -> Cleared {
        std::thread::scope(|scope| {
            let usable = self.made.iter().filter_map(|(name, made)| Some((*name, made.as_ref().ok()?)));
            let begun: Vec<_> = usable
                .map(|(name, made)| {
                    let clear = || {
                        made.lifecycle.cleanup_all();
                        made.backend.reconcile()
                    };
                    (name, scope.spawn(clear))
                })
                .collect();
            let finished = begun.into_iter().map(|(name, thread)| {
                let panicked = |_| Err(BackendError::Clear("clearing away panicked".into()));
                (name, thread.join().unwrap_or_else(panicked))
            });
            finished.collect()
        })
    }

    fn missing(&self, backend: BackendName, why: Arc<str>) -> BackendMissing {
        BackendMissing { backend, why, categories: self.sandboxing.categories_of(backend) }
    }
}

fn make(
    name: BackendName,
    maker: Option<Maker<'_>>,
    sandboxing: &Sandboxing,
) -> Result<Arc<dyn Backend>, Arc<str>> {
    let Some(maker) = maker else { return Err("this belljar has no such backend".into()) };
    let tried = maker(sandboxing).and_then(|backend| backend.health().map(|()| backend));
    match tried {
        Ok(backend) if backend.name() != name.as_str() => {
            Err(format!("what was made in its place is {}", backend.name()).into())
        }
        Ok(backend) => Ok(Arc::from(backend)),
        // It would say the name once more.
        Err(BackendError::Unavailable { why, .. }) => Err(why.into()),
        Err(error) => Err(with_causes(&error).into()),
    }
}

/// Sandboxes of subprocesses are made in no time, and nothing in them is worth keeping.
fn lifecycle_of(sandboxing: &Sandboxing, name: BackendName) -> LifecycleConfig {
    match name {
        BackendName::Docker => sandboxing.docker.lifecycle,
        BackendName::Native => sandboxing.native.lifecycle,
        BackendName::Subprocess => {
            LifecycleConfig { strategy: Strategy::PerCall, ..LifecycleConfig::default() }
        }
    }
}

// === impl Makers ===

impl<'m> Makers<'m> {
    /// With a way to make one more.
    #[must_use]
    pub fn with(
        mut self,
        name: BackendName,
        maker: impl FnOnce(&Sandboxing) -> Result<Box<dyn Backend>, BackendError> + Send + 'm,
    ) -> Self {
        self.0.insert(name, Box::new(maker));
        self
    }
}

impl fmt::Debug for Makers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn in_words(categories: &[Category]) -> String {
    match categories {
        [] => "no category".to_owned(),
        _ => categories.iter().map(|category| category.as_str()).collect::<Vec<_>>().join(", "),
    }
}
