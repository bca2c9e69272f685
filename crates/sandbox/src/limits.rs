//! Resource limits of a sandbox, and the limit that it has exceeded.

pub use belljar_contract::limit::Limit;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Resource limits of a sandbox as a whole. For `None`, only the host limits the resource, and the isolation report says
/// so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory, including files in memory, in bytes. Exceeding it is an OOM kill of the whole sandbox.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: u64,
    /// Processor time, in thousandths of one processor: 1500 is one and a half.
    pub millicpus: Option<u32>,
    /// Open files of one process.
    pub open_files: u64,
    /// Disk quota: growth of its directories on the host's disk (the workspace, `/job`) beyond their initial size, in
    /// bytes.
    pub disk_bytes: Option<u64>,
    /// Total size of `/tmp`, the home directory, shared memory and an empty workspace, in bytes. They hold one file,
    /// directory or link for each 4 KiB of that.
    pub scratch_bytes: u64,
    /// Pseudo-terminals (PTYs).
    pub terminals: u64,
    /// Seccomp filters that its programs have installed.
    pub filters: u64,
}

/// An amount of memory or of files, shown and read as people write it: `512m`, `1.5g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a positive number of bytes, or one with k, m, g or t, not {text:?}")]
pub struct BytesError {
    /// The text.
    pub text: String,
}

/// Time that the processes of a sandbox have to kill a program: 5 s. Then the whole sandbox is killed.
pub const KILL_LIMIT: Duration = Duration::from_secs(5);

/// The least memory of a sandbox, in bytes; it is Docker's own.
pub const LEAST_MEMORY: u64 = 6 << 20;

/// The least that a native sandbox may hold in memory file systems, in bytes: its root is one of them.
pub const LEAST_NATIVE_SCRATCH: u64 = 1 << 20;

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: Some(4 << 30),
            processes: 1_024,
            millicpus: None,
            open_files: 65_536,
            disk_bytes: Some(8 << 30),
            scratch_bytes: 1 << 30,
            terminals: 64,
            filters: 64,
        }
    }
}

// === impl Bytes ===

const UNITS: [(char, u32); 4] = [('t', 40), ('g', 30), ('m', 20), ('k', 10)];

impl std::str::FromStr for Bytes {
    type Err = BytesError;

    /// Units are powers of 1024, of either case; `b`, `ib` may follow them.
    fn from_str(text: &str) -> Result<Self, BytesError> {
        let wrong = || BytesError { text: text.to_owned() };
        let lower = text.to_ascii_lowercase();
        let bare = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b')).unwrap_or(&lower);
        let unit = UNITS.iter().find_map(|(sign, shift)| Some((bare.strip_suffix(*sign)?, *shift)));
        let (number, shift) = unit.unwrap_or((bare, 0));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 || lower.starts_with('+') {
            return Err(wrong());
        }
        let parts = 10_u64.pow(u32::try_from(fraction.len()).map_err(|_| wrong())?);
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let fraction: u64 = fraction.parse().map_err(|_| wrong())?;
        let size = u128::from(1_u64 << shift);
        let bytes = u128::from(whole) * size + u128::from(fraction) * size / u128::from(parts);
        match u64::try_from(bytes) {
            Ok(bytes) if bytes > 0 => Ok(Self(bytes)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, shift)| self.0 >= 1 << shift);
        let Some((sign, shift)) = unit else { return write!(f, "{} B", self.0) };
        let tenths = u128::from(self.0) * 10 / u128::from(1_u64 << shift);
        let sign = sign.to_ascii_uppercase();
        match tenths % 10 {
            0 => write!(f, "{} {sign}iB", tenths / 10),
            rest => write!(f, "{}.{rest} {sign}iB", tenths / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let amounts = [
            ("1", 1),
            ("512m", 512 << 20),
            ("512M", 512 << 20),
            ("1.5g", 3 << 29),
            ("64KiB", 64 << 10),
            ("2tb", 2 << 40),
            ("0.5k", 512),
        ];
        for (text, bytes) in amounts {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for wrong in [
            "",
            "0",
            "-1",
            "+1",
            "m",
            "1x",
            "1 m",
            ".5g",
            "5.g",
            "1e9",
            "99999999999999999999",
            "9999999999t",
        ] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_shown_as_people_write_them() {
        let shown = [1, 1023, 1024, 3 << 29, 4 << 30].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(shown, ["1 B", "1023 B", "1 KiB", "1.5 GiB", "4 GiB"]);
    }
}
