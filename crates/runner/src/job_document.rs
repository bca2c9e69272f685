//! Reading the job's document, from wherever it comes.

use crate::cancellation::Cancellation;
use crate::deadline::Interruption;
use crate::invocation::Transport;
use belljar_contract::json::MAX_DOCUMENT_BYTES;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// A document that could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadJobError {
    #[error("cannot read the job {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the job {} is not a regular file", path.display())]
    NoFile { path: PathBuf },
    #[error("cannot read the job from stdin")]
    Stdin {
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Interrupted(#[from] Interruption),
}

/// Reads the whole document. Of one that is too long, just enough is read to detect that.
pub(crate) fn read(transport: &Transport, cancellation: &Cancellation) -> Result<Vec<u8>, ReadJobError> {
    match transport {
        Transport::Files { job, .. } => read_file(job, cancellation),
        Transport::Stdio => {
            read_from(io::stdin().as_fd(), cancellation, |source| ReadJobError::Stdin { source })
        }
    }
}

fn read_file(path: &Path, cancellation: &Cancellation) -> Result<Vec<u8>, ReadJobError> {
    let failed = |source: io::Error| ReadJobError::File { path: path.to_owned(), source };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let stat = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ReadJobError::NoFile { path: path.to_owned() });
    }
    read_from(file.as_fd(), cancellation, failed)
}

fn read_from(
    source: BorrowedFd<'_>,
    cancellation: &Cancellation,
    describe: impl Fn(io::Error) -> ReadJobError,
) -> Result<Vec<u8>, ReadJobError> {
    const BUFFER_BYTES: usize = 64 << 10;
    let mut document = Vec::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    while document.len() <= MAX_DOCUMENT_BYTES {
        let mut polled =
            [PollFd::from_borrowed_fd(source, PollFlags::IN), PollFd::new(cancellation, PollFlags::IN)];
        match rustix::event::poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(describe(error.into())),
        }
        if cancellation.is_requested() {
            return Err(Interruption::Canceled.into());
        }
        match rustix::io::read(source, &mut buffer[..]) {
            Ok(0) => break,
            Ok(read) => document.extend_from_slice(&buffer[..read]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(describe(error.into())),
        }
    }
    Ok(document)
}
