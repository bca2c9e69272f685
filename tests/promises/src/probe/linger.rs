//! Tries to make PID 1 the last holder of a socket whose `close` blocks. It passes the socket to the call that adds a
//! watch, with a path that takes long to resolve, and closes it meanwhile.

use super::kernel::call_named;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const TRIES: u64 = 39;
const LINGER_SECONDS: u64 = 60;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Prints first whether the close of such a socket blocks here, and then whether every question was answered.
pub(super) fn run(folder: &str) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let (socket, peer) = lingering().map_err(said)?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        drop(socket);
        let _ = tell.send(());
    });
    let waits = told.recv_timeout(Duration::from_millis(300)).is_err();
    println!("{}", if waits { "a close waits" } else { "a close doesn't wait" });
    drop(peer);
    let path = slow_path(folder).map_err(said)?;
    for number in 0..TRIES {
        if !is_answered(&path, Duration::from_micros(number % 13 * 200 + 100)).map_err(said)? {
            println!("no answer");
            return Ok(());
        }
    }
    println!("answered");
    Ok(())
}

fn is_answered(path: &str, until_close: Duration) -> std::io::Result<bool> {
    let (socket, peer) = lingering()?;
    let socket = socket.into_raw_fd() as u64;
    let path = std::ffi::CString::new(path)?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let path = path.as_ptr().expose_provenance() as u64;
        let _ = call_named(libc::SYS_inotify_add_watch, [socket, path, libc::IN_OPEN.into(), 0, 0, 0]);
        let _ = tell.send(());
    });
    let begun = Instant::now();
    while begun.elapsed() < until_close {
        std::hint::spin_loop();
    }
    let closing = std::thread::spawn(move || call_named(libc::SYS_close, [socket, 0, 0, 0, 0, 0]));
    let is_answered = told.recv_timeout(PATIENCE).is_ok();
    drop(peer);
    let _ = closing.join();
    Ok(is_answered)
}

/// Returns a socket whose close waits for the peer to read what was sent.
fn lingering() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut socket = TcpStream::connect(listener.local_addr()?)?;
    let (peer, _) = listener.accept()?;
    let linger = [1 | LINGER_SECONDS << 32];
    let option = linger.as_ptr().expose_provenance() as u64;
    let descriptor = socket.as_raw_fd() as u64;
    call_named(
        libc::SYS_setsockopt,
        [descriptor, libc::SOL_SOCKET as u64, libc::SO_LINGER as u64, option, 8, 0],
    )
    .map_err(|error| std::io::Error::from_raw_os_error(error.0))?;
    socket.set_nonblocking(true)?;
    // Sent data moves on to the peer's buffer for a while.
    while socket.write(&[0; 65_536]).is_ok() {
        while socket.write(&[0; 65_536]).is_ok() {}
        std::thread::sleep(Duration::from_millis(20));
    }
    socket.set_nonblocking(false)?;
    Ok((socket, peer))
}

/// Creates links that lead to links, each by a long path.
fn slow_path(folder: &str) -> std::io::Result<String> {
    const LINKS: usize = 30;
    let way = "./".repeat(1900);
    std::env::set_current_dir(folder)?;
    std::fs::create_dir_all("slow")?;
    std::env::set_current_dir("slow")?;
    std::fs::create_dir_all("l")?;
    let mut last = "l".to_owned();
    for number in 0..LINKS {
        let link = format!("l{number}");
        std::os::unix::fs::symlink(format!("{way}{last}"), &link)?;
        last = link;
    }
    Ok(format!("{way}{last}"))
}
