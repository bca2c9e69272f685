//! The attempts, one for each wall. The error of an attempt names what stopped it.

use super::{AttemptErrors, answer};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Pid, Resource, getrlimit, test_kill_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Targets of attempts, and the state of the host as seen from the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AttemptTargets {
    pub(super) file: PathBuf,
    pub(super) tcp_port: u16,
    pub(super) abstract_name: String,
    pub(super) host_pid: i32,
    /// The host's namespaces, by name.
    pub(super) namespaces: BTreeMap<String, PathBuf>,
    /// A directory that any user may write.
    pub(super) unlisted: String,
}

/// An attempt.
pub(super) struct Attempt {
    pub(super) name: &'static str,
    pub(super) layer: &'static str,
    pub(super) what: &'static str,
    /// True if it must succeed outside to prove anything. Where Belljar has no such rights outside either, it only counts
    /// that it has none inside.
    pub(super) needs_control: bool,
    pub(super) make: fn(&AttemptTargets) -> Result<(), String>,
}

pub(super) const ATTEMPTS: &[Attempt] = &[
    attempt("file", "mount_namespace", "read a file of the host", read_file),
    attempt("write_programs", "mount_namespace", "write among the host's programs", write_programs)
        .without_control(),
    attempt("signal", "pid_namespace", "signal a process of the host", signal_host),
    attempt("tcp", "network_namespace", "connect to the host's loopback", connect_tcp),
    attempt(
        "abstract_socket",
        "network_namespace",
        "connect to an abstract socket of the host",
        connect_abstract,
    ),
    attempt("user_ns", "user_namespace", "be in the host's user namespace", |t| same_namespace(t, "user")),
    attempt("ipc_ns", "ipc_namespace", "be in the host's IPC namespace", |t| same_namespace(t, "ipc")),
    attempt("uts_ns", "uts_namespace", "be in the host's UTS namespace", |t| same_namespace(t, "uts")),
    attempt("cgroup_ns", "cgroup_namespace", "be in the host's cgroup namespace", |t| {
        same_namespace(t, "cgroup")
    }),
    attempt("capabilities", "capabilities", "have a capability", have_capability).without_control(),
    attempt("privileges", "no_new_privs", "be able to gain privileges", gain_privileges),
    attempt("netlink", "seccomp", "listen to the kernel's device events", listen_to_devices),
    attempt("unlisted_write", "landlock", "write where mounts and permissions allow it", write_unlisted),
    attempt("core", "resource_limits", "be allowed a core dump", dump_core).without_control(),
];

const fn attempt(
    name: &'static str,
    layer: &'static str,
    what: &'static str,
    make: fn(&AttemptTargets) -> Result<(), String>,
) -> Attempt {
    Attempt { name, layer, what, needs_control: true, make }
}

impl Attempt {
    const fn without_control(self) -> Self {
        Self { needs_control: false, ..self }
    }
}

/// Makes every attempt from where this process is.
pub(super) fn all(targets: &AttemptTargets) -> AttemptErrors {
    ATTEMPTS.iter().map(|attempt| (attempt.name.to_owned(), answer((attempt.make)(targets)))).collect()
}

// === impl AttemptTargets ===

impl AttemptTargets {
    pub(super) fn of_host(file: &Path, tcp_port: u16, abstract_name: String) -> std::io::Result<Self> {
        let namespaces = ["user", "ipc", "uts", "cgroup"]
            .into_iter()
            .map(|name| Ok((name.to_owned(), std::fs::read_link(format!("/proc/self/ns/{name}"))?)))
            .collect::<std::io::Result<_>>()?;
        Ok(Self {
            file: file.to_owned(),
            tcp_port,
            abstract_name,
            host_pid: rustix::process::getpid().as_raw_nonzero().get(),
            namespaces,
            unlisted: std::env::temp_dir().display().to_string(),
        })
    }
}

fn read_file(targets: &AttemptTargets) -> Result<(), String> {
    std::fs::read(&targets.file).map(drop).map_err(said)
}

fn write_programs(_: &AttemptTargets) -> Result<(), String> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let name = "/usr/.belljar-canary";
    openat(CWD, name, flags, Mode::RUSR).map_err(said)?;
    std::fs::remove_file(name).map_err(said)
}

fn signal_host(targets: &AttemptTargets) -> Result<(), String> {
    let pid = Pid::from_raw(targets.host_pid).ok_or("no such process")?;
    test_kill_process(pid).map_err(said)
}

fn connect_tcp(targets: &AttemptTargets) -> Result<(), String> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, targets.tcp_port);
    TcpStream::connect_timeout(&address.into(), Duration::from_secs(2)).map(drop).map_err(said)
}

fn connect_abstract(targets: &AttemptTargets) -> Result<(), String> {
    let address = SocketAddr::from_abstract_name(&targets.abstract_name).map_err(said)?;
    UnixStream::connect_addr(&address).map(drop).map_err(said)
}

fn same_namespace(targets: &AttemptTargets, name: &str) -> Result<(), String> {
    let here = std::fs::read_link(format!("/proc/self/ns/{name}")).map_err(said)?;
    match targets.namespaces.get(name) == Some(&here) {
        true => Ok(()),
        false => Err("another one".to_owned()),
    }
}

fn have_capability(_: &AttemptTargets) -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(said)?;
    let sets = status.lines().filter(|line| line.starts_with("Cap"));
    let held =
        sets.filter_map(|line| line.split_once(':')).any(|(_, set)| set.trim().bytes().any(|b| b != b'0'));
    if held { Ok(()) } else { Err("every set is empty".to_owned()) }
}

fn gain_privileges(_: &AttemptTargets) -> Result<(), String> {
    match rustix::thread::no_new_privs() {
        Ok(false) => Ok(()),
        Ok(true) => Err("no_new_privs is set".to_owned()),
        Err(errno) => Err(said(errno)),
    }
}

/// Any user may do this; only the filter prevents it.
fn listen_to_devices(_: &AttemptTargets) -> Result<(), String> {
    let protocol = Some(rustix::net::netlink::KOBJECT_UEVENT);
    socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)
        .map(drop)
        .map_err(said)
}

fn write_unlisted(targets: &AttemptTargets) -> Result<(), String> {
    let name = Path::new(&targets.unlisted).join(format!("belljar-canary-{}", targets.abstract_name));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(CWD, &name, flags, Mode::RUSR).map_err(said)?;
    std::fs::remove_file(name).map_err(said)
}

fn dump_core(_: &AttemptTargets) -> Result<(), String> {
    match getrlimit(Resource::Core).maximum {
        // With 1 the kernel writes no file and starts no program either.
        Some(0 | 1) => Err("the limit is 0 bytes".to_owned()),
        _ => Ok(()),
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
