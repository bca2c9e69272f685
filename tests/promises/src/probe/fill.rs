//! Takes disk space in ways that a quota easily misses.

use super::kernel::{self, call_named};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const MEBIBYTE: usize = 1 << 20;

/// Takes this much below a folder and prints that it did; then it stays for a moment, so that the quota check sees it.
pub(super) fn take(kind: &str, folder: &str, mebibytes: &str) -> Result<(), String> {
    let count: usize = mebibytes.parse().map_err(|_| format!("{mebibytes} is no number"))?;
    std::env::set_current_dir(folder).map_err(|error| error.to_string())?;
    let filled = match kind {
        "plain" => plain("plain", count),
        "deleted" => deleted(count),
        "mapped" => mapped(count),
        "by-a-thread" => by_a_thread(count),
        "in-flight" => in_flight(count),
        "in-flight-by-others" => in_flight_by_others(count),
        "reserved" => reserved(count),
        "requested" => requested(count),
        "holes" => holes(count),
        "tiny" => tiny(count),
        "deep" => deep(count),
        "hidden" => hidden(count),
        _ => return Err(format!("don't know {kind}")),
    };
    filled.map_err(|error| error.to_string())?;
    println!("filled");
    std::thread::sleep(std::time::Duration::from_secs(4));
    println!("left alone");
    Ok(())
}

fn plain(name: &str, count: usize) -> std::io::Result<()> {
    let mut file = File::create(name)?;
    let chunk = vec![b'x'; MEBIBYTE];
    (0..count).try_for_each(|_| file.write_all(&chunk))
}

/// An open file without a name. It is freed when this process exits.
fn deleted(count: usize) -> std::io::Result<()> {
    std::mem::forget(unnamed("deleted", count)?);
    Ok(())
}

/// A mapped file without a name or a descriptor. It is freed when this process exits.
fn mapped(count: usize) -> std::io::Result<()> {
    let file = unnamed("mapped", count)?;
    let (read, shared) = (libc::PROT_READ as u64, libc::MAP_SHARED as u64);
    by_hand(libc::SYS_mmap, [0, MEBIBYTE as u64, read, shared, number(&file), 0])?;
    Ok(())
}

/// A file that is open in the descriptor table of a thread that doesn't share the process's table.
fn by_a_thread(count: usize) -> std::io::Result<()> {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let done = by_hand(libc::SYS_unshare, [libc::CLONE_FILES as u64, 0, 0, 0, 0, 0]);
        let file = done.and_then(|()| unnamed("by-a-thread", count));
        let is_there = file.as_ref().map(drop).map_err(|error| std::io::Error::from(error.kind()));
        let _ = tell.send(is_there);
        std::thread::sleep(std::time::Duration::from_secs(60));
        drop(file);
    });
    told.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::BrokenPipe.into()))
}

/// A file that is sent over a socket and never received, so that no descriptor table has it.
fn in_flight(count: usize) -> std::io::Result<()> {
    let (from, to) = std::os::unix::net::UnixStream::pair()?;
    send(&from, &unnamed("in-flight", count)?)?;
    std::mem::forget((from, to));
    Ok(())
}

fn send(from: &impl AsRawFd, file: &File) -> std::io::Result<()> {
    // One byte of a message, and one descriptor as ancillary data.
    let byte = [0_u8; 1];
    let part = [byte.as_ptr() as u64, byte.len() as u64];
    let rights = (libc::SCM_RIGHTS as u64) << 32 | libc::SOL_SOCKET as u64;
    let control = [20, rights, number(file)];
    let message = [0, 0, part.as_ptr() as u64, 1, control.as_ptr() as u64, 24, 0];
    by_hand(libc::SYS_sendmsg, [number(from), message.as_ptr() as u64, 0, 0, 0, 0])
}

/// Like [`in_flight`], but written by processes that no parent waits for: the kernel adds their written bytes to no
/// total.
fn in_flight_by_others(count: usize) -> std::io::Result<()> {
    kernel::ignore(libc::SIGCHLD);
    let (from, to) = std::os::unix::net::UnixStream::pair()?;
    for number in 0..count {
        let (mut done, says) = std::io::pipe()?;
        match kernel::fork().map_err(|error| std::io::Error::from_raw_os_error(error.0))? {
            None => {
                let sent = unnamed(&format!("others{number}"), 1).and_then(|file| send(&from, &file));
                let _ = (&says).write_all(&[u8::from(sent.is_ok())]);
                kernel::end(0)
            }
            Some(_) => {
                drop(says);
                let mut said = [0];
                done.read_exact(&mut said)?;
                if said != [1] {
                    return Err(std::io::ErrorKind::Other.into());
                }
            }
        }
    }
    std::mem::forget((from, to));
    Ok(())
}

/// Space that is reserved by one `fallocate` call.
fn reserved(count: usize) -> std::io::Result<()> {
    let file = File::create("reserved")?;
    by_hand(libc::SYS_fallocate, [number(&file), 0, 0, (count * MEBIBYTE) as u64, 0, 0])
}

/// Space that is reserved by an ioctl of the file system.
fn requested(count: usize) -> std::io::Result<()> {
    const FS_IOC_RESVSP64: u64 = 0x4030_582a;
    let file = File::create("requested")?;
    // struct space_resv: from the beginning, offset 0, this many bytes.
    let space = [0, 0, (count * MEBIBYTE) as u64, 0, 0, 0];
    let place = space.as_ptr().expose_provenance() as u64;
    by_hand(libc::SYS_ioctl, [number(&file), FS_IOC_RESVSP64, place, 0, 0, 0])
}

fn by_hand(call: libc::c_long, arguments: [u64; 6]) -> std::io::Result<()> {
    let made = call_named(call, arguments);
    made.map(drop).map_err(|error| std::io::Error::from_raw_os_error(error.0))
}

fn number(descriptor: &impl AsRawFd) -> u64 {
    u64::try_from(descriptor.as_raw_fd()).unwrap_or_default()
}

fn unnamed(name: &str, count: usize) -> std::io::Result<File> {
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open(name)?;
    fs::remove_file(name)?;
    let chunk = vec![b'x'; MEBIBYTE];
    (0..count).try_for_each(|_| file.write_all(&chunk))?;
    Ok(file)
}

/// A large sparse file that is filled little by little.
fn holes(count: usize) -> std::io::Result<()> {
    const APART: u64 = 64 << 20;
    let file = File::create("holes")?;
    file.set_len(1 << 40)?;
    let chunk = vec![b'x'; MEBIBYTE];
    (0..count as u64).try_for_each(|at| file.write_all_at(&chunk, at * APART))
}

/// Empty files, which take inodes and names only.
fn tiny(count: usize) -> std::io::Result<()> {
    const IN_A_FOLDER: usize = 1024;
    for folder in 0..count {
        fs::create_dir(format!("tiny{folder}"))?;
        for file in 0..IN_A_FOLDER {
            File::create(format!("tiny{folder}/{file}"))?;
        }
    }
    Ok(())
}

/// Nested directories, deeper than the maximum length of a path.
fn deep(count: usize) -> std::io::Result<()> {
    const IN_A_MEBIBYTE: usize = 256;
    for _ in 0..count * IN_A_MEBIBYTE {
        fs::create_dir("d")?;
        std::env::set_current_dir("d")?;
    }
    Ok(())
}

/// A file in a directory that its owner has made inaccessible.
fn hidden(count: usize) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir("hidden")?;
    plain("hidden/plain", count)?;
    fs::set_permissions("hidden", PermissionsExt::from_mode(0o0))
}
