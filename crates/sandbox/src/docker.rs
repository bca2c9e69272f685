//! The Docker backend: containers of an engine on this machine, made over its local socket.
//!
//! ```text
//! host                        engine                container
//! DockerBackend ── create ──► namespaces, mounts, ─► PID 1: our own program (inside)
//!                             control groups,         │ Landlock, filter, guard: as in a native sandbox
//!                             seccomp profile         ▼
//! Channel ◄══ attached ═════════════════════════════► relay: starts programs, carries what they read and write
//! ```
//! The engine puts up the walls that take root, and our own PID 1 adds the others. The result is measured from inside
//! before any program starts. The container needs nothing of the host's but one static file.

mod backend;
mod channel;
mod container;
mod container_hatches;
mod copier;
mod engine;
mod execution;
mod frame;
mod home;
mod inbox;
mod isolation;
mod measured;
pub mod own_program;
mod processes;
mod pump;
mod relay;
mod sandbox;
mod settings;
mod trust;
mod watched;

pub use backend::DockerBackend;
pub use settings::{DeploymentId, DockerSettings, ImageName, InvalidSetting};
