//! Calls that Landlock has no say in, behind the filter of the subprocess backend and, as their control, without it.

use crate::BackendCase;
use crate::house::{BackendFixture, run, state};
use crate::walls::{EscapeFixture, NONE, SECCOMP};
use belljar_confine::sealed::ProgramOutcome;
use belljar_sandbox::backend::{Backend, with_causes};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::state::StateDirectory;
use belljar_sandbox::subprocess::{SubprocessBackend, SubprocessSettings, SupervisedWalls};
use belljar_testkit::skip::skip;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, ExitCode};

pub(crate) const CASES: &[BackendCase] = &[
    ("who_looks_after_it_gets_no_signal_by_a_descriptor", who_looks_after_it_gets_no_signal),
    ("attributes_of_files_outside_are_not_read", attributes_of_files_outside_are_not_read),
    ("no_name_of_the_hosts_sockets_is_taken", no_name_of_the_hosts_sockets_is_taken),
    (
        "what_tells_of_others_or_takes_from_them_is_refused",
        what_tells_of_others_or_takes_from_them_is_refused,
    ),
    ("requests_that_only_need_a_reader_change_nothing", requests_that_only_need_a_reader_change_nothing),
    ("what_the_user_can_not_see_is_not_told_either", what_the_user_can_not_see_is_not_told_either),
    ("where_proc_hides_processes_there_is_no_sandbox", where_proc_hides_processes_there_is_no_sandbox),
];

/// Signals any process by way of a descriptor that reports its readiness.
const SIGIO: &str = "use Socket; use Fcntl; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; \
                     fcntl(A, 8, shift() + 0) or die; fcntl(A, F_SETFL, O_ASYNC) or die; syswrite(B, 1)";

fn who_looks_after_it_gets_no_signal(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
    let control = scene.run(NONE, &format!("perl -e '{SIGIO}' {}", bystander.id()));
    assert_eq!(control.outcome, ProgramOutcome::Exited(0), "{control:?}");
    assert!(!bystander.wait().unwrap().success());
    // The supervisor, and beside it the starter. Without Landlock, too: older ones know no signals.
    for walls in [SupervisedWalls::default(), SECCOMP] {
        let sandbox = scene.sandbox(walls);
        let attempt = format!("for n in 0 1 2 3 4 5; do perl -e '{SIGIO}' $((PPID + n)); done");
        assert_ne!(run(&*sandbox, &attempt).outcome, ProgramOutcome::Killed, "{walls:?}");
        let by_directory = "perl -e 'open(D, \"<\", \"/proc/\" . shift) or opendir(E, \"/proc/$ARGV[0]\"); \
             syscall(424, $_, 9, 0, 0) for 3 .. 9' $PPID";
        assert_ne!(run(&*sandbox, by_directory).outcome, ProgramOutcome::Killed, "{walls:?}");
        assert_eq!(run(&*sandbox, "true").outcome, ProgramOutcome::Exited(0), "{walls:?}");
    }
}

fn attributes_of_files_outside_are_not_read(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let secret = scene.file("secret", "content that no sandbox may read");
    let name = c"user.secret";
    if rustix::fs::setxattr(&secret, name, b"hidden here", rustix::fs::XattrFlags::empty()).is_err() {
        return skip("conformance, walls of subprocess, in part", "this file system has no attributes");
    }
    let (get, list) = (libc_number("getxattr"), libc_number("listxattr"));
    let read = format!(
        "perl -e '$p = \"{secret}\"; $n = \"user.secret\"; $b = \"-\" x 99; \
         syscall({get}, $p, $n, $b, 99); print $b; syscall({list}, $p, $b, 99); print $b'"
    );
    assert!(!scene.run(SupervisedWalls::default(), &read).stdout.contains(['h', 'u']));
    let control = scene.run(NONE, &read).stdout;
    assert!(control.contains("hidden here") && control.contains("user.secret"), "{control}");
}

/// Number of a system call, as scripts have to name it.
fn libc_number(name: &str) -> u32 {
    let rules =
        belljar_confine::seccomp::policy::rules(belljar_confine::seccomp::policy::Audience::Supervised);
    rules.iter().find(|rule| rule.name == name).unwrap().number
}

/// Directory notification, a lease, a filter of one's own, a context for asynchronous I/O.
fn what_tells_of_others_or_takes_from_them_is_refused(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let place = scene.file("held", "as it was");
    let folder = Path::new(&place).parent().unwrap().display().to_string();
    let attempts = [
        format!("open(D, \"<\", \"{folder}\"); fcntl(D, 1026, 1) or exit 7"),
        format!("open(F, \"<\", \"{place}\"); fcntl(F, 1024, 0) or exit 7"),
        // struct sock_fprog with one struct sock_filter: RET_ALLOW
        "$f = pack(\"SCCL\", 6, 0, 0, 0x7fff0000); $p = pack(\"Sx6P\", 1, $f); \
         syscall(157, 38, 1, 0, 0, 0); syscall(157, 22, 2, $p, 0, 0) and exit 7"
            .to_owned(),
        "$c = pack(\"Q\", 0); syscall(206, 1, $c) and exit 7".to_owned(),
    ];
    for attempt in attempts {
        let attempt = format!("perl -e '{attempt}'");
        let control = scene.run(NONE, &attempt);
        assert_eq!(control.outcome, ProgramOutcome::Exited(0), "{attempt}: {control:?}");
        assert_eq!(scene.run(SECCOMP, &attempt).outcome, ProgramOutcome::Exited(7), "{attempt}");
    }
}

fn no_name_of_the_hosts_sockets_is_taken(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let name = format!("belljar-test-{}", std::process::id());
    let attempt = format!(
        "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; \
         bind(A, pack(\"S\", AF_UNIX) . \"\\0{name}\") or exit 7'"
    );
    assert_eq!(scene.run(SupervisedWalls::default(), &attempt).outcome, ProgramOutcome::Exited(7));
    assert_eq!(scene.run(NONE, &attempt).outcome, ProgramOutcome::Exited(0));
}

fn requests_that_only_need_a_reader_change_nothing(_: &BackendFixture) {
    let scene = EscapeFixture::new();
    let ask = |walls, request: &str| {
        let ask = format!(
            "touch file; perl -e 'open(F, \"<\", \"file\") or die; $! = 0; ioctl(F, {request}, $_ = \"\\0\" x 4096); exit 0 + $!'"
        );
        scene.run(walls, &ask).outcome
    };
    const ENOTTY: ProgramOutcome = ProgramOutcome::Exited(25);
    // The generation of a file on ext4, and its flags; subvolumes of btrfs. What is no request at all is not, either.
    let changing = ["0x40086604", "0x40086602", "0x5000940e", "0x50009417"];
    for request in changing.into_iter().chain(["0x7777"]) {
        assert_eq!(ask(SupervisedWalls::default(), request), ENOTTY, "{request}");
    }
    if changing.iter().all(|request| ask(NONE, request) == ENOTTY) {
        skip("conformance, walls of subprocess, in part", "this file system takes no such request");
    }
    let ran = scene.run(SupervisedWalls::default(), "touch file; cp --reflink=auto file other");
    assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{ran:?}");
}

fn what_the_user_can_not_see_is_not_told_either(_: &BackendFixture) {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "conformance, walls of subprocess, in part",
            "only root has rights that its programs have not",
        );
    }
    let scene = EscapeFixture::new();
    let closed = scene.outside.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(closed.join("there"), "").unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    chown(&closed, Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(scene.outside.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let said = |path: &Path, walls| {
        let ask = format!("perl -e 'chmod(0600, \"{}\"); exit 0 + $!'", path.display());
        scene.run(walls, &ask).outcome
    };
    let (there, nowhere) = (closed.join("there"), closed.join("nowhere"));
    assert_eq!(said(&there, SupervisedWalls::default()), said(&nowhere, SupervisedWalls::default()));
    // The control: root outside sees the difference.
    std::fs::set_permissions(&there, PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::metadata(&nowhere).unwrap_err();
}

fn where_proc_hides_processes_there_is_no_sandbox(_: &BackendFixture) {
    if !rustix::process::geteuid().is_root() {
        return skip("conformance, walls of subprocess, in part", "only root may mount another /proc");
    }
    let place = state();
    let program = place.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let folder = place.path().join("state");
    std::fs::create_dir(&folder).unwrap();
    chown(&folder, Some(65534), Some(65534)).unwrap();
    let made = |options: &str| {
        let script = format!(
            "mount -t proc {options} proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups \
             perl -e 'exec {{shift}} @ARGV' {} {TRIER} {}",
            program.display(),
            folder.display()
        );
        let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(made(""), "made");
    assert!(made("-o hidepid=2").contains("hides processes"));
}

/// Name under which this file tries to make a sandbox, and reports the result.
pub(crate) const TRIER: &str = "belljar-test-trier";

pub(crate) fn try_to_make_one(state: &Path) -> ExitCode {
    let executable = std::env::current_exe().unwrap();
    let backend =
        SubprocessBackend::new(executable, StateDirectory::at(state), SubprocessSettings::default());
    let said = match backend.create(BackendFixture::wanted(WorkspaceChoice::Empty)) {
        Ok(_) => "made".to_owned(),
        Err(error) => with_causes(&error),
    };
    std::io::stderr().write_all(said.as_bytes()).unwrap();
    ExitCode::SUCCESS
}
