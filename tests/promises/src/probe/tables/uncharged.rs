//! Takes memory that the kernel charges to no control group.

use super::super::kernel::{self, Errno, call_named};
use super::count;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::time::Duration;

/// Takes up to `most` of a kind and keeps them for `stay`. Prints how many it got, if it is still alive then.
pub(super) fn take(kind: &str, most: u64, folder: &str, stay: Duration) -> Result<(), String> {
    let in_processes = |take: &dyn Fn(u64) -> u64| in_processes(most, stay, take);
    let mut files = Vec::new();
    raise_open_files();
    let took = match kind {
        "flocks" => in_processes(&|most| count(most, |number| shared_lock(number, folder)))?,
        "orphans" => in_processes(&|most| {
            TcpListener::bind("127.0.0.1:0").map_or(0, |listener| count(most, |_| orphan(&listener)))
        })?,
        "listings" => {
            long_names(folder).map_err(|error| error.to_string())?;
            count(most, |_| listing(folder))
        }
        "locks" => count(most, |number| lock(number, folder, &mut files)),
        "netlink" => count(most, |_| full_netlink_socket()),
        "quiet-netlink" => count(most, |_| socket(libc::AF_NETLINK, libc::SOCK_RAW).map(drop)),
        "bound" => count(most, |_| bound_socket()),
        _ => count(most, |_| socket(libc::AF_INET, libc::SOCK_DGRAM).map(drop)),
    };
    std::thread::sleep(stay);
    println!("took {took}");
    Ok(())
}

/// Locks one byte of a file, not adjacent to another lock: the kernel would join them.
fn lock(number: u64, folder: &str, files: &mut Vec<File>) -> Result<(), Errno> {
    const IN_A_FILE: u64 = 800;
    if number.is_multiple_of(IN_A_FILE) {
        let made = File::create(format!("{folder}/locked-{}-{number}", std::process::id()));
        files.push(made.map_err(|error| Errno(error.raw_os_error().unwrap_or_default()))?);
    }
    let file = files.last().ok_or(Errno(libc::EBADF))?;
    // struct flock: a write lock of one byte at this offset.
    let lock = [libc::F_WRLCK as u64, 2 * (number % IN_A_FILE), 1, 0];
    let place = lock.as_ptr().expose_provenance() as u64;
    call_named(libc::SYS_fcntl, [file.as_raw_fd() as u64, libc::F_SETLK as u64, place, 0, 0, 0]).map(drop)
}

/// Takes entries in as many processes as their descriptors need. They stay as long as this process.
fn in_processes(most: u64, stay: Duration, take: &dyn Fn(u64) -> u64) -> Result<u64, String> {
    const IN_A_PROCESS: u64 = 4_000;
    let mut took = 0;
    for begin in (0..most).step_by(IN_A_PROCESS as usize) {
        let (mut outcome, mut says) = std::io::pipe().map_err(|error| error.to_string())?;
        if kernel::fork().map_err(|errno| format!("fork: {}", errno.0))?.is_none() {
            let _ = says.write_all(&take(IN_A_PROCESS.min(most - begin)).to_ne_bytes());
            std::thread::sleep(stay);
            kernel::end(0);
        }
        drop(says);
        let mut said = [0; 8];
        outcome.read_exact(&mut said).map_err(|error| error.to_string())?;
        took += u64::from_ne_bytes(said);
    }
    Ok(took)
}

/// Raises the limit of open files to its maximum.
fn raise_open_files() {
    let mut limit = [0_u64; 2];
    let (kind, place) = (u64::from(libc::RLIMIT_NOFILE), limit.as_mut_ptr().expose_provenance() as u64);
    let _ = call_named(libc::SYS_prlimit64, [0, kind, 0, place, 0, 0]);
    limit[0] = limit[1];
    let place = limit.as_ptr().expose_provenance() as u64;
    let _ = call_named(libc::SYS_prlimit64, [0, kind, place, 0, 0, 0]);
}

fn as_errno(error: &std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or_default())
}

/// Takes a lock by `flock`, few per file. Its descriptor stays open as long as this process.
fn shared_lock(number: u64, folder: &str) -> Result<(), Errno> {
    const IN_A_FILE: u64 = 500;
    let path = format!("{folder}/shared-{}-{}", std::process::id(), number / IN_A_FILE);
    let file = File::options().append(true).create(true).open(path).map_err(|error| as_errno(&error))?;
    call_named(libc::SYS_flock, [file.into_raw_fd() as u64, libc::LOCK_SH as u64, 0, 0, 0, 0]).map(drop)
}

/// Opens a connection that is closed at one end and stays for a minute, because the other end isn't.
fn orphan(listener: &TcpListener) -> Result<(), Errno> {
    static SECONDS: u32 = 120;
    let socket = TcpStream::connect(listener.local_addr().map_err(|error| as_errno(&error))?)
        .map_err(|error| as_errno(&error))?;
    listener.accept().map(|(accepted, _)| accepted.into_raw_fd()).map_err(|error| as_errno(&error))?;
    let place = (&raw const SECONDS).expose_provenance() as u64;
    let (descriptor, level) = (socket.as_raw_fd() as u64, libc::IPPROTO_TCP as u64);
    call_named(libc::SYS_setsockopt, [descriptor, level, libc::TCP_LINGER2 as u64, place, 4, 0]).map(drop)
}

fn long_names(folder: &str) -> std::io::Result<()> {
    const NAMES: usize = 3_000;
    (0..NAMES).try_for_each(|number| File::create(format!("{folder}/{number:0>200}")).map(drop))
}

/// Opens a descriptor that reads a directory, after a name was added to it.
fn listing(folder: &str) -> Result<(), Errno> {
    let passing = format!("{folder}/passing");
    File::create(&passing).and_then(|_| std::fs::remove_file(&passing)).map_err(|error| as_errno(&error))?;
    let directory = File::open(folder).map_err(|error| as_errno(&error))?.into_raw_fd();
    let mut room = [0_u64; 64];
    let place = room.as_mut_ptr().expose_provenance() as u64;
    call_named(libc::SYS_getdents64, [directory as u64, place, 512, 0, 0, 0]).map(drop)
}

/// Opens a socket that stays open as long as this process.
fn socket(family: i32, kind: i32) -> Result<u64, Errno> {
    call_named(libc::SYS_socket, [family as u64, kind as u64, 0, 0, 0, 0]).map(i64::cast_unsigned)
}

/// Opens an empty socket that the kernel lists. It stays open as long as this process.
fn bound_socket() -> Result<(), Errno> {
    UdpSocket::bind("127.0.0.1:0").map(|socket| _ = socket.into_raw_fd()).map_err(|error| as_errno(&error))
}

/// Opens a socket whose receive queue is full of errors, each with the request that it answers.
fn full_netlink_socket() -> Result<(), Errno> {
    const MESSAGE_BYTES: usize = 60_000;
    const UNKNOWN_TYPE: u32 = 0x7f;
    const REQUEST_WITH_ANSWER: u32 = 5;
    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK)?;
    let mut message = vec![0_u32; MESSAGE_BYTES / 4];
    message[0] = MESSAGE_BYTES as u32;
    message[1] = UNKNOWN_TYPE | REQUEST_WITH_ANSWER << 16;
    let place = message.as_ptr().expose_provenance() as u64;
    let send = || call_named(libc::SYS_sendto, [socket, place, MESSAGE_BYTES as u64, 0, 0, 0]).map(drop);
    send()?;
    for _ in 0..8 {
        let _ = send();
    }
    Ok(())
}
