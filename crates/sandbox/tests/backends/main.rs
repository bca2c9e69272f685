//! Which backend a category gets, and what is said when it gets none.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use belljar_contract::category::Category;
use belljar_contract::id::RunId;
use belljar_sandbox::backend::{Backend, BackendError, Sandbox, Wanted};
use belljar_sandbox::backends::{Backends, Makers};
use belljar_sandbox::clock::{Clock, ManualClock};
use belljar_sandbox::config::{BackendName, Config, Sandboxing, Strategy};
use belljar_sandbox::event::{EventQueue, EventSink};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

/// A backend that makes nothing.
#[derive(Debug, Default)]
struct Hollow {
    name: &'static str,
    sick: Option<&'static str>,
    /// Where those that clear away meet; alone they would wait for ever.
    meeting: Option<Arc<Barrier>>,
    panics: bool,
}

impl Backend for Hollow {
    fn name(&self) -> &'static str {
        self.name
    }

    fn health(&self) -> Result<(), BackendError> {
        match self.sick {
            Some(why) => Err(BackendError::Unavailable { backend: self.name, why: why.to_owned() }),
            None => Ok(()),
        }
    }

    fn create(&self, _: Wanted) -> Result<Box<dyn Sandbox>, BackendError> {
        Err(BackendError::Create("it is hollow".into()))
    }

    fn reconcile(&self) -> Result<Vec<RunId>, BackendError> {
        if let Some(meeting) = &self.meeting {
            meeting.wait();
        }
        assert!(!self.panics, "as it was told to");
        Ok(Vec::new())
    }
}

fn build(yaml: &str, makers: Makers<'_>) -> Backends {
    let sandboxing = Config::parse(yaml.as_bytes()).unwrap().sandboxing;
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let events: Arc<dyn EventSink> = Arc::new(EventQueue::with_room_for(10));
    Backends::build(sandboxing, makers, &clock, &events)
}

fn hollow(name: &'static str) -> impl FnOnce(&Sandboxing) -> Result<Box<dyn Backend>, BackendError> {
    move |_| Ok(Box::new(Hollow { name, ..Hollow::default() }))
}

fn sick(
    name: &'static str,
    why: &'static str,
) -> impl FnOnce(&Sandboxing) -> Result<Box<dyn Backend>, BackendError> {
    move |_| Ok(Box::new(Hollow { name, sick: Some(why), ..Hollow::default() }))
}

const LAYERED: &str = "sandboxing: {}";

#[test]
fn only_backends_that_are_named_are_made() {
    let made = AtomicUsize::new(0);
    let counted = |name| {
        let made = &made;
        move |_: &Sandboxing| {
            made.fetch_add(1, Ordering::SeqCst);
            hollow(name)(&Sandboxing::default())
        }
    };
    let makers = Makers::default()
        .with(BackendName::Native, counted("native"))
        .with(BackendName::Docker, counted("docker"))
        .with(BackendName::Subprocess, counted("subprocess"));
    let backends = build("sandboxing: {default_backend: native}", makers);
    assert_eq!(made.load(Ordering::SeqCst), 1);
    for category in Category::ALL {
        assert_eq!(backends.for_category(category).unwrap().backend.name(), "native");
    }
}

#[test]
fn a_category_without_its_backend_is_refused_and_the_others_go_on() {
    let makers = Makers::default()
        .with(BackendName::Subprocess, hollow("subprocess"))
        .with(BackendName::Docker, sick("docker", "no daemon answers at /run/docker.sock"));
    let backends = build(LAYERED, makers);
    assert_eq!(backends.for_category(Category::FileSystem).unwrap().backend.name(), "subprocess");
    assert_eq!(backends.for_category(Category::Mcp).unwrap().backend.name(), "subprocess");
    insta::assert_snapshot!(backends.for_category(Category::Terminal).unwrap_err(), @"the docker backend is not available: no daemon answers at /run/docker.sock; needed for code_execution, web, database, terminal, browser, desktop");
    assert_eq!(backends.all_missing(), [backends.for_category(Category::Web).unwrap_err()]);
}

#[test]
fn nothing_stands_in_for_a_backend_that_is_not_there() {
    let text = "sandboxing: {overrides: {web: docker, terminal: native}, docker: {image: x}}";
    let makers = Makers::default()
        .with(BackendName::Subprocess, |_| Err(BackendError::Create("no room".into())))
        .with(BackendName::Native, hollow("docker"))
        .with(BackendName::Docker, |_| panic!("as it was told to"));
    let backends = build(text, makers);
    let said: Vec<String> = backends.all_missing().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    the subprocess backend is not available: can't make a sandbox: no room; needed for file_system, version_control, design, communication, analytics, deployment, mcp, other, memory, ontology, external_data
    the docker backend is not available: making it panicked; needed for code_execution, web, database, browser, desktop
    the native backend is not available: what was made in its place is docker; needed for terminal
    ");
    for category in Category::ALL {
        assert!(backends.for_category(category).is_err(), "{category}");
    }
}

#[test]
fn each_backend_has_the_lifecycle_of_its_settings() {
    let text = "sandboxing: {overrides: {web: native}, docker: {lifecycle: {strategy: per-call}}}";
    let makers = Makers::default()
        .with(BackendName::Subprocess, hollow("subprocess"))
        .with(BackendName::Native, hollow("native"))
        .with(BackendName::Docker, hollow("docker"));
    let backends = build(text, makers);
    let strategy = |category| backends.for_category(category).unwrap().lifecycle.strategy();
    assert_eq!(strategy(Category::FileSystem), Strategy::PerCall);
    assert_eq!(strategy(Category::Web), Strategy::PerAgent);
    assert_eq!(strategy(Category::Terminal), Strategy::PerCall);
}

#[test]
fn backends_clear_away_at_the_same_time_and_one_that_fails_hinders_no_other() {
    let meeting = Arc::new(Barrier::new(3));
    let meets = |name, panics| {
        let meeting = Some(Arc::clone(&meeting));
        move |_: &Sandboxing| -> Result<Box<dyn Backend>, BackendError> {
            Ok(Box::new(Hollow { name, meeting, panics, ..Hollow::default() }))
        }
    };
    let makers = Makers::default()
        .with(BackendName::Subprocess, meets("subprocess", false))
        .with(BackendName::Native, meets("native", true))
        .with(BackendName::Docker, meets("docker", false));
    let cleared = build("sandboxing: {overrides: {web: native}}", makers).cleanup();
    assert!(cleared[&BackendName::Subprocess].is_ok() && cleared[&BackendName::Docker].is_ok());
    assert!(matches!(cleared[&BackendName::Native], Err(BackendError::Clear(_))));
}
