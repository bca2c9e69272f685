//! Configured tools, and warnings about those that can't be used.

use belljar_tools::Tool;
use belljar_tools::builtin::configured::config::ToolsConfig;
use belljar_tools::builtin::configured::{self, ConfiguredError};
use std::sync::Arc;

/// Returns the configured tools. Problems are logged, and the affected tools report them until they are solved.
pub(super) fn tools(config: &ToolsConfig) -> Result<Vec<Arc<dyn Tool>>, ConfiguredError> {
    let configured = configured::tools(config)?;
    for error in &configured.unusable {
        tracing::warn!(
            error = crate::chain(error),
            "something that tools are configured to use can't be used"
        );
    }
    Ok(configured.tools)
}
