//! Transfer of file trees into and out of a session. Belljar's runner in the session writes or lists the files, over pipes.
//!
//! ```text
//! files of the host's own ─► `send` ─► lines and contents ─► stdin of `put-tree` ─► the workspace
//! the workspace ─► stdout of `take-tree` ─► `receive`: limits, no link followed ─► files in a folder of the host's own
//! ```
//! Programs in the session can forge the listing and block the pipes indefinitely, so names, sizes and time are limited here.

mod pipe;
mod receive;
mod send;

use crate::command::session::own_runner;
use belljar_contract::path::{WORKSPACE, WorkspacePath};
use belljar_contract::workbench::{LONGEST_TREE_LINE_BYTES, PUT_TREE, RequestRefusal, TAKE_TREE, TreeLine};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::tree::{HostTree, TreeLimits};
use belljar_sandbox::session::{ProgramStreams, SessionClient, SessionError};
use belljar_tools::builtin::git::host::{CallBounds, ReadTree};
use pipe::{Pipe, TransferStop, pipes};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

/// Transfers trees for one call.
pub(super) struct TreeTransfer<'c> {
    pub(super) client: &'c SessionClient,
    pub(super) bounds: &'c CallBounds,
}

/// Errors of a tree transfer.
#[derive(Debug, thiserror::Error)]
pub(super) enum TreeTransferError {
    /// The session can't be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The runner in the session refused.
    #[error("{}", .0.message)]
    Refused(RequestRefusal),
    /// A file or directory on the host can't be read or created.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The transfer broke off.
    #[error("the transfer of the file tree broke off")]
    Broken {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The listing from the session is not a valid tree.
    #[error("the session's listing is not a valid file tree")]
    NoTree,
    /// The tree exceeds a limit.
    #[error("the file tree exceeds a limit of transfers: {what}")]
    TooMuch {
        /// Name of the exceeded limit.
        what: &'static str,
    },
    /// The deadline passed, or the caller stopped waiting.
    #[error("the transfer timed out or was canceled")]
    OutOfTime,
}

const BUFFERED_BYTES: usize = 64 << 10;

// === impl TreeTransfer ===

impl TreeTransfer<'_> {
    /// Puts a tree into the workspace, in a directory that isn't there yet or is empty: all of it, or nothing.
    pub(super) fn put(&self, tree: &HostTree<'_>, inside: &WorkspacePath) -> Result<(), TreeTransferError> {
        let feed = |to: &mut dyn Write| send::send(tree, to);
        self.carry((PUT_TREE, inside), feed, |from| match line(from)? {
            TreeLine::End {} => Ok(()),
            TreeLine::Refused(refused) => Err(TreeTransferError::Refused(refused)),
            _ => Err(TreeTransferError::NoTree),
        })
    }

    /// Copies a tree of the workspace into an empty directory of the host's own. Entries that are neither file, directory nor link
    /// are skipped, and named.
    pub(super) fn take(
        &self,
        inside: &WorkspacePath,
        to: Directory,
        limits: TreeLimits,
    ) -> Result<ReadTree, TreeTransferError> {
        let skipped =
            self.carry((TAKE_TREE, inside), |_| Ok(()), |from| receive::receive(from, &to, limits))?;
        Ok(ReadTree { top: to, skipped: skipped.named, skipped_count: skipped.count })
    }

    fn carry<T>(
        &self,
        (way, inside): (&str, &WorkspacePath),
        feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
        hear: impl FnOnce(&mut dyn BufRead) -> Result<T, TreeTransferError>,
    ) -> Result<T, TreeTransferError> {
        let ([input, output], ours) = pipes().map_err(|errno| broken(errno.into()))?;
        let [to, from] = ours;
        let nothing = File::options().write(true).open("/dev/null").map_err(broken)?;
        let place = if inside.is_root() { "." } else { inside.as_str() };
        let argv = [own_runner(self.client), way.into(), place.into()];
        let streams = ProgramStreams::Descriptors([input, output, nothing.into()]);
        let execution = self.client.exec(&argv, WORKSPACE, streams, Some(self.bounds.until))?;
        let stop = TransferStop::at(self.bounds);
        let heard = std::thread::scope(|scope| {
            let feeding = scope.spawn(|| {
                let mut to = BufWriter::with_capacity(BUFFERED_BYTES, Pipe::of(to, &stop));
                // Why it took no more is what it says.
                feed(&mut to).and_then(|()| to.flush())
            });
            let heard = hear(&mut BufReader::with_capacity(BUFFERED_BYTES, Pipe::of(from, &stop)));
            stop.now();
            let fed = feeding.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            match (heard, fed) {
                // A read error of the host's own source is not the session's fault.
                (Err(TreeTransferError::Refused(_) | TreeTransferError::NoTree), Err(source))
                    if !pipe::is_end(&source) =>
                {
                    Err(broken(source))
                }
                (heard, _) => heard,
            }
        });
        execution.kill();
        heard
    }
}

/// The next line.
fn line(from: &mut dyn BufRead) -> Result<TreeLine, TreeTransferError> {
    let mut bytes = Vec::new();
    from.take(LONGEST_TREE_LINE_BYTES as u64).read_until(b'\n', &mut bytes).map_err(broken)?;
    serde_json::from_slice(&bytes).map_err(|_| TreeTransferError::NoTree)
}

fn broken(source: io::Error) -> TreeTransferError {
    match source.kind() {
        io::ErrorKind::TimedOut => TreeTransferError::OutOfTime,
        _ => TreeTransferError::Broken { source },
    }
}
