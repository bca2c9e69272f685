//! Classification of each engine's errors: after a passing failure, the operation may be retried.

use super::{EngineFailure, FailureKind};
use std::error::Error;
use std::io;

/// PostgreSQL's classes of passing errors: the first two of the five characters of an error code.
const PASSING: [&str; 7] = [
    "08", // connection
    "25", // read-only, among others
    "40", // serialization, deadlock
    "53", // resources
    "55", // locks that are not given
    "57", // shutdown, or time that is over
    "58", // the system around it
];

/// Returns true if the error means that the database file is damaged, or not SQLite's.
pub(super) fn is_damage(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let code = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(DatabaseCorrupt | NotADatabase))
}

impl EngineFailure for sqlx::Error {
    fn kind(&self) -> FailureKind {
        use sqlx::Error::{Database, Io, PoolClosed, PoolTimedOut, Protocol, Tls, WorkerCrashed};
        match self {
            Io(_) | PoolTimedOut | PoolClosed | WorkerCrashed | Tls(_) | Protocol(_) => {
                FailureKind::Unavailable
            }
            Database(error) => {
                let code = error.code().unwrap_or_default();
                let is_passing = code.get(..2).is_some_and(|class| PASSING.contains(&class));
                if is_passing { FailureKind::Unavailable } else { FailureKind::Refused }
            }
            _ => FailureKind::Refused,
        }
    }
}

impl EngineFailure for rusqlite::Error {
    fn kind(&self) -> FailureKind {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, FileLockingProtocolFailed, ReadOnly,
            SystemIoFailure,
        };
        match self.sqlite_error_code() {
            Some(
                CannotOpen
                | DatabaseBusy
                | DatabaseLocked
                | DiskFull
                | FileLockingProtocolFailed
                | ReadOnly
                | SystemIoFailure,
            ) => FailureKind::Unavailable,
            _ => FailureKind::Refused,
        }
    }
}

impl EngineFailure for rusqlite_migration::Error {
    fn kind(&self) -> FailureKind {
        match self {
            Self::RusqliteError { err, .. } => err.kind(),
            _ => FailureKind::Refused,
        }
    }
}

impl EngineFailure for io::Error {
    fn kind(&self) -> FailureKind {
        FailureKind::Unavailable
    }
}
