//! Reports of PID 1 to the host, over a socket that nothing else in the sandbox has.

use crate::inspection::SelfReport;
use crate::kernel::ResourceUsage;
use crate::stage::Stage;
use rustix::io::Errno;
use std::time::Duration;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The sandbox can't be built.
    Failed {
        stage: Stage,
        errno: Errno,
        /// Subject of the failed operation, such as a path.
        subject: String,
    },
    /// Every wall stands, and nothing but PID 1 runs. A program waits for the host's release.
    Built(SelfReport),
    /// The program runs.
    Started {
        /// End of each stage, in nanoseconds of the monotonic clock.
        marks: Vec<(Stage, u64)>,
        landlock_abi: u32,
    },
    /// Every wall of a sandbox without namespaces stands around its starter.
    Supervised {
        /// The starter's number.
        starter: i32,
        landlock_abi: u32,
    },
    /// The program has ended, and so will everything else in the sandbox.
    Ended {
        /// Wait status, as `wait4` returns it.
        status: i32,
        usage: ResourceUsage,
    },
    /// Memory has run out, and everything in the sandbox was killed for it.
    OutOfMemory { usage: ResourceUsage },
}

/// A subject longer than this is cut.
const LONGEST_SUBJECT: usize = 2048;

const FAILED: u8 = 1;
const STARTED: u8 = 2;
const ENDED: u8 = 3;
const OUT_OF_MEMORY: u8 = 4;
const BUILT: u8 = 5;
const SUPERVISED: u8 = 6;

/// Sent by the host when the program may begin.
pub(crate) const GO: u8 = 1;

// === impl Report ===

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Failed { stage, errno, subject } => {
                let mut bytes = vec![FAILED, *stage as u8];
                bytes.extend(errno.raw_os_error().to_le_bytes());
                bytes.extend(subject.bytes().take(LONGEST_SUBJECT));
                bytes
            }
            Self::Built(testimony) => [vec![BUILT], testimony.encode()].concat(),
            Self::Started { marks, landlock_abi } => {
                let mut bytes = vec![STARTED];
                bytes.extend(landlock_abi.to_le_bytes());
                for (stage, nanoseconds) in marks {
                    bytes.push(*stage as u8);
                    bytes.extend(nanoseconds.to_le_bytes());
                }
                bytes
            }
            Self::Supervised { starter, landlock_abi } => {
                let mut bytes = vec![SUPERVISED];
                bytes.extend(starter.to_le_bytes());
                bytes.extend(landlock_abi.to_le_bytes());
                bytes
            }
            Self::Ended { status, usage } => {
                let mut bytes = vec![ENDED];
                bytes.extend(status.to_le_bytes());
                put_usage(&mut bytes, usage);
                bytes
            }
            Self::OutOfMemory { usage } => {
                let mut bytes = vec![OUT_OF_MEMORY];
                put_usage(&mut bytes, usage);
                bytes
            }
        }
    }

    /// `None` for bytes that no `encode` made.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            FAILED => {
                let [stage] = take(&mut rest)?;
                let errno = Errno::from_raw_os_error(i32::from_le_bytes(take(&mut rest)?));
                let subject = String::from_utf8_lossy(rest).into_owned();
                Some(Self::Failed { stage: Stage::from_byte(stage)?, errno, subject })
            }
            BUILT => SelfReport::decode(rest).map(Self::Built),
            STARTED => {
                let landlock_abi = u32::from_le_bytes(take(&mut rest)?);
                let mut marks = Vec::new();
                while !rest.is_empty() {
                    let [stage] = take(&mut rest)?;
                    marks.push((Stage::from_byte(stage)?, u64::from_le_bytes(take(&mut rest)?)));
                }
                Some(Self::Started { marks, landlock_abi })
            }
            SUPERVISED => {
                let starter = i32::from_le_bytes(take(&mut rest)?);
                Some(Self::Supervised { starter, landlock_abi: u32::from_le_bytes(take(&mut rest)?) })
            }
            ENDED => {
                let status = i32::from_le_bytes(take(&mut rest)?);
                Some(Self::Ended { status, usage: take_usage(&mut rest)? })
            }
            OUT_OF_MEMORY => Some(Self::OutOfMemory { usage: take_usage(&mut rest)? }),
            _ => None,
        }
    }
}

fn put_usage(bytes: &mut Vec<u8>, usage: &ResourceUsage) {
    bytes.extend(u64::try_from(usage.cpu.as_micros()).unwrap_or(u64::MAX).to_le_bytes());
    bytes.extend(usage.max_rss_bytes.to_le_bytes());
}

fn take_usage(bytes: &mut &[u8]) -> Option<ResourceUsage> {
    let cpu = Duration::from_micros(u64::from_le_bytes(take(bytes)?));
    Some(ResourceUsage { cpu, max_rss_bytes: u64::from_le_bytes(take(bytes)?) })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_encoding_round_trips() {
        let reports = [
            Report::Failed { stage: Stage::Root, errno: Errno::NOENT, subject: "usr".to_owned() },
            Report::Started { marks: vec![(Stage::Clone, 1), (Stage::Exec, u64::MAX)], landlock_abi: 7 },
            Report::Supervised { starter: 10, landlock_abi: 7 },
            Report::Ended {
                status: 9,
                usage: ResourceUsage { cpu: Duration::from_micros(5), max_rss_bytes: 6 },
            },
            Report::OutOfMemory { usage: ResourceUsage { cpu: Duration::from_micros(7), max_rss_bytes: 8 } },
        ];
        for report in reports {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(Report::decode(&[]), None);
        assert_eq!(Report::decode(&[STARTED, 0, 0]), None);
    }
}
