//! Facts about this machine, and its utilization.

use belljar_contract::worker::telemetry::{CpuStats, DiskStats, MemoryStats, Platform};
use std::num::NonZero;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// Free space in bytes below which a disk counts as full. Records of a job take less.
const LEAST_ROOM_BYTES: u64 = 256 << 10;

/// The operating system.
pub(crate) fn platform() -> Platform {
    let kernel = rustix::system::uname();
    Platform {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        kernel_version: kernel.release().to_string_lossy().into_owned(),
    }
}

/// The machine's host name.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Processors and load.
pub(crate) fn cpu() -> CpuStats {
    /// The kernel's fixed-point unit of load averages.
    const UNIT: f64 = 65_536.0;
    let loads = rustix::system::sysinfo().loads;
    let [load1, load5, load15] = loads.map(|load| load as f64 / UNIT);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    CpuStats { cores: u32::try_from(cores).unwrap_or(u32::MAX), load1, load5, load15 }
}

/// Memory. Memory that the kernel can reclaim at any time counts as free.
pub(crate) fn memory() -> MemoryStats {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or_default()
            / 1_024
    };
    let (total_mb, free_mb) = (of("MemTotal"), of("MemAvailable"));
    MemoryStats { total_mb, used_mb: total_mb.saturating_sub(free_mb), free_mb }
}

/// The file system that a directory is on.
pub(crate) fn disk(directory: &Path) -> std::io::Result<DiskStats> {
    let found = rustix::fs::statvfs(directory)?;
    let mib = |blocks: u64| blocks.saturating_mul(found.f_frsize) / MIB;
    Ok(DiskStats { state_dir_free_mb: mib(found.f_bavail), state_dir_total_mb: mib(found.f_blocks) })
}

/// Returns true if the file system that a directory is on has no room for records.
pub(crate) fn is_full(directory: &Path) -> bool {
    rustix::fs::statvfs(directory)
        .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < LEAST_ROOM_BYTES)
}
