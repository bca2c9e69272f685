//! Tests of the walls of the subprocess backend: the result of each attempt behind them, and, as its control, without them.
//!
//! Verdicts are read outside of the sandbox wherever something outside can observe them.

use crate::BackendCase;
use crate::house::{BackendFixture, ProgramRun, program, run, start, wait};
use belljar_confine::plan;
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::isolation::RequiredLayers;
use belljar_files::host_path::HostPath;
use belljar_sandbox::backend::{Backend, BackendError, Sandbox, SandboxRequest};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_sandbox::state::StateDirectory;
use belljar_sandbox::subprocess::{SubprocessBackend, SubprocessSettings, SupervisedWalls};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const CASES: &[BackendCase] = &[
    ("files_outside_are_neither_read_nor_written", files_outside_are_neither_read_nor_written),
    ("what_is_lent_is_read_and_not_written", what_is_lent_is_read_and_not_written),
    ("permissions_owners_and_times_of_files_outside_stay", permissions_owners_and_times_stay),
    ("attributes_of_files_outside_stay", attributes_of_files_outside_stay),
    ("a_working_directory_is_in_the_workspace_wherever_links_lead", working_directories_are_in_the_workspace),
    ("a_daemon_that_has_left_everything_ends_with_its_sandbox", a_daemon_ends_with_its_sandbox),
    ("no_network_is_reached", no_network_is_reached),
    ("no_local_socket_is_reached", no_local_socket_is_reached),
    ("other_processes_of_the_user_are_neither_signalled_nor_looked_into", other_processes_are_left_alone),
    ("variables_of_the_host_come_by_the_lists_alone", variables_come_by_the_lists_alone),
    ("a_search_path_holds_no_directory_that_only_looks_safe", a_search_path_holds_no_spoof),
    ("out_of_time_everything_of_a_program_is_killed", out_of_time_everything_is_killed),
    ("a_wall_that_is_missing_is_reported_and_missed", a_wall_that_is_missing_is_reported_and_missed),
];

pub(crate) const NONE: SupervisedWalls = SupervisedWalls { landlock: false, seccomp: false };
const LANDLOCK: SupervisedWalls = SupervisedWalls { landlock: true, seccomp: false };
pub(crate) const SECCOMP: SupervisedWalls = SupervisedWalls { landlock: false, seccomp: true };

/// A backend and somewhere to be outside.
pub(crate) struct EscapeFixture {
    state: TempDir,
    pub(crate) outside: TempDir,
    settings: SubprocessSettings,
    asked: BTreeMap<String, String>,
}

// === impl EscapeFixture ===

impl EscapeFixture {
    pub(crate) fn new() -> Self {
        let settings = SubprocessSettings::default();
        let folder = || tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
        Self { state: folder(), outside: folder(), settings, asked: BTreeMap::new() }
    }

    fn backend(&self, walls: SupervisedWalls) -> SubprocessBackend {
        let host = [("PATH", "/usr/bin:/bin"), ("LANG", "xx_XX"), ("API_TOKEN", "secret"), ("OTHER", "1")];
        let host = host.map(|(name, value)| (name.into(), value.into())).into();
        let executable = std::env::current_exe().unwrap();
        let state = StateDirectory::at(self.state.path());
        SubprocessBackend::new(executable, state, self.settings.clone())
            .with_walls(walls)
            .with_environment(host)
    }

    fn create(
        &self,
        walls: SupervisedWalls,
        change: impl FnOnce(&mut SandboxRequest),
    ) -> Result<Box<dyn Sandbox>, BackendError> {
        let provision = Provision { env: self.asked.clone(), ..Provision::default() };
        let mut wanted = SandboxRequest { provision, ..SandboxRequest::default() };
        change(&mut wanted);
        self.backend(walls).create(wanted)
    }

    pub(crate) fn sandbox(&self, walls: SupervisedWalls) -> Box<dyn Sandbox> {
        self.create(walls, |_| ()).unwrap()
    }

    pub(crate) fn run(&self, walls: SupervisedWalls, script: &str) -> ProgramRun {
        run(&*self.sandbox(walls), script)
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.outside.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

fn landlock_is_there(at_least: u32, what: &str) -> bool {
    let is_there = belljar_confine::landlock_abi() >= at_least;
    if !is_there {
        skip(
            "conformance, walls of subprocess, in part",
            &format!("this kernel's Landlock can't refuse {what}"),
        );
    }
    is_there
}

fn files_outside_are_neither_read_nor_written(_: &BackendFixture) {
    if !landlock_is_there(3, "files") {
        return;
    }
    let scene = EscapeFixture::new();
    let secret = scene.file("secret", "content that no sandbox may read");
    let others = scene.sandbox(SupervisedWalls::default());
    run(&*others, "echo another > theirs");
    let theirs = scene.state.path().join("runs").join(others.id().as_str()).join("private/workspace/theirs");
    for path in [secret.as_str(), theirs.to_str().unwrap(), "/proc/1/cmdline", "/etc/shadow"] {
        let sealed = scene.run(SupervisedWalls::default(), &format!("cat {path}; cat < {path}"));
        assert_eq!((sealed.outcome, sealed.stdout.as_str()), (sealed.outcome, ""), "{path}");
        assert!(sealed.stderr.contains("ermission denied"), "{path}: {}", sealed.stderr);
        // Whatever this user can read at all.
        if std::fs::read(path).is_ok() {
            assert_ne!(scene.run(NONE, &format!("cat {path}")).stdout, "", "{path}");
        }
    }
    for (attempt, undone) in [
        (format!("echo x > {secret}"), true),
        (format!("echo x >> {secret}"), true),
        (format!("rm -f {secret}"), true),
        (format!("mv {secret} ."), true),
        (format!("ln {secret} linked"), true),
        (format!("touch {}/new", scene.outside.path().display()), false),
        (format!("mkdir {}/new", scene.outside.path().display()), false),
    ] {
        let picture = || {
            let names =
                std::fs::read_dir(scene.outside.path()).unwrap().map(|entry| entry.unwrap().file_name());
            (names.collect::<std::collections::BTreeSet<_>>(), std::fs::read_to_string(&secret).ok())
        };
        let before = picture();
        assert_ne!(
            scene.run(SupervisedWalls::default(), &attempt).outcome,
            ProgramOutcome::Exited(0),
            "{attempt}"
        );
        assert_eq!(picture(), before, "{attempt}");
        assert_eq!(scene.run(NONE, &attempt).outcome, ProgramOutcome::Exited(0), "{attempt}");
        if undone {
            std::fs::write(&secret, "content that no sandbox may read").unwrap();
        }
        let _ = std::fs::remove_dir(scene.outside.path().join("new"));
        let _ = std::fs::remove_file(scene.outside.path().join("new"));
    }
}

fn what_is_lent_is_read_and_not_written(_: &BackendFixture) {
    if !landlock_is_there(3, "files") {
        return;
    }
    let scene = EscapeFixture::new();
    let lent = scene.file("lent", "for you");
    let lend = |inside: &str, walls| {
        let path = HostPath::resolve(&lent).unwrap();
        let inside = inside.trim_start_matches('/').to_owned();
        scene.create(walls, |wanted| wanted.provision.lent.push(belljar_sandbox::spec::Lent { path, inside }))
    };
    let sandbox = lend(&lent, SupervisedWalls::default()).unwrap();
    assert_eq!(run(&*sandbox, &format!("cat {lent}")).stdout, "for you");
    assert_ne!(run(&*sandbox, &format!("echo x > {lent}")).outcome, ProgramOutcome::Exited(0));
    assert_eq!(std::fs::read_to_string(&lent).unwrap(), "for you");
    // It is not shown at another path than the requested one.
    assert!(matches!(lend("/opt/elsewhere", SupervisedWalls::default()), Err(BackendError::Create(_))));
    assert_eq!(run(&*scene.sandbox(NONE), &format!("echo x > {lent}")).outcome, ProgramOutcome::Exited(0));
}

fn permissions_owners_and_times_stay(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let secret = scene.file("secret", "content that no sandbox may read");
    let (outside, link) = (scene.outside.path().display().to_string(), scene.outside.path().join("link"));
    std::os::unix::fs::symlink("secret", &link).unwrap();
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let picture = || {
        [Path::new(&secret), scene.outside.path(), link.as_path()].map(|path| {
            let found = std::fs::symlink_metadata(path).unwrap();
            // Whatever else of it changes, this does.
            (found.mode(), found.uid(), found.gid(), found.ctime(), found.ctime_nsec())
        })
    };
    let lent = HostPath::resolve(&secret).unwrap();
    for attempt in [
        format!("chmod 777 {secret}"),
        format!("cd {outside} && chmod 777 secret"),
        format!("ln -s {secret} way && chmod 777 way"),
        format!("ln -s {outside} way && chmod 777 way/secret"),
        format!("chmod 777 {outside}"),
        format!("touch -d 2001-02-03 {secret}"),
        format!("touch -h -d 2001-02-03 {}", link.display()),
        format!("perl -e 'utime(1, 1, \"{secret}\") or die'"),
        // Reading is all that it was lent for, and all that these calls need.
        format!("perl -e 'open(F, \"<\", \"{secret}\") or die; chmod(0777, *F) or die'"),
        format!("perl -e 'open(F, \"<\", \"{secret}\") or die; utime(2, 2, *F) or die'"),
    ] {
        let before = picture();
        let lend = |wanted: &mut SandboxRequest| {
            let inside = secret.trim_start_matches('/').to_owned();
            wanted.provision.lent.push(belljar_sandbox::spec::Lent { path: lent.clone(), inside });
        };
        let sealed = run(&*scene.create(SupervisedWalls::default(), lend).unwrap(), &attempt);
        assert_ne!(sealed.outcome, ProgramOutcome::Exited(0), "{attempt}");
        assert_eq!(picture(), before, "{attempt}");
        let free = run(&*scene.create(NONE, lend).unwrap(), &attempt);
        assert_eq!(free.outcome, ProgramOutcome::Exited(0), "{attempt}: {}", free.stderr);
        assert_ne!(picture(), before, "{attempt}");
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(scene.outside.path(), PermissionsExt::from_mode(0o700)).unwrap();
    }
    // The sandbox's own files can be changed as anywhere.
    for (change, expected) in [
        ("chmod 640 file && stat -c %a file", "640"),
        ("chmod a+x below && cd below && chmod 711 . && stat -c %a .", "711"),
        ("touch -d @5.25 file && stat -c %.2Y file", "5.25"),
        ("touch -h -d @6 link && stat -c %Y link", "6"),
        ("chmod 604 link && stat -c %a file", "604"),
        ("perl -e 'open(F, \"<\", \"file\") or die; chmod(0620, *F) or die' && stat -c %a file", "620"),
        ("perl -e 'utime(7, 8, \"file\") or die' && stat -c %X,%Y file", "7,8"),
        ("cp -p file \"$TMPDIR\"/copied && stat -c %Y \"$TMPDIR\"/copied", "8"),
        ("tar -cf all.tar file link && rm file link && tar -xpf all.tar && stat -c %a,%Y file", "620,8"),
    ] {
        let made = "test -e file || { mkdir below; touch -d @8 file; chmod 620 file; ln -s file link; }";
        let ran = scene.run(SupervisedWalls::default(), &format!("{made}; {change}"));
        assert_eq!(
            (ran.outcome, ran.stdout.trim()),
            (ProgramOutcome::Exited(0), expected),
            "{change}: {}",
            ran.stderr
        );
    }
    let owned = scene.run(
        SupervisedWalls::default(),
        &format!("touch file && chown {uid}:{gid} file && chown 12345 file"),
    );
    assert_eq!(owned.outcome, ProgramOutcome::Exited(1));
    assert!(
        owned.stderr.contains("not permitted") && !owned.stderr.contains(&format!("{uid}:{gid}")),
        "{}",
        owned.stderr
    );
}

fn attributes_of_files_outside_stay(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let secret = scene.file("secret", "content that no sandbox may read");
    let mark = format!("chattr +d {secret}");
    if !Command::new("sh")
        .args(["-c", &format!("{mark} && chattr -d {secret}")])
        .output()
        .unwrap()
        .status
        .success()
    {
        return skip(
            "conformance, walls of subprocess, in part",
            "this file system or machine has no file attributes",
        );
    }
    let lend = |wanted: &mut SandboxRequest| {
        let inside = secret.trim_start_matches('/').to_owned();
        wanted
            .provision
            .lent
            .push(belljar_sandbox::spec::Lent { path: HostPath::resolve(&secret).unwrap(), inside });
    };
    let is_marked = || {
        let told = Command::new("lsattr").arg(&secret).output().unwrap().stdout;
        String::from_utf8(told).unwrap().split('/').next().unwrap().contains('d')
    };
    assert_ne!(
        run(&*scene.create(SupervisedWalls::default(), lend).unwrap(), &mark).outcome,
        ProgramOutcome::Exited(0)
    );
    assert!(!is_marked());
    assert_eq!(run(&*scene.create(NONE, lend).unwrap(), &mark).outcome, ProgramOutcome::Exited(0));
    assert!(is_marked());
}

fn working_directories_are_in_the_workspace(_: &BackendFixture) {
    let mut scene = EscapeFixture::new();
    let workspace = scene.outside.path().join("workspace");
    std::fs::create_dir_all(workspace.join("inside/deep")).unwrap();
    std::os::unix::fs::symlink(scene.state.path(), workspace.join("out")).unwrap();
    std::os::unix::fs::symlink("..", workspace.join("up")).unwrap();
    std::os::unix::fs::symlink("inside/deep", workspace.join("in")).unwrap();
    let begun = |scene: &EscapeFixture, directory: &str| {
        let path = HostPath::resolve(&workspace).unwrap();
        let sandbox = scene
            .create(SupervisedWalls::default(), |wanted| wanted.workspace = WorkspaceChoice::Direct(path));
        let program = Program { directory: directory.to_owned(), ..program(&["true"]) };
        let nothing = || crate::house::nothing();
        let sandbox = sandbox.unwrap();
        let started = sandbox.exec(&program, plan::Stdio::Descriptors([nothing(), nothing(), nothing()]));
        started.map(|mut execution| wait(execution.as_mut()))
    };
    let own = workspace.display().to_string();
    for directory in
        ["/workspace", "/workspace/in", "/workspace/inside/..", own.as_str(), &format!("{own}/inside")]
    {
        assert_eq!(begun(&scene, directory).unwrap(), ProgramOutcome::Exited(0), "{directory}");
    }
    let outside = scene.outside.path().display().to_string();
    for directory in
        ["/workspace/out", "/workspace/up", "/workspace/..", "/workspace/inside/../..", "/etc", "/", &outside]
    {
        let refused = begun(&scene, directory);
        assert!(matches!(refused, Err(BackendError::NotStarted { .. })), "{directory}: {refused:?}");
    }
    scene.settings.workspace_only = false;
    assert_eq!(begun(&scene, "/etc").unwrap(), ProgramOutcome::Exited(0));
}

fn a_daemon_ends_with_its_sandbox(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let sandbox = scene.sandbox(SupervisedWalls::default());
    // A process forked twice, in a session of its own, its parents long gone.
    let daemon = "setsid sh -c '(trap \"\" TERM HUP INT; echo $$ > /dev/null; sh -c \"echo \\$\\$ > daemon; exec sleep 600\" &) ' \
                  > /dev/null 2>&1 < /dev/null";
    assert_eq!(run(&*sandbox, daemon).outcome, ProgramOutcome::Exited(0));
    let file = scene.state.path().join("runs").join(sandbox.id().as_str()).join("private/workspace/daemon");
    until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let pid = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let lives =
        || std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\x00600"));
    until(lives);
    assert_eq!(sandbox.stats().unwrap().processes, 1);
    sandbox.destroy().unwrap();
    assert!(!lives());
}

fn no_network_is_reached(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let attempt = format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{}'", listener.local_addr().unwrap().port());
    let came = || listener.accept().is_ok();
    let mut walls = vec![SupervisedWalls::default(), SECCOMP];
    walls.extend(landlock_is_there(4, "connections").then_some(LANDLOCK));
    for walls in walls {
        assert_ne!(scene.run(walls, &attempt).outcome, ProgramOutcome::Exited(0));
        assert!(!came(), "{walls:?}");
    }
    assert_eq!(scene.run(NONE, &attempt).outcome, ProgramOutcome::Exited(0));
    assert!(came());
    let datagram = "bash -c 'echo x > /dev/udp/127.0.0.1/9'";
    assert_ne!(scene.run(SupervisedWalls::default(), datagram).outcome, ProgramOutcome::Exited(0));
    assert_eq!(scene.run(NONE, datagram).outcome, ProgramOutcome::Exited(0));
}

fn no_local_socket_is_reached(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    if !Path::new("/usr/bin/perl").exists() {
        return skip(
            "conformance, walls of subprocess, in part",
            "there is no perl to try local sockets with",
        );
    }
    let path = scene.outside.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let connect = format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die; connect(S, sockaddr_un(\"{}\")) or die'",
        path.display()
    );
    assert_ne!(scene.run(SupervisedWalls::default(), &connect).outcome, ProgramOutcome::Exited(0));
    assert!(listener.accept().is_err());
    assert_eq!(scene.run(NONE, &connect).outcome, ProgramOutcome::Exited(0));
    assert!(listener.accept().is_ok());
    let pair = |kind| format!("perl -MSocket -e 'socketpair(A, B, AF_UNIX, {kind}, 0) or die'");
    assert_eq!(
        scene.run(SupervisedWalls::default(), &pair("SOCK_STREAM")).outcome,
        ProgramOutcome::Exited(0)
    );
    assert_ne!(scene.run(SupervisedWalls::default(), &pair("SOCK_DGRAM")).outcome, ProgramOutcome::Exited(0));
}

fn other_processes_are_left_alone(_: &BackendFixture) {
    if !landlock_is_there(6, "signals") {
        return;
    }
    let scene = EscapeFixture::new();
    let mut command = Command::new("sleep");
    command.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut other = command.spawn().unwrap();
    let pid = other.id();
    until(|| std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| !env.is_empty()));
    for attempt in [
        format!("cat /proc/{pid}/environ"),
        format!("cat /proc/{pid}/cmdline"),
        format!("ls /proc/{pid}/root/"),
        format!("prlimit --pid {pid} --cpu=1:1"),
        format!("renice -n 19 {pid}"),
        format!("kill -KILL {pid}"),
    ] {
        let sealed = scene.run(SupervisedWalls::default(), &attempt);
        assert_ne!(sealed.outcome, ProgramOutcome::Exited(0), "{attempt}");
        assert_eq!(sealed.stdout, "", "{attempt}");
        assert!(other.try_wait().unwrap().is_none(), "{attempt}");
        // A process of the same user outside the sandbox may do so.
        assert!(Command::new("sh").args(["-c", &attempt]).output().unwrap().status.success(), "{attempt}");
    }
    assert!(!other.wait().unwrap().success());
}

fn variables_come_by_the_lists_alone(_: &BackendFixture) {
    let mut scene = EscapeFixture::new();
    scene.asked = BTreeMap::from([("ASKED".to_owned(), "1".to_owned())]);
    let env = scene.run(SupervisedWalls::default(), "env").stdout;
    let has = |line: &str| env.lines().any(|one| one == line);
    assert!(has("LANG=xx_XX") && has("ASKED=1") && has("PATH=/usr/bin:/bin"), "{env}");
    assert!(!env.contains("API_TOKEN") && !env.contains("OTHER"), "{env}");
    let own = scene.state.path().display().to_string();
    assert!(env.lines().any(|line| line.starts_with(&format!("HOME={own}"))), "{env}");
    scene.asked = BTreeMap::from([("LD_PRELOAD".to_owned(), "/workspace/evil.so".to_owned())]);
    let refused = scene.create(SupervisedWalls::default(), |_| ()).unwrap_err();
    assert!(matches!(refused, BackendError::Create(_)), "{refused:?}");
    assert!(std::fs::read_dir(scene.state.path().join("runs")).unwrap().next().is_none());
}

fn a_search_path_holds_no_spoof(_: &BackendFixture) {
    let mut scene = EscapeFixture::new();
    let tools = scene.outside.path().join("bin-evil");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("spoofed"), "#!/bin/sh\necho spoofed\n").unwrap();
    std::fs::set_permissions(tools.join("spoofed"), PermissionsExt::from_mode(0o755)).unwrap();
    scene.asked = BTreeMap::from([("PATH".to_owned(), format!("{}:/usr/bin:/bin", tools.display()))]);
    let prefix = |path: &Path| {
        let path = serde_json::to_string(path.to_str().unwrap()).unwrap();
        serde_json::from_str(&format!("{{\"extra_safe_path_prefixes\": [{path}]}}")).unwrap()
    };
    let only_looks_so = tools.with_file_name("bin");
    scene.settings = prefix(&only_looks_so);
    let ran = scene.run(SupervisedWalls::default(), "echo $PATH; spoofed");
    assert_eq!((ran.outcome, ran.stdout.as_str()), (ProgramOutcome::Exited(127), "/usr/bin:/bin\n"));
    scene.settings = prefix(&tools);
    assert_eq!(scene.run(SupervisedWalls::default(), "spoofed").stdout, "spoofed\n");
}

fn out_of_time_everything_is_killed(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let sandbox = scene.sandbox(SupervisedWalls::default());
    let mut execution = start(&*sandbox, "sleep 600 & setsid sleep 600 & sleep 600");
    until(|| sandbox.stats().unwrap().processes == 4);
    let deadline = Instant::now() + Duration::from_millis(20);
    assert_eq!(execution.wait_until(Some(deadline)).unwrap(), None);
    execution.kill().unwrap();
    assert_eq!(wait(execution.as_mut()), ProgramOutcome::Signaled(9));
    until(|| sandbox.stats().unwrap().processes == 0);
}

fn a_wall_that_is_missing_is_reported_and_missed(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let needs = |name: &str, walls| {
        let required = RequiredLayers::parse([name.to_owned()]).unwrap();
        scene.create(walls, |wanted| wanted.provision.required = required)
    };
    for (name, without) in
        [("landlock", SECCOMP), ("seccomp", LANDLOCK), ("pid_namespace", SupervisedWalls::default())]
    {
        let error = needs(name, without).unwrap_err();
        let BackendError::Weaker { missing, .. } = error else { panic!("{name}: {error:?}") };
        assert_eq!(missing.len(), 1, "{name}");
        assert_eq!(missing[0].name, name);
    }
    needs("seccomp", SECCOMP).unwrap();
    assert!(scene.backend(SupervisedWalls::default()).reconcile().unwrap().is_empty());
}
