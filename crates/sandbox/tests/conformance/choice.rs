//! The backends of a configuration, made on this host.

use crate::house::{House, run, state};
use belljar_confine::launcher::Launcher;
use belljar_contract::category::Category;
use belljar_sandbox::backends::Backends;
use belljar_sandbox::backends::here::Here;
use belljar_sandbox::clock::{Clock, ManualClock};
use belljar_sandbox::config::Config;
use belljar_sandbox::event::{EventQueue, EventSink};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::state::State;
use std::path::Path;
use std::sync::Arc;

/// What is tried once, whatever backends there are.
pub(crate) type Case = (&'static str, fn(&Arc<Launcher>));

pub(crate) const CASES: &[Case] = &[
    ("a_category_runs_where_it_should_or_says_what_is_missing", a_category_runs_where_it_should),
    ("what_is_written_reaches_the_backend", what_is_written_reaches_the_backend),
];

fn backends(launcher: &Arc<Launcher>, state: &Path, yaml: &str) -> Backends {
    let here = Here {
        launcher: Arc::clone(launcher),
        state: State::at(state),
        executable: std::env::current_exe().unwrap(),
        docker_socket: state.join("no-engine"),
    };
    let sandboxing = Config::parse(yaml.as_bytes()).unwrap().sandboxing;
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let events: Arc<dyn EventSink> = Arc::new(EventQueue::with_room_for(10));
    Backends::build(sandboxing, here.makers(), &clock, &events)
}

fn a_category_runs_where_it_should(launcher: &Arc<Launcher>) {
    let state = state();
    let yaml = "sandboxing:\n  overrides:\n    terminal: native\n";
    let backends = backends(launcher, state.path(), yaml);
    for (category, name) in [(Category::FileSystem, "subprocess"), (Category::Terminal, "native")] {
        let backend = &backends.for_category(category).unwrap().backend;
        assert_eq!(backend.name(), name);
        let sandbox = backend.create(House::wanted(WorkspaceChoice::Empty)).unwrap();
        assert_eq!(run(&*sandbox, "echo $((6 * 7))").stdout, "42\n");
    }
    let missing = backends.for_category(Category::CodeExecution).unwrap_err();
    let said = missing.to_string();
    assert!(said.starts_with("the docker backend is not available: "), "{said}");
    assert!(said.contains("no-engine") && said.contains("code_execution"), "{said}");
    assert!(!said.contains("terminal"), "{said}");
}

fn what_is_written_reaches_the_backend(launcher: &Arc<Launcher>) {
    let state = state();
    let yaml = "sandboxing:\n  subprocess:\n    env_allowlist: [PATH, CARGO_PKG_NAME]\n";
    let backends = backends(launcher, state.path(), yaml);
    let backend = &backends.for_category(Category::FileSystem).unwrap().backend;
    let sandbox = backend.create(House::wanted(WorkspaceChoice::Empty)).unwrap();
    let ran = run(&*sandbox, "echo $CARGO_PKG_NAME $LANG");
    assert_eq!(ran.stdout.trim(), std::env::var("CARGO_PKG_NAME").unwrap_or_default());
}
