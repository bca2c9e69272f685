//! The walls and PID 1.
//!
//! The only crate with `unsafe`. It implements mechanisms, not policy: the contents of a sandbox are given to it as a
//! [`plan::Plan`]; nothing in here knows jobs, policies or users.
//!
//! ```text
//! host                                   │ new user, mount, pid, net, ipc, uts, cgroup namespaces
//! launch ── clone3 ──────────────────────┼─► init (PID 1): walls, one after the other
//!    │                                   │      └─ fork ─► exec: the program
//!    │ ◄── Built ── inspected ── go ────►┤      reaps everything
//!    │ ◄── Started (or Failed: stage) ───┤
//!    │ ◄── Ended: status, usage ─────────┤      ends; the kernel kills what is left
//! ```

pub mod as_user;
pub mod execution;
pub mod group;
pub mod inner_init;
pub mod inspection;
pub mod launch;
pub mod launcher;
pub mod listing;
pub mod mount_preparation;
pub mod passed_descriptors;
pub mod plan;
pub mod process_group;
pub mod removal;
pub mod sealed;
pub mod seccomp;
pub mod stage;
pub mod supervised;
pub mod thread_state;

mod init;
mod kernel;
pub mod message;
mod reaping;
mod report;
mod walls;

pub use kernel::{ResourceUsage, landlock_abi};
