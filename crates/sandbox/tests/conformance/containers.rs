//! Further requirements on containers: their limits, their owner, and the images that they are not made from.

use crate::BackendCase;
use crate::house::{
    BackendFixture, docker, docker_settings, engine_socket, nothing, owner, pipe, program, run, shell, start,
    state, wait,
};
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::isolation::{LAYERS, RequiredLayers};
use belljar_files::host_path::HostPath;
use belljar_sandbox::backend::{Backend, BackendError, SandboxRequest};
use belljar_sandbox::docker::{DockerBackend, ImageName};
use belljar_sandbox::limits::{Limit, Limits};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Lent;
use belljar_sandbox::state::StateDirectory;
use belljar_testkit::foreign_root::IMAGE;
use belljar_testkit::wait::until;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) const CASES: &[BackendCase] = &[
    ("every_layer_is_reported_and_those_that_must_be_are_in_force", every_layer_is_reported),
    ("without_a_layer_that_is_required_there_is_no_container", without_a_required_layer_there_is_none),
    (
        "a_killed_owners_container_is_cleared_away_and_no_neighbours",
        a_killed_owners_container_is_cleared_away,
    ),
    ("who_runs_out_of_memory_is_ended_and_that_is_told", who_runs_out_of_memory_is_ended),
    ("no_more_processes_start_than_may", no_more_processes_start_than_may),
    ("there_is_no_way_to_a_host_that_listens", there_is_no_way_to_a_host_that_listens),
    ("a_socket_in_a_lent_directory_leads_nowhere", a_socket_in_a_lent_directory_leads_nowhere),
    ("families_of_sockets_that_lead_out_are_refused", families_that_lead_out_are_refused),
    ("only_its_own_places_can_be_written", only_its_own_places_can_be_written),
    ("the_relay_is_out_of_reach", the_relay_is_out_of_reach),
    ("a_copy_is_not_held_up_from_inside", a_copy_is_not_held_up_from_inside),
    ("a_stream_that_nobody_reads_holds_up_no_other", a_stream_that_nobody_reads_holds_up_no_other),
    ("what_is_no_file_or_leads_to_the_engine_is_not_lent", what_leads_to_the_engine_is_not_lent),
    ("an_engine_or_image_that_is_not_there_is_said_by_name", what_is_not_there_is_said),
    ("an_image_with_volumes_is_refused", an_image_with_volumes_is_refused),
];

fn with(change: impl FnOnce(&mut SandboxRequest)) -> SandboxRequest {
    let mut wanted = BackendFixture::wanted(WorkspaceChoice::Empty);
    change(&mut wanted);
    wanted
}

/// The ids of all containers of a deployment, running or not.
fn containers(state: &Path) -> Vec<String> {
    let deployment = state.file_name().unwrap().to_str().unwrap();
    let label = format!("label=belljar.deployment={deployment}");
    let listed = docker(&["ps", "--all", "--quiet", "--filter", &label]).unwrap();
    listed.lines().map(str::to_owned).collect()
}

fn every_layer_is_reported(house: &BackendFixture) {
    let limits = Limits { millicpus: Some(1500), ..Limits::default() };
    let sandbox = house.backend.create(with(|wanted| wanted.provision.limits = limits)).unwrap();
    let layers = &sandbox.isolation().layers;
    let mut names: Vec<_> = layers.iter().map(|layer| layer.name.as_str()).collect();
    let missing: Vec<_> =
        layers.iter().filter(|layer| !layer.in_force).map(|layer| layer.name.as_str()).collect();
    // This engine maps no users, and no engine limits terminals.
    assert_eq!(missing, ["user_namespace", "kernel_tables"], "{layers:#?}");
    names.sort_unstable();
    let mut all = LAYERS;
    all.sort_unstable();
    assert_eq!(names, all);
}

fn without_a_required_layer_there_is_none(house: &BackendFixture) {
    let require = |name: &str| RequiredLayers::parse([name.to_owned()]).unwrap();
    let error = house
        .backend
        .create(with(|wanted| wanted.provision.required = require("user_namespace")))
        .unwrap_err();
    let BackendError::Weaker { missing, .. } = error else { panic!("{error:?}") };
    assert_eq!(missing[0].name, "user_namespace");
    assert_eq!(containers(house.state.path()), Vec::<String>::new());
    house.backend.create(with(|wanted| wanted.provision.required = require("seccomp"))).unwrap();
}

fn a_killed_owners_container_is_cleared_away(house: &BackendFixture) {
    let neighbour = state();
    let unlabelled = docker(&["create", "--network=none", IMAGE, "true"]).unwrap();
    let living = house.sandbox();
    let mut owners = [house.state.path(), neighbour.path()].map(owner);
    assert_eq!((containers(house.state.path()).len(), containers(neighbour.path()).len()), (2, 1));
    for owner in &mut owners {
        owner.kill().unwrap();
        owner.wait().unwrap();
    }
    // Without further help: its PID 1 sees that its peer is gone.
    let is_running = |state: &Path| {
        containers(state)
            .iter()
            .any(|id| docker(&["inspect", "--format={{.State.Running}}", id]).unwrap().trim() == "true")
    };
    until(|| !is_running(neighbour.path()));
    let begun = Instant::now();
    assert_eq!(house.backend.reconcile().unwrap().len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(containers(house.state.path()).len(), 1);
    assert_eq!(run(&*living, "true").outcome, ProgramOutcome::Exited(0));
    assert_eq!(containers(neighbour.path()).len(), 1);
    docker(&["inspect", unlabelled.trim()]).unwrap();
    // The neighbour clears its own away.
    let settings = docker_settings(&engine_socket().unwrap(), neighbour.path());
    let its = DockerBackend::new(settings, StateDirectory::at(neighbour.path())).unwrap();
    assert_eq!(its.reconcile().unwrap().len(), 1);
    assert_eq!(containers(neighbour.path()).len(), 0);
    docker(&["rm", unlabelled.trim()]).unwrap();
}

fn who_runs_out_of_memory_is_ended(house: &BackendFixture) {
    let limits = Limits { memory_bytes: Some(64 << 20), ..Limits::default() };
    let sandbox = house.backend.create(with(|wanted| wanted.provision.limits = limits)).unwrap();
    assert_eq!(run(&*sandbox, "head -c 8M /dev/zero | tail -c 8M | wc -c").stdout, "8388608\n");
    assert_eq!(sandbox.ended_by(), None);
    let mut bystander = start(&*sandbox, "sleep 600");
    let mut greedy = start(&*sandbox, "head -c 200M /dev/zero | tail -c 200M; sleep 600");
    assert_eq!(wait(greedy.as_mut()), ProgramOutcome::Killed);
    assert_eq!(wait(bystander.as_mut()), ProgramOutcome::Killed);
    assert_eq!(sandbox.ended_by(), Some(Limit::Memory));
    let again = sandbox.exec(&shell("true"), Stdio::Descriptors([nothing(), nothing(), nothing()]));
    assert!(matches!(again, Err(BackendError::Gone)), "{again:?}");
}

fn no_more_processes_start_than_may(house: &BackendFixture) {
    let script = "for i in $(seq 40); do sleep 600 & done; wait";
    let free = house.sandbox();
    let _running = start(&*free, script);
    until(|| free.stats().unwrap().processes >= 40);
    let limits = Limits { processes: 20, ..Limits::default() };
    let sandbox = house.backend.create(with(|wanted| wanted.provision.limits = limits)).unwrap();
    let ran = run(&*sandbox, "for i in $(seq 40); do sleep 600 >/dev/null 2>&1 & done; true");
    assert!(ran.stderr.to_lowercase().contains("fork"), "{ran:?}");
    let processes = sandbox.stats().unwrap().processes;
    assert!((15..=20).contains(&processes), "{processes}");
}

fn there_is_no_way_to_a_host_that_listens(house: &BackendFixture) {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let outside = Command::new("bash").args(["-c", &script]).status().unwrap();
    assert!(outside.success());
    listener.accept().unwrap();
    listener.set_nonblocking(true).unwrap();
    let sandbox = house.sandbox();
    let ran = run(&*sandbox, &format!("bash -c '{script}'"));
    assert!(ran.stderr.contains("Connection refused"), "{ran:?}");
    assert!(listener.accept().is_err());
    // Nothing but loopback, and no way from there.
    assert_eq!(run(&*sandbox, "tail -n +3 /proc/net/dev | cut -d : -f 1 | tr -d ' '").stdout, "lo\n");
    assert_eq!(run(&*sandbox, "tail -n +2 /proc/net/route").stdout, "");
}

fn connect(path: &str) -> String {
    format!(
        "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un(\"{path}\")) or die 0 + $!"
    )
}

fn a_socket_in_a_lent_directory_leads_nowhere(house: &BackendFixture) {
    let lent = tempfile::tempdir().unwrap();
    std::fs::set_permissions(lent.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = lent.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let outside = Command::new("perl").args(["-e", &connect(path.to_str().unwrap())]).status().unwrap();
    assert!(outside.success());
    listener.accept().unwrap();
    listener.set_nonblocking(true).unwrap();
    let lend = Lent { path: HostPath::resolve(lent.path()).unwrap(), inside: "lent".to_owned() };
    let sandbox = house.backend.create(with(|wanted| wanted.provision.lent.push(lend))).unwrap();
    let ran = run(&*sandbox, &format!("perl -e '{}'", connect("/lent/socket")));
    // None of the sandbox's own listens there, or that can't be known.
    assert!(ran.stderr.starts_with("111 at") || ran.stderr.starts_with("13 at"), "{ran:?}");
    assert!(listener.accept().is_err());
    // The lent directory can't be written to; the sandbox can use its own sockets.
    assert_ne!(run(&*sandbox, "touch /lent/new").outcome, ProgramOutcome::Exited(0));
    let own =
        "use Socket; socket(L, AF_UNIX, SOCK_STREAM, 0); bind(L, sockaddr_un(\"/tmp/own\")); listen(L, 1);";
    let ran = run(&*sandbox, &format!("perl -e '{own} {}'", connect("/tmp/own")));
    assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{ran:?}");
}

fn families_that_lead_out_are_refused(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let status = run(&*sandbox, "grep ^Seccomp: /proc/self/status").stdout;
    assert_eq!(status, "Seccomp:\t2\n");
    let mut allowed_outside = 0;
    // AF_PACKET, AF_ALG, AF_VSOCK; by what programs outside get for the same call.
    for (family, kind) in [(17, 3), (38, 5), (40, 1)] {
        let script = format!("socket(S, {family}, {kind}, 0) or die 0 + $!");
        let outside = Command::new("perl").args(["-e", &script]).output().unwrap();
        allowed_outside += u32::from(outside.status.success());
        let ran = run(&*sandbox, &format!("perl -e '{script}'"));
        // EAFNOSUPPORT, from our own filter, which is on top of the engine's.
        assert!(ran.stderr.starts_with("97 at"), "{family}: {ran:?}");
    }
    assert!(allowed_outside > 0, "no family is there outside either: this shows nothing");
    let ran = run(&*sandbox, "perl -e 'socket(S, 1, 1, 0) or die 0 + $!'");
    assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{ran:?}");
}

fn only_its_own_places_can_be_written(house: &BackendFixture) {
    let sandbox = house.sandbox();
    for place in ["/tmp", "/home/agent", "/dev/shm", "/workspace"] {
        let ran = run(&*sandbox, &format!("touch {place}/file && test ! -u {place}/file"));
        assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{place}: {ran:?}");
    }
    for place in
        ["/", "/etc", "/run", "/run/belljar", "/dev", "/dev/mqueue", "/proc", "/sys/fs/cgroup", "/var/tmp"]
    {
        assert_ne!(
            run(&*sandbox, &format!("touch {place}/file")).outcome,
            ProgramOutcome::Exited(0),
            "{place}"
        );
    }
    let ran = run(&*sandbox, "touch file; chmod u+s file; id -u; test -u file");
    assert_eq!((ran.outcome, ran.stdout.as_str()), (ProgramOutcome::Exited(1), "1000\n"));
    // No way up, and none to hide.
    assert_ne!(run(&*sandbox, "unshare --user true").outcome, ProgramOutcome::Exited(0));
    assert_eq!(run(&*sandbox, "grep -c '^Cap.*:.0000000000000000$' /proc/self/status").stdout, "5\n");
}

fn the_relay_is_out_of_reach(house: &BackendFixture) {
    let sandbox = house.sandbox();
    // Another process of the same user, and yet.
    let look = |whose: &str| {
        let script =
            format!("for one in /proc/[0-9]*; do grep -qa {whose} $one/cmdline && cat $one/environ; done");
        run(&*sandbox, &script)
    };
    let _own = start(&*sandbox, "sleep 4321");
    until(|| look("[4]321").stdout.contains("HOME="));
    let ran = look("[b]elljar-inside.relay");
    assert!(ran.stdout.is_empty() && ran.stderr.contains("Permission denied"), "{ran:?}");
    // A program inside can't limit the relay either, which would end it.
    let limit = "for one in /proc/[0-9]*; do grep -qa [b]elljar-inside.relay $one/cmdline && prlimit --nofile=4:4 --pid ${one#/proc/}; done";
    let ran = run(&*sandbox, limit);
    assert!(ran.stderr.contains("not permitted"), "{ran:?}");
    let ran = run(&*sandbox, "sleep 60 & prlimit --nofile=4:4 --pid $!; kill $!");
    assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{ran:?}");
    run(&*sandbox, "kill -KILL -1; for pid in /proc/[0-9]*; do kill -KILL ${pid#/proc/}; done");
    assert_eq!(run(&*sandbox, "true").outcome, ProgramOutcome::Exited(0));
}

fn a_copy_is_not_held_up_from_inside(house: &BackendFixture) {
    // Attacks the packing program, once it is there.
    let attack = |what: &str| {
        format!(
            "head -c 20M /dev/urandom > big; exec perl -e 'while (1) {{ for (glob \"/proc/[0-9]*\") {{ \
             open(F, \"$_/cmdline\") && <F> =~ /inside.pack/ or next; {what} }} }}'"
        )
    };
    let stop = "kill STOP => substr $_, 6";
    let hold = "open(H, \">$_/fd/1\") and sleep 600";
    for attack in [attack(stop), attack(hold)] {
        let sandbox = house.sandbox();
        let _attacking = start(&*sandbox, &attack);
        until(|| run(&*sandbox, "test $(stat -c %s big) = 20971520").outcome == ProgramOutcome::Exited(0));
        let begun = Instant::now();
        let mut out = Vec::new();
        let copied = sandbox.copy_out("/workspace", &mut out);
        // It may have been too quick for the attack; if not, it is given up.
        assert!(copied.is_ok() || matches!(copied, Err(BackendError::Copy { .. })), "{copied:?}");
        assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
        assert!(copied.is_err() || out.len() > 20 << 20, "{}", out.len());
    }
}

fn a_stream_that_nobody_reads_holds_up_no_other(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let (unread, output) = pipe();
    let mut flooding =
        sandbox.exec(&program(&["yes"]), Stdio::Descriptors([nothing(), output, nothing()])).unwrap();
    let ran = run(&*sandbox, "head -c 20M /dev/zero | cksum; head -c 3M /dev/zero | tr '\\0' x");
    assert_eq!(ran.outcome, ProgramOutcome::Exited(0));
    assert_eq!(ran.stdout.len() - ran.stdout.find('\n').unwrap() - 1, 3 << 20);
    flooding.kill().unwrap();
    assert_eq!(wait(flooding.as_mut()), ProgramOutcome::Signaled(9));
    drop(unread);
    // A program that writes to a closed reader gets an error.
    let (gone, output) = pipe();
    drop(gone);
    let mut writing =
        sandbox.exec(&program(&["yes"]), Stdio::Descriptors([nothing(), output, nothing()])).unwrap();
    assert_eq!(wait(writing.as_mut()), ProgramOutcome::Signaled(13));
}

fn what_leads_to_the_engine_is_not_lent(house: &BackendFixture) {
    let socket = engine_socket().unwrap();
    let pipe = house.state.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let refused = |path: &Path, inside: &str| {
        let lent = Lent { path: HostPath::resolve(path).unwrap(), inside: inside.to_owned() };
        let error = house.backend.create(with(|wanted| wanted.provision.lent.push(lent))).unwrap_err();
        assert!(matches!(error, BackendError::Create(_)), "{}: {error:?}", path.display());
    };
    for path in [&socket, socket.parent().unwrap(), Path::new("/"), &pipe, Path::new("/dev/null")] {
        refused(path, "lent");
    }
    for inside in ["", "/etc", "../etc", "proc", "sys/fs", "dev/x", "run/belljar/belljar-inside"] {
        refused(house.state.path(), inside);
    }
    // Root's own directory: a program that works there in place would be root.
    let direct = WorkspaceChoice::Direct(HostPath::resolve(house.state.path()).unwrap());
    house.backend.create(BackendFixture::wanted(direct)).unwrap_err();
    assert_eq!(containers(house.state.path()), Vec::<String>::new());
}

fn what_is_not_there_is_said(house: &BackendFixture) {
    let backend = |socket: &Path, image: &str| {
        let mut settings = docker_settings(socket, house.state.path());
        settings.image = ImageName::parse(image).unwrap();
        DockerBackend::new(settings, StateDirectory::at(house.state.path())).unwrap()
    };
    let why = |backend: &DockerBackend| match backend.health().unwrap_err() {
        BackendError::Unavailable { backend: "docker", why } => why,
        other => panic!("{other:?}"),
    };
    let nowhere = house.state.path().join("no-engine");
    let said = why(&backend(&nowhere, IMAGE));
    assert!(said.contains(nowhere.to_str().unwrap()) && said.contains("is it running"), "{said}");
    let error = backend(&nowhere, IMAGE).create(BackendFixture::wanted(WorkspaceChoice::Empty)).unwrap_err();
    assert!(matches!(error, BackendError::Unavailable { .. }), "{error:?}");
    let said = why(&backend(&engine_socket().unwrap(), "no-such/image:1"));
    assert!(said.contains("no-such/image:1") && said.contains("docker load"), "{said}");
}

fn an_image_with_volumes_is_refused(house: &BackendFixture) {
    let archive = house.state.path().join("empty.tar");
    std::fs::write(&archive, [0; 1024]).unwrap();
    let name = "belljar/with-volume";
    docker(&["import", "--change=VOLUME /data", archive.to_str().unwrap(), name]).unwrap();
    let mut settings = docker_settings(&engine_socket().unwrap(), house.state.path());
    settings.image = ImageName::parse(name).unwrap();
    let backend = DockerBackend::new(settings, StateDirectory::at(house.state.path())).unwrap();
    let error = backend.create(BackendFixture::wanted(WorkspaceChoice::Empty)).unwrap_err();
    assert!(error.to_string().contains("/data"), "{error}");
    docker(&["rmi", name]).unwrap();
}
