//! A launcher of sandboxes, for tests in crates that don't depend on the isolation code.

pub use belljar_confine::launcher::Launcher;
use std::sync::Arc;

/// Starts one. To be called before the first thread.
///
/// # Errors
/// Why there can be none.
pub fn start() -> Result<Arc<Launcher>, String> {
    Launcher::start().map(Arc::new).map_err(|error| error.to_string())
}
