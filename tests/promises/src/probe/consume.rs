//! Takes memory of every kind.

use super::kernel::call_named;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

const MEBIBYTE: usize = 1 << 20;

/// Takes this much memory, prints that it did, and frees it by exiting. First asks the OOM killer to kill this process
/// last.
pub(super) fn take(kind: &str, mebibytes: &str) -> Result<(), String> {
    let count: usize = mebibytes.parse().map_err(|_| format!("{mebibytes} is no number"))?;
    let said = |error: std::io::Error| error.to_string();
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let chunk = vec![b'x'; MEBIBYTE];
    match kind {
        "anonymous" => done(&(0..count).map(|_| chunk.clone()).collect::<Vec<_>>(), count),
        "children" => children(count).map_err(said)?,
        "files" => write(&mut File::create("/tmp/consumed").map_err(said)?, &chunk, count)?,
        "shared" => write(&mut File::create("/dev/shm/consumed").map_err(said)?, &chunk, count)?,
        "unnamed" => {
            let name = c"consumed".as_ptr().expose_provenance() as u64;
            let made = call_named(libc::SYS_memfd_create, [name, 0, 0, 0, 0, 0]);
            let descriptor = made.map_err(|errno| format!("memfd_create: {}", errno.0))?;
            let path = format!("/proc/self/fd/{descriptor}");
            write(&mut File::options().write(true).open(path).map_err(said)?, &chunk, count)?;
        }
        "page-tables" => page_tables(count)?,
        "sockets" => sockets(count).map_err(said)?,
        "tcp" => connections(count).map_err(said)?,
        "cache" => cache(&chunk, count).map_err(said)?,
        _ => return Err(format!("don't know {kind}")),
    }
    Ok(())
}

fn done<T>(held: &T, mebibytes: usize) {
    println!("took {mebibytes}");
    std::hint::black_box(held);
}

fn write(file: &mut File, chunk: &[u8], count: usize) -> Result<(), String> {
    for _ in 0..count {
        file.write_all(chunk).map_err(|error| error.to_string())?;
    }
    done(file, count);
    Ok(())
}

/// Takes memory in many children, none of which has much.
fn children(count: usize) -> std::io::Result<()> {
    const EACH: usize = 8;
    let own = std::env::current_exe()?;
    let mut children = Vec::new();
    for _ in 0..count.div_ceil(EACH) {
        let mut child = std::process::Command::new(&own);
        child.args(["consume", "held", &EACH.to_string()]);
        children
            .push(child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn()?);
    }
    for child in &mut children {
        if let Some(out) = &mut child.stdout {
            out.read_exact(&mut [0])?;
        }
    }
    done(&children, count);
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(())
}

/// Takes kernel memory in socket buffers.
fn sockets(count: usize) -> std::io::Result<()> {
    let (mut held, mut bytes) = (Vec::new(), 0);
    while bytes < count * MEBIBYTE {
        let (mut one, other) = UnixStream::pair()?;
        one.set_nonblocking(true)?;
        while let Ok(written) = one.write(&[0; 4096]) {
            bytes += written;
        }
        held.push((one, other));
    }
    done(&held, count);
    Ok(())
}

/// Takes page tables: one page of table for every 2 MiB of addresses, of which one page is read. Reads map the shared
/// zero page, which isn't charged to any process.
fn page_tables(count: usize) -> Result<(), String> {
    const OF_TABLE: u64 = 2 << 20;
    let tables = (count * MEBIBYTE / 4096) as u64;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let mapping = [0, tables * OF_TABLE, libc::PROT_READ as u64, flags as u64, u64::MAX, 0];
    let begin = call_named(libc::SYS_mmap, mapping).map_err(|errno| format!("mmap: {}", errno.0))? as u64;
    let advice = [begin, tables * OF_TABLE, libc::MADV_NOHUGEPAGE as u64, 0, 0, 0];
    call_named(libc::SYS_madvise, advice).map_err(|errno| format!("madvise: {}", errno.0))?;
    // The kernel reads a byte of each page.
    let (mut outcome, bytes) = std::io::pipe().map_err(|error| error.to_string())?;
    for table in 0..tables {
        let byte = [bytes.as_raw_fd() as u64, begin + table * OF_TABLE, 1, 0, 0, 0];
        call_named(libc::SYS_write, byte).map_err(|errno| format!("write: {}", errno.0))?;
        outcome.read_exact(&mut [0]).map_err(|error| error.to_string())?;
    }
    // PID 1 checks at intervals.
    std::thread::sleep(std::time::Duration::from_secs(2));
    done(&begin, count);
    Ok(())
}

/// Opens connections to this process that are never read. The kernel gives each some memory, even beyond a limit.
fn connections(count: usize) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (mut held, mut bytes) = (Vec::new(), 0);
    while bytes < count * MEBIBYTE {
        let one = TcpStream::connect(listener.local_addr()?)?;
        let (other, _) = listener.accept()?;
        for mut end in [&one, &other] {
            end.set_nonblocking(true)?;
            while let Ok(written) = end.write(&[0; 65_536]) {
                bytes += written;
            }
        }
        held.push((one, other));
    }
    // PID 1 checks at intervals; memory that is freed before a check was taken for a moment only.
    std::thread::sleep(std::time::Duration::from_secs(2));
    done(&held, count);
    Ok(())
}

/// Fills the page cache, which the kernel can reclaim.
fn cache(chunk: &[u8], count: usize) -> std::io::Result<()> {
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open("consumed")?;
    for _ in 0..count {
        file.write_all(chunk)?;
    }
    for _ in 0..2 {
        file.seek(SeekFrom::Start(0))?;
        std::io::copy(&mut file, &mut std::io::sink())?;
    }
    done(&file, count);
    Ok(())
}

/// Takes memory and keeps it until the process is killed.
pub(super) fn hold(mebibytes: &str) -> Result<(), String> {
    let count: usize = mebibytes.parse().map_err(|_| format!("{mebibytes} is no number"))?;
    let held = vec![b'x'; count * MEBIBYTE];
    done(&held, count);
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}
