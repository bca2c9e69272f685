//! Files by descriptor: nothing that a sandbox names leads out of the directory it is opened in.

#![forbid(unsafe_code)]

pub mod beneath;
pub mod directory;
pub mod host_path;
pub mod lock_file;
pub mod reserve;
pub mod tree;
