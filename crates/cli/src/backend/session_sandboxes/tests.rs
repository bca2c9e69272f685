//! Tests of the sandboxes that a configuration yields for a session.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct AllowanceCommandLine {
    #[command(flatten)]
    allowance: AllowanceArguments,
}

fn said(options: &[&str]) -> AllowanceArguments {
    AllowanceCommandLine::try_parse_from([&["belljar"], options].concat()).unwrap().allowance
}

fn quarters(sandboxing: &str, options: &[&str]) -> SessionSandboxes {
    let config = format!("sandboxing: {sandboxing}\n");
    let config = belljar_sandbox::config::Config::parse(config.as_bytes()).unwrap();
    SessionSandboxes::configured(&config.sandboxing, Path::new("/run/engine.sock"), &said(options)).unwrap()
}

/// Returns the categories of each backend, in order.
fn divided(quarters: &SessionSandboxes) -> Vec<(BackendName, String)> {
    let each = quarters.divisions.iter();
    each.map(|SandboxGroup { backend, categories }| (*backend, in_words(categories))).collect()
}

#[test]
fn categories_with_equal_sandbox_settings_share_one_sandbox() {
    use BackendName::{Docker, Native, Subprocess};
    let owned = |expected: &[(BackendName, &str)]| {
        expected.iter().map(|(backend, categories)| (*backend, (*categories).to_owned())).collect::<Vec<_>>()
    };
    for (sandboxing, expected) in [
        // Default values, without a configuration.
        ("{}", &[(Docker, "code_execution, terminal"), (Subprocess, "file_system, version_control")][..]),
        ("{default_backend: native}", &[]),
        ("{default_backend: docker}", &[]),
        (
            "{default_backend: native, overrides: {git: subprocess}}",
            &[(Native, "file_system, code_execution, terminal"), (Subprocess, "version_control")],
        ),
        (
            "{docker: {network_overrides: {terminal: bridge}}}",
            &[(Docker, "terminal"), (Docker, "code_execution"), (Subprocess, "file_system, version_control")],
        ),
        (
            "{default_backend: docker, docker: {runtime_overrides: {code_execution: runsc}}}",
            &[(Docker, "file_system, version_control, terminal"), (Docker, "code_execution")],
        ),
        // An override for a category without a workspace adds no sandbox.
        ("{default_backend: native, overrides: {web: docker, database: subprocess}}", &[]),
    ] {
        let mut found = divided(&quarters(sandboxing, &[]));
        let mut expected = owned(expected);
        for (_, categories) in found.iter_mut().chain(&mut expected) {
            let mut sorted: Vec<_> = categories.split(", ").collect();
            sorted.sort_unstable();
            *categories = sorted.join(", ");
        }
        assert_eq!(found, expected, "{sandboxing}");
    }
}

#[test]
fn command_line_limits_override_the_configured_sandbox_section() {
    let sandboxing = "{required: [seccomp], subprocess: {timeout_seconds: 7, required: [landlock]}, docker: {image: 'house/tools:1', \
                      memory_limit: 64m, pids_limit: 30, timeout_seconds: 9, network_overrides: {terminal: bridge}, \
                      runtime_overrides: {terminal: runsc}, lifecycle: {strategy: per-call}}}";
    let all = quarters(sandboxing, &["--pids", "20", "--require", "no_new_privs"]);
    let [terminal, code, files] = all.quarters.as_slice() else { panic!("{all:?}") };
    let container = |quarter: &SandboxSettings| match &quarter.backend {
        BackendChoice::Docker { config, socket } => {
            (config.image.clone(), config.runtime.clone(), socket.display().to_string())
        }
        other => panic!("{other:?}"),
    };
    let expected = |runtime: Option<&str>| {
        ("house/tools:1".to_owned(), runtime.map(str::to_owned), "/run/engine.sock".to_owned())
    };
    assert_eq!((container(terminal), container(code)), (expected(Some("runsc")), expected(None)));
    assert_eq!((terminal.has_web, code.has_web, files.has_web), (true, false, false));
    assert_eq!((terminal.is_seen, code.is_seen, files.is_seen), (true, true, false));
    assert_eq!(terminal.lifecycle.strategy, belljar_sandbox::config::Strategy::PerCall);
    assert_eq!((terminal.limits.memory_bytes, terminal.limits.processes), (Some(64 << 20), 20));
    assert_eq!((files.limits.memory_bytes, files.limits.processes), (None, 20));
    let names =
        |quarter: &SandboxSettings| quarter.required.names().map(str::to_owned).collect::<BTreeSet<_>>();
    let of = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(names(terminal), of(&["seccomp", "no_new_privs", "process_limit"]));
    assert_eq!(names(files), of(&["seccomp", "landlock", "no_new_privs", "process_limit"]));
    assert_eq!(all.longest_call(Category::Terminal), Duration::from_secs(9));
    assert_eq!(all.longest_call(Category::VersionControl), Duration::from_secs(7));
    let in_process =
        all.works_in().into_iter().filter(|(_, works_in)| *works_in == ExecutionLocation::Process);
    let in_process: Vec<_> = in_process.map(|(category, _)| category).collect();
    assert_eq!(in_process, [Category::FileSystem, Category::VersionControl]);
    let writable = quarters("{docker: {mount_mode: rw}}", &[]);
    assert!(writable.quarters.iter().all(|quarter| !quarter.is_seen));
}

#[test]
fn backend_that_cannot_enforce_restrictions_is_replaced_by_native_with_its_limits() {
    let list = ProgramList::new(["sh".to_owned()]).unwrap();
    let sandboxing =
        "{docker: {memory_limit: 64m, timeout_seconds: 9}, native: {memory_limit: 1g, required: [landlock]}}";
    let configured = quarters(sandboxing, &[]);
    let names =
        |quarters: &SessionSandboxes| divided(quarters).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let held = configured.holding(Some(&list), None).unwrap();
    assert_eq!(names(&held), [BackendName::Native, BackendName::Native]);
    let [code, files] = held.quarters.as_slice() else { panic!("{held:?}") };
    assert_eq!((code.limits.memory_bytes, code.longest_call), (Some(64 << 20), Duration::from_secs(9)));
    assert!(code.is_seen && !code.has_web && !files.is_seen);
    assert_eq!(
        files.limits.memory_bytes,
        Some(1 << 30),
        "a backend without limits of its own has none to keep"
    );
    assert!(code.required.names().any(|name| name == "landlock"));
    assert!(held.works_in().values().all(|works_in| *works_in == ExecutionLocation::Container));
    let notice = held.notice().unwrap();
    assert!(notice.contains("code_execution, terminal in native, because docker can't hold"), "{notice}");
    assert_eq!(held.holding(Some(&list), None).unwrap().notice(), None, "it is reported once");
    // Control: without restrictions nothing moves, and contained code moves only out of backends that don't contain it.
    assert_eq!(names(&configured.holding(None, None).unwrap()), names(&configured));
    let contained = configured.holding(None, Some(CodeIsolation::Containerized)).unwrap();
    assert_eq!(names(&contained), names(&configured));
    let weaker = quarters("{overrides: {terminal: subprocess}}", &[]);
    let contained = weaker.holding(None, Some(CodeIsolation::Containerized)).unwrap();
    assert!(names(&contained).contains(&BackendName::Native), "{contained:?}");
}
