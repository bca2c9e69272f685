//! Takes memory that the kernel charges to no control group.

use super::super::kernel::{Errno, call_named};
use super::count;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Long enough for PID 1 to look, and to look again.
const STAY: Duration = Duration::from_secs(3);

/// Takes up to `most` of a kind and keeps them for a while. Prints how many it got, if it is still there then.
pub(super) fn take(kind: &str, most: u64, folder: &str) -> Result<(), String> {
    let mut files = Vec::new();
    let took = match kind {
        "locks" => count(most, |number| lock(number, folder, &mut files)),
        "netlink" => count(most, |_| full_netlink_socket()),
        _ => count(most, |_| socket(libc::AF_INET, libc::SOCK_DGRAM).map(drop)),
    };
    std::thread::sleep(STAY);
    println!("took {took}");
    Ok(())
}

/// One byte of a file, and none beside another: the kernel would join them.
fn lock(number: u64, folder: &str, files: &mut Vec<File>) -> Result<(), Errno> {
    const IN_A_FILE: u64 = 800;
    if number.is_multiple_of(IN_A_FILE) {
        let made = File::create(format!("{folder}/locked-{}-{number}", std::process::id()));
        files.push(made.map_err(|error| Errno(error.raw_os_error().unwrap_or_default()))?);
    }
    let file = files.last().ok_or(Errno(libc::EBADF))?;
    // struct flock: a lock for writing, from so many bytes, of one byte.
    let lock = [libc::F_WRLCK as u64, 2 * (number % IN_A_FILE), 1, 0];
    let place = lock.as_ptr().expose_provenance() as u64;
    call_named(libc::SYS_fcntl, [file.as_raw_fd() as u64, libc::F_SETLK as u64, place, 0, 0, 0]).map(drop)
}

/// Stays open as long as this process.
fn socket(family: i32, kind: i32) -> Result<u64, Errno> {
    call_named(libc::SYS_socket, [family as u64, kind as u64, 0, 0, 0, 0]).map(i64::cast_unsigned)
}

/// A socket whose receive queue is full of errors, each with the question that it answers.
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
