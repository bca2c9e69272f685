//! `sandboxing.subprocess`: programs of the host with less around them.

use super::sandboxing::{required_layers, timeout};
use crate::limits::Limits;
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, list, text};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The settings of the subprocess backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubprocessConfig {
    /// Time limit of a call.
    pub timeout: Duration,
    /// True if file access is restricted to the workspace.
    pub workspace_only: bool,
    /// True if `PATH` is restricted to directories known to be safe.
    pub restricted_path: bool,
    /// The variables of the host that are passed on, as patterns; the backend's own list, if this is nothing.
    pub env_allowlist: Option<Vec<String>>,
    /// The variables that never are, as patterns; the backend's own list, if this is nothing.
    pub env_denylist_patterns: Option<Vec<String>>,
    /// Further directories that count as safe.
    pub extra_safe_path_prefixes: Vec<PathBuf>,
    /// Layers that must be in force, or the sandbox isn't made.
    pub required: RequiredLayers,
}

// === impl SubprocessConfig ===

impl SubprocessConfig {
    /// Returns the resource limits of a sandbox. This backend limits neither memory nor processors: only the host does.
    pub fn limits(&self) -> Limits {
        Limits { memory_bytes: None, millicpus: None, disk_bytes: None, ..Limits::default() }
    }

    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let patterns = |node: &Node, log: &mut MistakeLog| list(node, log, pattern);
        let read = Self {
            timeout: members.or("timeout_seconds", default.timeout, timeout),
            workspace_only: members.or("workspace_only", default.workspace_only, boolean),
            restricted_path: members.or("restricted_path", default.restricted_path, boolean),
            env_allowlist: members.optional("env_allowlist", patterns),
            env_denylist_patterns: members.optional("env_denylist_patterns", patterns),
            extra_safe_path_prefixes: members
                .or("extra_safe_path_prefixes", Vec::new(), |node, log| list(node, log, prefix)),
            required: members.or("required", RequiredLayers::default(), required_layers),
        };
        members.finish();
        read
    }
}

impl Default for SubprocessConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            workspace_only: true,
            restricted_path: true,
            env_allowlist: None,
            env_denylist_patterns: None,
            extra_safe_path_prefixes: Vec::new(),
            required: RequiredLayers::default(),
        }
    }
}

fn pattern(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "a variable name pattern, with `*` for any characters, such as LC_*", |text| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '*' | '?');
        (!text.is_empty() && text.len() <= 128 && text.chars().all(is_name)).then(|| text.to_owned())
    })
}

fn prefix(node: &Node, log: &mut MistakeLog) -> Option<PathBuf> {
    let expected = "an absolute path without `.` and `..` that is not the root, such as /opt/tools/bin";
    text(node, log, expected, |text| {
        let parts = text.strip_prefix('/')?.trim_end_matches('/');
        let is_normal = parts.split('/').all(|part| !matches!(part, "" | "." | ".."));
        // A colon would make two entries of a PATH out of one.
        let is_plain = !text.contains(|c: char| c.is_control() || c == ':');
        (is_normal && is_plain).then(|| PathBuf::from(format!("/{parts}")))
    })
}
