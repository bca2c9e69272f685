//! Ways to wait forever. An alarm kills the probe after a while if the sandbox doesn't.

use super::kernel::{self, call_named};
use std::fs::File;
use std::os::fd::AsRawFd;

const LONGEST_SECONDS: u64 = 40;

/// Waits in some way for an event that doesn't come. `path` is a folder for files.
pub(super) fn forever(kind: &str, path: &str) -> Result<(), String> {
    let _ = call_named(libc::SYS_alarm, [LONGEST_SECONDS, 0, 0, 0, 0, 0]);
    println!("waiting");
    let said = |error: std::io::Error| error.to_string();
    match kind {
        "sleep" => std::thread::sleep(std::time::Duration::from_secs(LONGEST_SECONDS)),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "fifo" => {
            let name = std::ffi::CString::new(format!("{path}/fifo")).map_err(|error| error.to_string())?;
            let pointer = name.as_ptr().expose_provenance() as u64;
            let _ = call_named(libc::SYS_mknod, [pointer, u64::from(libc::S_IFIFO | 0o600), 0, 0, 0, 0]);
            File::open(format!("{path}/fifo")).map_err(said)?;
        }
        "lock" => {
            let lock = || File::create(format!("{path}/lock"));
            let (first, second) = (lock().map_err(said)?, lock().map_err(said)?);
            for file in [&first, &second] {
                let _ =
                    call_named(libc::SYS_flock, [file.as_raw_fd() as u64, libc::LOCK_EX as u64, 0, 0, 0, 0]);
            }
        }
        "deaf" => {
            (1..=64).for_each(kernel::ignore);
            loop {
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
        }
        "stopped" => {
            let own = u64::from(std::process::id());
            let _ = call_named(libc::SYS_kill, [own, libc::SIGSTOP as u64, 0, 0, 0, 0]);
        }
        _ => return Err(format!("don't know {kind}")),
    }
    Ok(())
}
