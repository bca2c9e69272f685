//! Lists of processes and threads in `/proc`, as they are at one moment.
//!
//! The kernel lists processes in the order of their ids. A program that forks without pause always has one with a higher id than
//! the last that was listed. A reader that looks at each process before it reads on may never come to the end of such a list.

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::Errno;
use std::ffi::CStr;

/// Size of the buffer for one read, in bytes. A directory entry takes at least 24 bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// The fixed part of an entry: inode, offset, length, type.
const ENTRY_HEADER_BYTES: usize = 19;

/// Maximum number of reads that return less than half a buffer. The first one has all processes that there were before it, unless a
/// signal cut it short.
const MOST_SHORT_READS: usize = 8;

/// Returns the numbers among the names in a directory of `/proc`: process ids, thread ids, or descriptors.
///
/// # Errors
/// The kernel's, when the directory can't be read: [`Errno::NOENT`] or [`Errno::SRCH`] if its process is gone.
pub fn numbers_in(path: &str) -> Result<Vec<i32>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, path, flags, Mode::empty())?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let (mut numbers, mut read_bytes, mut short_reads) = (Vec::new(), 0, 0);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        read_bytes += entry_bytes(name);
        numbers.extend(name.to_str().ok().and_then(|name| name.parse::<i32>().ok()));
        if entries.is_buffer_empty() {
            short_reads += usize::from(read_bytes < BUFFER_BYTES / 2);
            read_bytes = 0;
            if short_reads == MOST_SHORT_READS {
                break;
            }
        }
    }
    Ok(numbers)
}

fn entry_bytes(name: &CStr) -> usize {
    (ENTRY_HEADER_BYTES + name.to_bytes_with_nul().len()).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn task_listing_across_several_reads_returns_every_thread_id() {
        let own = rustix::process::getpid().as_raw_pid();
        assert!(numbers_in("/proc").unwrap().contains(&own));
        assert_eq!(numbers_in("/proc/self/task/0"), Err(Errno::NOENT));
        // A buffer has room for about 2 000 entries.
        const THREADS: usize = 5_000;
        let listed = std::thread::scope(|scope| {
            let ends: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (end, waits) = channel::<()>();
                    let thread = std::thread::Builder::new().stack_size(16 << 10);
                    thread.spawn_scoped(scope, move || waits.recv()).unwrap();
                    end
                })
                .collect();
            let listed = numbers_in("/proc/self/task").unwrap();
            drop(ends);
            listed
        });
        assert!(listed.len() > THREADS, "{}", listed.len());
        assert!(listed.contains(&own));
    }

    #[test]
    fn directory_entry_size_matches_the_kernel() {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let directory =
            openat(CWD, "/proc/self/task", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        let mut offsets = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry.unwrap();
            offsets.push((entry.file_name().as_ptr().addr(), entry_bytes(entry.file_name())));
        }
        // Names stand at the same place in each entry: `.`, `..`, and at least this thread.
        assert!(offsets.len() >= 3);
        assert!(offsets.windows(2).all(|two| two[1].0 - two[0].0 == two[0].1), "{offsets:?}");
    }
}
