//! Stops every process that appears, so also a child of PID 1 before its `exec`, and reports whether PID 1 goes on.

use super::kernel::call_named;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for which new processes are stopped before they are examined.
const BURST: Duration = Duration::from_millis(20);

/// Time for which a start is held.
const HELD: Duration = Duration::from_secs(3);

/// Time limit for the whole attempt.
const LONGEST: Duration = Duration::from_secs(60);

/// Time limit for an answer. PID 1 answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Stops processes until one of them is a program that PID 1 is starting, holds that for a while, and continues it.
/// Prints first that it begins, then what it has stopped, and at last whether PID 1 has answered all the time.
pub(super) fn everything() -> Result<(), String> {
    println!("stopping");
    let asking = std::thread::spawn(longest_wait);
    let begun = Instant::now();
    let mut is_start = false;
    while !is_start && begun.elapsed() < LONGEST {
        let burst = Instant::now();
        while burst.elapsed() < BURST {
            signal_all(libc::SIGSTOP);
        }
        is_start = a_start_is_stopped();
        if is_start {
            std::thread::sleep(HELD);
        }
        signal_all(libc::SIGCONT);
        std::thread::sleep(BURST);
    }
    IS_OVER.store(true, Ordering::Relaxed);
    let longest = asking.join().map_err(|_| "the thread has failed")?.map_err(|error| error.to_string())?;
    println!("{}", if is_start { "stopped a start" } else { "stopped no start" });
    println!("{}", if longest < PATIENCE { "answered" } else { "no answer" });
    Ok(())
}

/// Returns true if a process that still has PID 1's name is stopped.
fn a_start_is_stopped() -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stats = numbers.filter_map(|number| std::fs::read_to_string(format!("/proc/{number}/stat")).ok());
    stats.into_iter().any(|stat| stat.contains("(belljar-init) T"))
}

/// Signals all processes except this one and PID 1.
fn signal_all(signal: libc::c_int) {
    let _ = call_named(libc::SYS_kill, [u64::MAX, signal as u64, 0, 0, 0, 0]);
}

/// Returns the longest time that PID 1 took to answer. The question is a call that sets a buffer size.
fn longest_wait() -> std::io::Result<Duration> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let size = [65_536_u32];
    let value = size.as_ptr().expose_provenance() as u64;
    let option = [socket.as_raw_fd() as u64, libc::SOL_SOCKET as u64, libc::SO_RCVBUF as u64, value, 4, 0];
    let mut longest = Duration::ZERO;
    while !IS_OVER.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let _ = call_named(libc::SYS_setsockopt, option);
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(longest)
}
