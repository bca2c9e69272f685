//! The subprocess backend, for tools of low risk: programs of the host on the host's own files, behind Landlock and a
//! system call filter, without namespaces.
//!
//! What a program sees is the host, and of that only what is listed: the system's programs and libraries, the workspace,
//! and a home and a temporary directory of its own. `/workspace`, `/tmp` and `/home/agent`, as callers name them, are
//! directories elsewhere; programs find theirs as working directory, `TMPDIR` and `HOME`.
//!
//! Nothing hides other processes' names and arguments but that `/proc` can't be read; and no limit holds for all
//! processes together. The isolation report says so, layer by layer.

mod backend;
pub mod environment;
mod isolation;
mod sandbox;
pub mod search_path;
pub mod settings;
mod view;

pub use backend::SubprocessBackend;
pub use belljar_confine::supervised::{Walls, main_inside};
pub use settings::SubprocessSettings;

/// The name under which an executable is the supervisor of a sandbox: it calls [`main_inside`] then, and nothing else.
pub const SUPERVISOR: &str = "belljar-supervisor";
