//! Operations that a sandbox forbids, each with the same attempt where nothing forbids it.

mod local_sockets;
mod preallocated;

use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::{ProgramOutput, User, World};
use serde_json::json;
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

/// Runs the script outside, where it must succeed, and inside, where it must fail.
#[track_caller]
fn only_outside(world: &World, script: &str) {
    let outside = Command::new("/bin/sh").args(["-c", script]).output().unwrap();
    assert!(outside.status.success(), "the control failed: {script}: {outside:?}");
    let inside = world.run(&["exec", "--", "sh", "-c", script]);
    assert_ne!(inside.code, 0, "the sandbox allowed it: {script}");
}

#[test]
fn host_files_are_not_visible() {
    World::as_everyone(BELLJAR, |world| {
        let canary = world.write("canary", "a secret");
        only_outside(world, &format!("cat {}", canary.display()));
        only_outside(world, "test -e /etc/shadow");
        only_outside(world, "test -e /var/lib");
        only_outside(world, "test -e /sys/kernel");
    });
}

#[test]
fn host_loopback_is_unreachable_and_attempts_are_invisible_to_the_host() {
    World::as_everyone(BELLJAR, |world| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let script =
            format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\"");
        only_outside(world, &script);
        let arrived = std::iter::from_fn(|| listener.accept().ok()).count();
        assert_eq!(arrived, 1, "the control alone");
    });
}

#[test]
fn host_processes_can_be_neither_seen_nor_signaled() {
    World::as_everyone(BELLJAR, |world| {
        let pid = std::process::id();
        only_outside(world, &format!("test -d /proc/{pid}"));
        only_outside(world, &format!("kill -0 {pid}"));
    });
}

#[test]
fn address_families_that_ignore_namespaces_are_refused() {
    let world = World::new(BELLJAR);
    let script = "python3 -c \"import socket; socket.socket(40, socket.SOCK_STREAM)\"";
    only_outside(&world, script);
    let script = "python3 -c \"import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)\"";
    only_outside(&world, script);
}

/// Listens on the host at a Unix socket with this path, which every user may connect to.
fn listen_on_host(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// Tries every way to name the socket `listening` of the working directory, and prints the number of successful connections.
const CONNECT_ATTEMPTS: &str = r"
import os, socket
through = 0
os.symlink(os.path.join(os.getcwd(), 'listening'), '/tmp/link-%d' % os.getpid())
for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
    for name in ['listening', './listening', os.path.abspath('listening'), '/proc/self/cwd/listening',
                 '/proc/self/root' + os.path.abspath('listening'), '/tmp/link-%d' % os.getpid()]:
        try:
            socket.socket(socket.AF_UNIX, kind).connect(name)
            through += 1
        except OSError:
            pass
os.unlink('/tmp/link-%d' % os.getpid())
print(through)
";

#[test]
fn mounted_local_sockets_give_no_connection_to_the_host() {
    World::as_everyone(BELLJAR, |world| {
        let script = world.write("given/attempts.py", CONNECT_ATTEMPTS);
        let listener = listen_on_host(&world.path().join("given/listening"));
        let arrived = || std::iter::from_fn(|| listener.accept().ok()).count();
        let given = world.path().join("given").display().to_string();
        for way in [&["--workspace", &given], &["--workspace-copy", &given]] {
            let ran = world.run(&["exec", way[0], way[1], "--", "python3", "attempts.py"]).succeeded();
            assert_eq!((ran.stdout.as_str(), arrived()), ("0\n", 0), "{way:?}");
        }
        let lent = format!("{given}:/lent");
        let ran = world.run(&["exec", "--ro", &lent, "--", "sh", "-c", "cd /lent && python3 attempts.py"]);
        assert_eq!((ran.succeeded().stdout.as_str(), arrived()), ("0\n", 0));
        // The control: the same attempts where nothing forbids them.
        let outside = Command::new("python3").arg(script).current_dir(&given).output().unwrap();
        assert_eq!((outside.stdout.as_slice(), arrived()), (&b"6\n"[..], 6));
    });
}

/// Connects to its own sockets in every usual way, and prints what arrived.
const OWN_SOCKETS: &str = r"
import multiprocessing, os, socket, threading
os.chdir('/tmp')
def through(address, family=socket.AF_UNIX):
    server = socket.socket(family); server.bind(address); server.listen()
    client = socket.socket(family); client.settimeout(10); client.connect(server.getsockname())
    accepted, _ = server.accept(); accepted.send(b'x')
    return client.recv(1).decode()
came = [through('/tmp/own'), through('relative'), through('\0abstract'), through(('127.0.0.1', 0), socket.AF_INET)]
in_thread = threading.Thread(target=lambda: came.append(through('/dev/shm/own'))); in_thread.start(); in_thread.join()
with multiprocessing.Manager() as manager: came.append(manager.list('x')[0])
try: socket.create_connection(('127.0.0.1', 1))
except ConnectionRefusedError: came.append('x')
print(*came)
";

#[test]
fn sandbox_reaches_its_own_listening_sockets() {
    World::as_everyone(BELLJAR, |world| {
        world.write("given/own.py", OWN_SOCKETS);
        for way in ["--workspace", "--workspace-copy"] {
            let ran = world.run(&["exec", way, "given", "--", "python3", "own.py"]).succeeded();
            assert_eq!(ran.stdout, "x x x x x x x\n", "{way}");
        }
    });
}

#[test]
fn nothing_inside_names_a_host_directory() {
    World::as_everyone(BELLJAR, |world| {
        let secret = format!("secret-{}", std::process::id());
        world.write(&format!("{secret}/file"), "f");
        let place = world.path().join(&secret).display().to_string();
        let (lent, file) = (format!("{place}:/lent"), format!("{place}/file:/file"));
        let script = "cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats /proc/1/mountinfo /proc/1/maps \
                      /proc/self/maps /proc/self/environ; readlink /proc/self/cwd /proc/self/root /proc/self/exe; true";
        let host = std::fs::canonicalize(world.path()).unwrap().display().to_string();
        for way in ["--workspace", "--workspace-copy"] {
            let options = [way, &place, "--ro", &lent, "--ro", &file];
            let ran = world.run(&[&["exec"], &options[..], &["--", "sh", "-c", script]].concat()).succeeded();
            assert!(!ran.stdout.contains(&host) && !ran.stdout.contains(&secret), "{way}: {}", ran.stdout);
            world.write("job.json", job(&json!([shell(script)])).to_string());
            let ran = world.run(&[&["run", "--json"], &options[..], &["job.json"]].concat()).succeeded();
            let stdout = ran.json()["steps"][0]["result"]["stdout"].to_string();
            assert!(!stdout.contains(&host) && !stdout.contains("/runs/"), "{way}: {stdout}");
        }
        // The control: the process's own namespace shows the source of a bind mount.
        let control = format!("mount --bind {place} /mnt && cat /proc/self/mountinfo");
        let mut outside = Command::new("unshare");
        outside.args(["--user", "--map-root-user", "--mount", "sh", "-c", &control]);
        let output = String::from_utf8(outside.output().unwrap().stdout).unwrap();
        assert!(output.contains(&secret), "{output}");
    });
}

/// Prints the errno of each way to create a set-id file; 0 for success. 437 is openat2.
const SET_ID_ATTEMPTS: &str = r"
import ctypes, os, stat, struct, sys
os.umask(0)
def errno_of(attempt):
    try: attempt()
    except OSError as error: return error.errno
    return 0
def openat2(name, mode):
    how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, mode, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(437, -100, name, how, len(how)) < 0: raise OSError(ctypes.get_errno(), 'openat2')
os.close(os.open('plain', os.O_CREAT | os.O_WRONLY, 0o755))
descriptor = os.open('plain', os.O_RDONLY)
print(*[errno_of(attempt) for attempt in [
    lambda: os.chmod('plain', 0o4755),
    lambda: os.chmod('plain', 0o2755),
    lambda: os.fchmod(descriptor, 0o4755),
    lambda: os.open('opened', os.O_CREAT | os.O_WRONLY, 0o4755),
    lambda: os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o6755),
    lambda: os.mknod('made', stat.S_IFREG | 0o4755),
    lambda: openat2(b'opened2', 0o4755),
    lambda: os.chmod('plain', 0o1700),
]])
";

#[test]
fn sandbox_leaves_no_setuid_or_setgid_files_on_the_host() {
    World::as_everyone(BELLJAR, |world| {
        world.write("workspace/attempts.py", SET_ID_ATTEMPTS);
        let made = || {
            let listing = std::fs::read_dir(world.path().join("workspace")).unwrap();
            listing.filter(|entry| entry.as_ref().unwrap().metadata().unwrap().mode() & 0o6000 != 0).count()
        };
        let inside = &["exec", "--workspace", "workspace", "--", "python3", "attempts.py"];
        assert_eq!(world.run(inside).succeeded().stdout, "1 1 1 1 1 1 38 0\n");
        let step = json!({ "type": "run_command", "args": { "argv": ["python3", "attempts.py"] } });
        world.write("job.json", job(&json!([step])).to_string());
        let ran = world.run(&["run", "--json", "--workspace", "workspace", "job.json"]).succeeded();
        assert_eq!(ran.json()["steps"][0]["result"]["stdout"], "1 1 1 1 1 1 38 0\n");
        assert_eq!(made(), 0);
        // The control: the same attempts where nothing forbids them.
        let mut outside = Command::new("python3");
        outside.arg("attempts.py").current_dir(world.path().join("workspace"));
        assert_eq!(String::from_utf8(outside.output().unwrap().stdout).unwrap(), "0 0 0 0 0 0 0 0\n");
        assert!(made() > 0);
    });
}

#[test]
fn init_process_cannot_be_read_traced_or_killed() {
    World::as_everyone(BELLJAR, |world| {
        for script in ["cat /proc/1/environ", "ls /proc/1/fd", "readlink /proc/1/exe", "cat /proc/1/maps"] {
            assert_ne!(world.run(&["exec", "--", "sh", "-c", script]).code, 0, "{script}");
            // The control: against the process itself they succeed.
            let own = script.replace("/proc/1/", "/proc/self/");
            assert_eq!(world.run(&["exec", "--", "sh", "-c", &own]).code, 0, "{own}");
        }
        // The kernel drops such signals. If they killed PID 1, no process would be left to print.
        let script =
            "for signal in KILL STOP TERM SEGV USR1; do kill -$signal 1; done; sleep 0.1; echo alive";
        assert_eq!(world.run(&["exec", "--", "sh", "-c", script]).succeeded().stdout, "alive\n");
        let control = "sleep 60 & kill -KILL $!; wait $!; echo $?";
        assert_eq!(world.run(&["exec", "--", "sh", "-c", control]).succeeded().stdout, "137\n");
        let cmdline = world.run(&["exec", "--", "cat", "/proc/1/cmdline"]).succeeded();
        assert!(!cmdline.stdout.contains('/'), "{:?}", cmdline.stdout);
    });
}

#[test]
fn init_process_can_be_neither_limited_nor_slowed_down() {
    let attempts = "
import os, resource
def refused(attempt):
    try: attempt(); return 0
    except PermissionError: return 1
for pid in 1, os.getpid():
    print(refused(lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1000, 1000))),
          refused(lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))),
          refused(lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0))),
          refused(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
          refused(lambda: os.setpriority(os.PRIO_USER, 1000, 19)))
";
    World::as_everyone(BELLJAR, |world| {
        let ran = world.run(&["exec", "--", "python3", "-c", attempts]).succeeded();
        assert_eq!(ran.stdout, "1 1 1 1 1\n0 0 0 0 1\n");
    });
}

#[test]
fn only_files_and_directories_can_be_mounted() {
    World::as_everyone(BELLJAR, |world| {
        let socket = world.path().join("socket");
        let _listener = listen_on_host(&socket);
        let ran = world.run(&["exec", "--ro", &socket.display().to_string(), "--", "true"]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(ran.stderr.contains("neither a file nor a directory"), "{}", ran.stderr);
    });
}

#[test]
fn every_process_has_no_capabilities_and_a_seccomp_filter() {
    World::as_everyone(BELLJAR, |world| {
        let script = "cat /proc/1/status /proc/self/status; (cat /proc/self/status)";
        let status = world.run(&["exec", "--", "sh", "-c", script]).succeeded().stdout;
        let values = |name: &str| {
            let found =
                status.lines().filter_map(|line| line.split_once(':')).filter(move |(key, _)| *key == name);
            found.map(|(_, value)| value.trim().to_owned()).collect::<Vec<_>>()
        };
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(values(set), ["0000000000000000"; 3], "{set}");
        }
        assert_eq!(values("NoNewPrivs"), ["1"; 3]);
        assert_eq!(values("Seccomp"), ["2"; 3]);
        assert!(values("Uid").iter().all(|uid| uid.starts_with("1000\t1000\t1000\t1000")), "{status}");
    });
}

#[test]
fn only_the_fixed_devices_exist_and_no_descriptor_is_left_open() {
    World::as_everyone(BELLJAR, |world| {
        let devices = world.run(&["exec", "--", "ls", "/dev"]).succeeded().stdout;
        let expected = "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n";
        assert_eq!(devices, expected);
        let open = world.run(&["exec", "--", "sh", "-c", "ls /proc/$$/fd"]).succeeded().stdout;
        assert_eq!(open, "0\n1\n2\n");
    });
}

#[test]
fn namespaces_and_mounts_are_refused_but_threads_processes_and_sockets_work() {
    World::as_everyone(BELLJAR, |world| {
        for script in
            ["unshare --user true", "unshare --mount true", "mount -t tmpfs none /tmp", "chroot /tmp true"]
        {
            assert_ne!(world.run(&["exec", "--", "sh", "-c", script]).code, 0, "{script}");
        }
        let twin = "import threading, subprocess, socket, os, tempfile, ctypes, mmap\n\
                    t = threading.Thread(target=lambda: None); t.start(); t.join()\n\
                    subprocess.run(['true'], check=True)\n\
                    a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'\n\
                    s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n\
                    os.mkfifo('/workspace/fifo'); os.link('/workspace/fifo', '/workspace/twin')\n\
                    tempfile.TemporaryFile().write(b'x'); os.memfd_create('x'); os.openpty()\n\
                    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n\
                    print(len(os.listdir('/usr/bin')) > 10, socket.if_nameindex())\n";
        let ran = world.run(&["exec", "--", "python3", "-c", twin]).succeeded();
        assert_eq!(ran.stdout, "True [(1, 'lo')]\n");
    });
}

/// The kernel counts the processes of every user except its own root, whatever id that user has in a namespace.
#[test]
fn process_limit_is_reported_only_where_it_is_enforced() {
    let script = "for i in $(seq 40); do sleep 5 > /dev/null & done 2>&1; wait";
    let arguments = ["exec", "--pids", "20", "--isolation", "--", "sh", "-c", script];
    let agree = |ran: &ProgramOutput| {
        if ran.code == 125 && ran.stderr.contains("process_limit") {
            // It can't be enforced, so nothing ran.
            return false;
        }
        let report = ran.stderr.split_inclusive("\n}\n").next().unwrap();
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        let layers = report["layers"].as_array().unwrap();
        let layer = layers.iter().find(|layer| layer["name"] == "process_limit").unwrap();
        let is_kept = [&ran.stdout, &ran.stderr].iter().any(|said| said.to_lowercase().contains("fork"));
        assert_eq!(layer["in_force"], json!(is_kept), "{layer}: {ran:?}");
        is_kept
    };
    World::as_everyone(BELLJAR, |world| {
        // Root may have no other ids to assign; an ordinary user is never root of the machine.
        let is_kept = agree(&world.run(&arguments));
        assert!(is_kept || world.user() == User::Own, "an ordinary user's processes are limited");
        // Root of a user namespace has no other ids to assign, and is the user who made it.
        let mut command = world.command_of("/usr/bin/unshare".as_ref(), &["--map-root-user"]);
        let ran = ProgramOutput::from(command.arg(world.program()).args(arguments).output().unwrap());
        agree(&ran);
    });
}
