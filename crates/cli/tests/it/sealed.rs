//! What a sandbox can't do, each with the same attempt made where nothing forbids it.

use crate::BELLJAR;
use belljar_testkit::world::World;
use std::net::TcpListener;
use std::process::Command;

/// Runs the script outside, where it must succeed, and inside, where it must not.
#[track_caller]
fn only_outside(world: &World, script: &str) {
    let outside = Command::new("/bin/sh").args(["-c", script]).output().unwrap();
    assert!(outside.status.success(), "the control failed: {script}: {outside:?}");
    let inside = world.run(&["exec", "--", "sh", "-c", script]);
    assert_ne!(inside.code, 0, "it got through: {script}");
}

#[test]
fn files_of_the_host_are_not_there() {
    World::as_everyone(BELLJAR, |world| {
        let canary = world.write("canary", "a secret");
        only_outside(world, &format!("cat {}", canary.display()));
        only_outside(world, "test -e /etc/shadow");
        only_outside(world, "test -e /var/lib");
        only_outside(world, "test -e /sys/kernel");
    });
}

#[test]
fn the_hosts_loopback_is_not_reached_and_nobody_is_seen_to_try() {
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
fn processes_of_the_host_are_neither_seen_nor_signaled() {
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

#[test]
fn init_can_be_neither_read_nor_traced_nor_killed() {
    World::as_everyone(BELLJAR, |world| {
        for script in
            ["cat /proc/1/environ", "ls /proc/1/fd", "readlink /proc/1/exe", "kill -KILL 1", "kill -STOP 1"]
        {
            assert_ne!(world.run(&["exec", "--", "sh", "-c", script]).code, 0, "{script}");
            // The same against oneself is nothing special.
            let own = script.replace("/proc/1/", "/proc/self/").replace("kill -KILL 1", "true");
            let own = own.replace("kill -STOP 1", "true");
            assert_eq!(world.run(&["exec", "--", "sh", "-c", &own]).code, 0, "{own}");
        }
        let cmdline = world.run(&["exec", "--", "cat", "/proc/1/cmdline"]).succeeded();
        assert!(!cmdline.stdout.contains('/'), "{:?}", cmdline.stdout);
    });
}

#[test]
fn every_process_has_the_same_posture_no_capability_no_way_to_one_and_a_filter() {
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
fn only_the_fixed_devices_are_there_and_no_descriptor_is_left_open() {
    World::as_everyone(BELLJAR, |world| {
        let devices = world.run(&["exec", "--", "ls", "/dev"]).succeeded().stdout;
        let expected = "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n";
        assert_eq!(devices, expected);
        let open = world.run(&["exec", "--", "sh", "-c", "ls /proc/$$/fd"]).succeeded().stdout;
        assert_eq!(open, "0\n1\n2\n");
    });
}

#[test]
fn namespaces_and_mounts_can_not_be_made_but_threads_processes_and_sockets_can() {
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
