//! Sending a tree that the host has laid out.

use belljar_contract::workbench::{Bytes, TreeLine};
use belljar_files::tree::{HostTree, TreeEntry};
use rustix::fs::FileType;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;

/// Writes all entries of the tree, and the line that ends it.
pub(super) fn send(tree: &HostTree<'_>, to: &mut dyn Write) -> io::Result<()> {
    for TreeEntry { path, kind } in tree.entries() {
        let named = || Bytes(path.as_os_str().as_bytes().to_vec());
        match *kind {
            FileType::Directory => write_line(to, &TreeLine::Directory { path: named() })?,
            FileType::Symlink => {
                let target = Bytes(tree.target(path)?);
                write_line(to, &TreeLine::Link { path: named(), target })?;
            }
            _ => {
                let opened = tree.open(path)?;
                let (is_executable, size_bytes) = (opened.is_executable, opened.size_bytes);
                write_line(to, &TreeLine::File { path: named(), is_executable, size_bytes })?;
                if io::copy(&mut opened.file.take(size_bytes), to)? != size_bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
    write_line(to, &TreeLine::End {})
}

fn write_line(to: &mut dyn Write, line: &TreeLine) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}
