//! The tools that there are by the configuration, and what of them can't be used as things are.

use belljar_tools::Tool;
use belljar_tools::builtin::configured::config::ToolsConfig;
use belljar_tools::builtin::configured::{self, ConfiguredError};
use std::sync::Arc;

/// Those that are configured. What can't be used is said, and its tools say so as long as it can't.
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
