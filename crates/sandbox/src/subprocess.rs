//! The subprocess backend, for tools of low risk: programs of the host on the host's own files, behind Landlock and a
//! system call filter, without namespaces.
//!
//! A program sees only listed paths of the host: the system's programs and libraries, the workspace, and a home and a
//! temporary directory of its own. `/workspace`, `/tmp` and `/home/agent`, as callers name them, are directories elsewhere;
//! programs find theirs as working directory, `TMPDIR` and `HOME`.
//!
//! Other processes' names and arguments are hidden only because `/proc` can't be read, and no limit holds for all processes
//! together. The isolation report says so, layer by layer.

mod backend;
pub mod environment;
mod isolation;
mod sandbox;
pub mod search_path;
pub mod settings;
mod view;

pub use backend::SubprocessBackend;
pub use belljar_confine::supervised::{SupervisedWalls, main_inside};
pub use settings::SubprocessSettings;

/// Name under which an executable is the supervisor of a sandbox: it then only calls [`main_inside`].
pub const SUPERVISOR: &str = "belljar-supervisor";
