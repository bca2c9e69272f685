//! Takes entries of kernel tables that all programs of the machine share, and keeps them.

mod polled;
mod uncharged;

use super::kernel::{self, Errno, call_named};
use std::fs::File;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Takes up to `most` entries of a kind, prints how many it got, and keeps them until standard input ends. Memory that no
/// table limits is kept for `seconds`.
pub(super) fn take(kind: &str, most: &str, folder: &str, seconds: Option<&str>) -> Result<(), String> {
    let most: u64 = most.parse().map_err(|_| format!("{most} is no number"))?;
    let mut children = Vec::new();
    let took = match kind {
        "udp" => return udp(most),
        "polled" => {
            keep(polled::take(most)?);
            return Ok(());
        }
        "locks" | "flocks" | "netlink" | "quiet-netlink" | "unbound" | "bound" | "orphans" | "listings" => {
            let seconds = seconds.and_then(|seconds| seconds.parse().ok()).ok_or("for how many seconds?")?;
            return uncharged::take(kind, most, folder, Duration::from_secs(seconds));
        }
        "filters" | "filters-without-a-name" | "filters-on-the-run" => {
            let (waiting, ending) = std::io::pipe().map_err(|error| error.to_string())?;
            let took = match kind {
                "filters-on-the-run" => filters_on_the_run(most, &waiting, &ending),
                _ => {
                    let is_named = kind == "filters";
                    count(most, |_| filter_in_a_child(&waiting, is_named, &mut children))
                }
            };
            keep(took);
            drop(ending);
            for child in children {
                let _ = kernel::wait_for(child);
            }
            return Ok(());
        }
        "contexts" => count(most, |_| io_context()),
        "terminals" => count(most, |_| terminal()),
        "instances" => count(most, |_| call_named(libc::SYS_inotify_init1, [0; 6]).map(drop)),
        "timers" => count(most, |_| timer()),
        "queues" => count(most, queue),
        "inodes" => count(most, |number| {
            let made = File::create(format!("{folder}/{number}"));
            made.map(drop).map_err(|error| Errno(error.raw_os_error().unwrap_or_default()))
        }),
        _ => return Err(format!("don't know {kind}")),
    };
    if kind == "queues" {
        for number in 0..took {
            let _ = unlink_queue(number);
        }
    }
    keep(took);
    Ok(())
}

fn count(most: u64, mut one: impl FnMut(u64) -> Result<(), Errno>) -> u64 {
    (0..most).take_while(|number| one(*number).is_ok()).count() as u64
}

fn keep(took: u64) {
    println!("took {took}");
    let _ = std::io::stdin().read(&mut [0]);
}

fn io_context() -> Result<(), Errno> {
    let mut context = 0_u64;
    let place = std::ptr::from_mut(&mut context).expose_provenance() as u64;
    call_named(libc::SYS_io_setup, [1, place, 0, 0, 0, 0]).map(drop)
}

fn terminal() -> Result<(), Errno> {
    let path = c"/dev/ptmx".as_ptr().expose_provenance() as u64;
    let flags = (libc::O_RDWR | libc::O_NOCTTY) as u64;
    call_named(libc::SYS_openat, [i64::from(libc::AT_FDCWD).cast_unsigned(), path, flags, 0, 0, 0]).map(drop)
}

fn timer() -> Result<(), Errno> {
    let mut id = 0_u64;
    let place = std::ptr::from_mut(&mut id).expose_provenance() as u64;
    call_named(libc::SYS_timer_create, [libc::CLOCK_MONOTONIC as u64, 0, place, 0, 0, 0]).map(drop)
}

fn queue_name(number: u64) -> std::ffi::CString {
    std::ffi::CString::new(format!("belljar-{}-{number}", std::process::id())).unwrap_or_default()
}

/// Creates a message queue of the default size, which is charged to its creator even while it is empty.
fn queue(number: u64) -> Result<(), Errno> {
    let name = queue_name(number);
    let pointer = name.as_ptr().expose_provenance() as u64;
    let flags = (libc::O_CREAT | libc::O_RDWR) as u64;
    call_named(libc::SYS_mq_open, [pointer, flags, 0o600, 0, 0, 0]).map(drop)
}

/// Unlinks a queue. The kernel frees it when its last descriptor is closed.
fn unlink_queue(number: u64) -> Result<i64, Errno> {
    let name = queue_name(number);
    call_named(libc::SYS_mq_unlink, [name.as_ptr().expose_provenance() as u64, 0, 0, 0, 0, 0])
}

/// Starts a child with a seccomp filter of its own that allows every call. However short it is, it counts as one
/// filter.
fn filter_in_a_child(
    waiting: &std::io::PipeReader,
    is_named: bool,
    children: &mut Vec<i32>,
) -> Result<(), Errno> {
    let (mut outcome, mut says) = std::io::pipe().map_err(|_| Errno(libc::EMFILE))?;
    match kernel::fork()? {
        None => {
            let installed = install_filter();
            if !is_named {
                name_that_is_no_text();
            }
            let _ = says.write_all(&[u8::from(installed.is_ok())]);
            drop(says);
            // Exits with the writing end in the parent, or with the parent.
            let _ = call_named(libc::SYS_close_range, [waiting.as_raw_fd() as u64 + 1, 1 << 20, 0, 0, 0, 0]);
            let _ = (&*waiting).read(&mut [0]);
            kernel::end(0)
        }
        Some(child) => {
            children.push(child);
            drop(says);
            let mut said = [0];
            let _ = outcome.read(&mut said);
            if said == [1] { Ok(()) } else { Err(Errno(libc::ENOMEM)) }
        }
    }
}

fn name_that_is_no_text() {
    let name = c"\xff\xfe\x80".as_ptr().expose_provenance() as u64;
    let _ = call_named(libc::SYS_prctl, [libc::PR_SET_NAME as u64, name, 0, 0, 0, 0]);
}

/// Takes filters in processes that start the next one and exit, again and again, without a parent that waits for them: a
/// process list easily misses them. Returns the number of filters.
/// a process list easily misses them.
fn filters_on_the_run(most: u64, waiting: &std::io::PipeReader, ending: &std::io::PipeWriter) -> u64 {
    const OF_EACH: u64 = 20;
    const MOST_CHAINS: u64 = 12;
    let _ = call_named(libc::SYS_prctl, [libc::PR_SET_CHILD_SUBREAPER as u64, 1, 0, 0, 0, 0]);
    kernel::ignore(libc::SIGCHLD);
    let mut took = 0;
    for _ in 0..MOST_CHAINS {
        let wanted = OF_EACH.min(most - took);
        let Ok((mut outcome, mut says)) = std::io::pipe() else { break };
        match kernel::fork() {
            Ok(None) => {
                let installed = count(wanted, |_| install_filter());
                let _ = says.write_all(&[installed as u8]);
                drop((outcome, says));
                let _ = call_named(libc::SYS_close, [ending.as_raw_fd() as u64, 0, 0, 0, 0, 0]);
                run_on(waiting)
            }
            Ok(Some(_)) => {
                drop(says);
                let mut said = [0];
                let _ = outcome.read(&mut said);
                took += u64::from(said[0]);
                // Leave time for a check.
                std::thread::sleep(Duration::from_millis(60));
            }
            Err(_) => break,
        }
    }
    took
}

/// Runs until the pipe ends.
fn run_on(waiting: &std::io::PipeReader) -> ! {
    loop {
        if !matches!(kernel::fork(), Ok(None)) {
            kernel::end(0);
        }
        let mut polled = [waiting.as_raw_fd() as u64 | (libc::POLLIN as u64) << 32];
        let wait = [0_u64, 100_000];
        let (list, wait) = (polled.as_mut_ptr().expose_provenance(), wait.as_ptr().expose_provenance());
        let ready = call_named(libc::SYS_ppoll, [list as u64, 1, wait as u64, 0, 0, 0]);
        if ready != Ok(0) {
            kernel::end(0);
        }
    }
}

fn install_filter() -> Result<(), Errno> {
    const RETURN_ALLOW: u64 = 0x7fff_0000 << 32 | 0x06;
    let program = [RETURN_ALLOW];
    let program = [program.len() as u64, program.as_ptr().expose_provenance() as u64];
    let pointer = program.as_ptr().expose_provenance() as u64;
    call_named(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0])?;
    call_named(libc::SYS_seccomp, [libc::SECCOMP_SET_MODE_FILTER.into(), 0, pointer, 0, 0, 0]).map(drop)
}

/// Fills receive buffers with datagrams, up to this many mebibytes of kernel memory, until the kernel keeps no more.
fn udp(most_mebibytes: u64) -> Result<(), String> {
    const SO_MEMINFO: u64 = 55;
    static DATAGRAM: [u8; 32_000] = [0; 32_000];
    let said = |error: std::io::Error| error.to_string();
    let (mut held, mut bytes) = (Vec::new(), 0);
    while bytes < most_mebibytes << 20 {
        let receiver = UdpSocket::bind("127.0.0.1:0").map_err(said)?;
        let sender = UdpSocket::bind("127.0.0.1:0").map_err(said)?;
        sender.connect(receiver.local_addr().map_err(said)?).map_err(said)?;
        for _ in 0..8 {
            let _ = sender.send(&DATAGRAM);
        }
        let (mut numbers, mut length) = ([0_u32; 9], size_of::<[u32; 9]>() as u32);
        let to = numbers.as_mut_ptr().expose_provenance() as u64;
        let size = std::ptr::from_mut(&mut length).expose_provenance() as u64;
        let descriptor = receiver.as_raw_fd() as u64;
        call_named(libc::SYS_getsockopt, [descriptor, libc::SOL_SOCKET as u64, SO_MEMINFO, to, size, 0])
            .map_err(|errno| format!("getsockopt: {}", errno.0))?;
        // The first number is the memory that the receive buffer holds.
        if numbers[0] == 0 {
            break;
        }
        bytes += u64::from(numbers[0]);
        held.push(receiver);
    }
    keep(bytes >> 20);
    Ok(())
}
