//! Our own program in a container: PID 1, the relay beside it, and the packer that copies files.
//!
//! ```text
//! belljar-inside init     PID 1; starts the relay, puts up its walls, and does what the relay asks
//!                relay    carries between the engine's stream and PID 1
//!                pack, unpack
//! ```

use super::relay;
use crate::archive;
use crate::hatch::Hatch;
use belljar_confine::inner_init::{InitWalls, attend, listen};
use belljar_confine::message;
use belljar_confine::plan::Identity;
use belljar_confine::seccomp::policy::Audience;
use belljar_files::directory::Directory;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{DumpableBehavior, getegid, geteuid, set_dumpable_behavior};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::ffi::OsString;
use std::io::{Write, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The name under which a program is this one.
pub const NAME: &str = "belljar-inside";

/// Path of this program in a container, relative to the root.
pub(super) const PATH: &str = "run/belljar/belljar-inside";

pub(super) const INIT: &str = "init";
pub(super) const PACK: &str = "pack";
pub(super) const UNPACK: &str = "unpack";
const RELAY: &str = "relay";

/// Orders to PID 1, as JSON in its second argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InitConfig {
    /// The only directories in which anything may be written, relative to the root.
    pub(super) writable: Vec<String>,
    /// Directories in whose file systems only the sandbox listens.
    pub(super) own: Vec<String>,
    /// Open files of one process.
    pub(super) open_files: u64,
    /// Seccomp filters that programs may have installed at a time.
    pub(super) filters: u64,
    /// Paths of which the host wants the device and inode.
    pub(super) places: Vec<String>,
    /// Sockets that the host wants to have listen inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) handover: Option<SocketHandover>,
}

/// Handover of the hatches' sockets, which PID 1 has made in the container's network and files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SocketHandover {
    /// Hatches that the sockets are for.
    pub(super) hatches: Vec<Hatch>,
    /// The socket by which the host takes them, relative to the root.
    pub(super) socket: String,
}

/// Main function of the program; `arguments` are those after its name.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        [INIT, orders] => init(orders),
        [RELAY, orders] => relay(orders),
        [PACK, path] => pack(path),
        [UNPACK, path] => unpack(path),
        _ => Err("belljar starts this in its containers; it is of no use elsewhere".into()),
    };
    done.unwrap_or_else(|error| {
        // Standard error may have no reader any more.
        let _ = writeln!(std::io::stderr(), "{}", crate::backend::with_causes(&*error));
        ExitCode::FAILURE
    })
}

fn init(text: &str) -> Result<ExitCode, Box<dyn Error>> {
    let orders: InitConfig = serde_json::from_str(text)?;
    if let Some(handover) = &orders.handover {
        // Before anything else is here that could take them.
        hand_over(handover)?;
    }
    let (ours, theirs) = message::pair()?;
    // Before the walls, so that it stands outside of the Landlock domain. Its three streams are all that it gets: PID 1,
    // what the engine reads, and what the engine writes.
    let engine_writes = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let relay = Command::new("/proc/self/exe")
        .arg0(NAME)
        .args([RELAY, text])
        .env_clear()
        .stdin(Stdio::from(theirs))
        .stderr(Stdio::from(engine_writes))
        .spawn()?
        .id();
    let walls = InitWalls {
        writable: orders.writable,
        own: orders.own,
        spared: vec![relay.cast_signed()],
        open_files: orders.open_files,
        filters: orders.filters,
        audience: Audience::Everyone,
    };
    let code = attend(&ours, &walls);
    Ok(ExitCode::from((code & 0xff) as u8))
}

fn hand_over(SocketHandover { hatches, socket }: &SocketHandover) -> Result<(), Box<dyn Error>> {
    let wanted: Vec<_> = hatches.iter().flat_map(|hatch| hatch.sockets()).collect();
    let sockets = listen(&wanted)?;
    let host = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect(&host, &SocketAddrUnix::new(Path::new("/").join(socket))?)?;
    Ok(message::send(host.as_fd(), HANDED_OVER, &message::borrowed(&sockets))?)
}

fn relay(orders: &str) -> Result<ExitCode, Box<dyn Error>> {
    let orders: InitConfig = serde_json::from_str(orders)?;
    relay::run(&orders.places)?;
    Ok(ExitCode::SUCCESS)
}

fn pack(path: &str) -> Result<ExitCode, Box<dyn Error>> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    answer(archive::pack(&Directory::open_host(Path::new("/"))?, path, &mut stdout().lock()))
}

fn unpack(path: &str) -> Result<ExitCode, Box<dyn Error>> {
    // Programs inside run as the same user, and must neither trace this process nor reach its streams.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let root = Directory::open_host(Path::new("/"))?;
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let own = Identity { inside_uid: uid, inside_gid: gid, host_uid: uid, host_gid: gid };
    answer(archive::unpack(&root, path, &mut stdin().lock(), own))
}

/// Reports why something can't be copied, on standard error: the errno, and the path.
fn answer(copied: Result<(), crate::backend::BackendError>) -> Result<ExitCode, Box<dyn Error>> {
    let Err(crate::backend::BackendError::Copy { path, source }) = copied else {
        return Ok(ExitCode::SUCCESS);
    };
    let errno = Errno::from_io_error(&source).unwrap_or(Errno::IO).raw_os_error();
    write!(std::io::stderr(), "{errno} {path}")?;
    Ok(ExitCode::from(COPY_FAILED as u8))
}

/// Message that goes with sockets that are handed over.
pub(super) const HANDED_OVER: &[u8] = b"hatches";

/// The exit code that goes with such an answer.
pub(super) const COPY_FAILED: i32 = 3;
