//! Configuration of a server whose program is started.

use belljar_contract::yaml::{
    Members, MistakeLog, Node, Value, below, boolean, list, one_of, place, quoted, size, text,
    text_or_number, whole,
};
use belljar_sandbox::limits::Limits;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A server whose program is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioConfig {
    /// Its program: a name that is looked up in `PATH`, or an absolute path.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Its environment, without any other variables.
    pub env: BTreeMap<String, String>,
    /// Host paths that are mounted read-only, at the same place.
    pub lend: Vec<PathBuf>,
    /// Host folder at its `/workspace`.
    pub workspace: Option<Folder>,
    /// Memory limit, in bytes. Default: 1 GiB.
    pub memory_bytes: u64,
    /// Maximum number of processes and threads. Default: 128.
    pub processes: u64,
    /// True to run it on the host, without a sandbox.
    pub is_unsealed: bool,
}

/// A folder of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path.
    pub path: PathBuf,
    /// Treatment of writes.
    pub mode: FolderMode,
}

/// Treatment of writes to a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderMode {
    /// Writes go to an overlay, which is removed with the sandbox.
    Copy,
    /// Writes go to the folder itself.
    Direct,
}

/// Members that are read here.
pub(super) const MEMBERS: [&str; 8] =
    ["command", "args", "env", "lend", "workspace", "memory_limit", "pids_limit", "unsealed"];

// === impl StdioConfig ===

impl StdioConfig {
    /// Returns the resource limits of its sandbox.
    pub fn limits(&self) -> Limits {
        Limits { memory_bytes: Some(self.memory_bytes), processes: self.processes, ..Limits::default() }
    }

    /// Reads its members, which are on the same level as the common ones; `None` without `command`.
    pub(super) fn read(members: &mut Members<'_, '_>) -> Option<Self> {
        let command = members.optional("command", |node, log| {
            text(node, log, "a name without slashes, or the absolute path of a program", |text| {
                let is_meant = text.starts_with('/') || !text.contains('/');
                (is_meant && !text.is_empty() && !text.contains('\0')).then(|| text.to_owned())
            })
        });
        let args = members.or("args", Vec::new(), |node, log| {
            list(node, log, |node, log| {
                text_or_number(node, log, "an argument", |text| {
                    (!text.contains('\0')).then(|| text.to_owned())
                })
            })
        });
        let env = members.section("env", read_env);
        let lend = members.or("lend", Vec::new(), |node, log| list(node, log, read_path));
        let workspace = members.optional("workspace", Folder::read);
        let memory_bytes = members.or("memory_limit", 1 << 30, |node, log| size(node, log, 1 << 20));
        let processes = members.or("pids_limit", 128, |node, log| whole(node, log, 1..=100_000));
        let is_unsealed = members.or("unsealed", false, boolean);
        for name in ["workspace", "memory_limit", "pids_limit"].into_iter().filter(|_| is_unsealed) {
            let Some(node) = members.node(name) else { continue };
            // Limits that would have no effect are rejected.
            let found = format!("`{name}` beside `unsealed: true`");
            members.log.note(node.position, &node.path, found, "a sandbox, or neither of its limits");
        }
        Some(Self { command: command?, args, env, lend, workspace, memory_bytes, processes, is_unsealed })
    }
}

// === impl Folder ===

impl Folder {
    fn read(node: &Node, log: &mut MistakeLog) -> Option<Self> {
        const MODES: [(&str, FolderMode); 2] = [("copy", FolderMode::Copy), ("direct", FolderMode::Direct)];
        let mut members = Members::open(node, log)?;
        let path = members.required("path", read_path);
        let mode = members.or("mode", FolderMode::Copy, |node, log| one_of(node, log, &MODES));
        members.finish();
        Some(Self { path: path?, mode })
    }
}

pub(crate) fn read_path(node: &Node, log: &mut MistakeLog) -> Option<PathBuf> {
    text(node, log, "an absolute path without `.` and `..` that is not the root", |text| {
        let is_normal = |path: &str| path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let is_meant = text.strip_prefix('/').is_some_and(is_normal) && !text.contains('\0');
        is_meant.then(|| PathBuf::from(text))
    })
}

fn read_env(node: &Node, log: &mut MistakeLog) -> BTreeMap<String, String> {
    let Value::Mapping(members) = &node.value else {
        log.note(node.position, place(node), node.describe(), "a mapping");
        return BTreeMap::new();
    };
    let mut read = BTreeMap::new();
    for (key, value) in members {
        let path = below(&node.path, &key.name);
        let is_name =
            !key.name.is_empty() && key.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        // `PATH` is derived from the program's location.
        if !is_name || key.name == "PATH" {
            log.note(key.position, &path, quoted(&key.name), "the name of a variable other than PATH");
        }
        let value =
            text_or_number(value, log, "a text", |text| (!text.contains('\0')).then(|| text.to_owned()));
        let Some(value) = value else { continue };
        if read.insert(key.name.clone(), value).is_some() {
            log.note(key.position, &path, "it twice", "each once");
        }
    }
    read
}
