//! File tree that the host has laid out itself, and that no other process has written to.

use super::TreeTransferError;
use belljar_contract::workbench::{Bytes, TreeLine};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_git::TreeLimits;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// File tree laid out by the host, with its entries listed.
pub(in crate::command::mcp) struct HostTree<'l> {
    top: &'l Directory,
    /// Everything in it, directories before what is in them.
    entries: Vec<(PathBuf, FileType)>,
    /// How many files and links there are.
    pub(in crate::command::mcp) files: u64,
    /// How large the files are together.
    pub(in crate::command::mcp) size_bytes: u64,
}

// === impl HostTree ===

impl<'l> HostTree<'l> {
    /// Looks at all that is below a directory, if it is no more than that.
    pub(in crate::command::mcp) fn below(
        top: &'l Directory,
        limits: TreeLimits,
    ) -> Result<Self, TreeTransferError> {
        let mut laid = Self { top, entries: Vec::new(), files: 0, size_bytes: 0 };
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            let opened = if below.as_os_str().is_empty() { top.try_clone()? } else { top.open(&below)? };
            for name in opened.names(limits.files)? {
                let path = below.join(OsStr::from_bytes(name.name.as_bytes()));
                laid.note(&path, name.kind)?;
                if name.kind == FileType::Directory {
                    pending.push(path.clone());
                }
                laid.entries.push((path, name.kind));
                if laid.entries.len() > limits.files {
                    return Err(TreeTransferError::TooMuch { what: "files" });
                }
            }
        }
        match laid.size_bytes > limits.bytes {
            true => Err(TreeTransferError::TooMuch { what: "bytes" }),
            false => Ok(laid),
        }
    }

    fn note(&mut self, path: &Path, kind: FileType) -> Result<(), DirectoryError> {
        if kind != FileType::Directory {
            self.files += 1;
        }
        if kind == FileType::RegularFile {
            let stat = self.top.stat(path)?;
            self.size_bytes += stat.map_or(0, |stat| stat.st_size.unsigned_abs());
        }
        Ok(())
    }

    /// Tells it.
    pub(super) fn tell(&self, to: &mut dyn Write) -> io::Result<()> {
        for (path, kind) in &self.entries {
            let named = || Bytes(path.as_os_str().as_bytes().to_vec());
            match kind {
                FileType::Directory => tell(to, &TreeLine::Directory { path: named() })?,
                FileType::Symlink => {
                    let target = Bytes(self.top.read_link(path)?.into_bytes());
                    tell(to, &TreeLine::Link { path: named(), target })?;
                }
                _ => {
                    let file = self.top.open_file(path)?;
                    let metadata = file.metadata()?;
                    let is_executable = metadata.permissions().mode() & 0o100 != 0;
                    let size_bytes = metadata.len();
                    tell(to, &TreeLine::File { path: named(), is_executable, size_bytes })?;
                    if io::copy(&mut file.take(size_bytes), to)? != size_bytes {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        }
        tell(to, &TreeLine::End {})
    }
}

fn tell(to: &mut dyn Write, line: &TreeLine) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}
