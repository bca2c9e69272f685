//! The files that belljar obeys on the host, and the workspaces that sandboxes write directly: one must not be in the other.

use crate::configuration::candidates;
use crate::error::CliError;
use crate::state;
use belljar_contract::yaml::{self, Log, Node, Value};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::trusted_file::{self, UntrustedFileError};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The keys of a credential's source. A mapping with nothing else is one.
const SOURCE: [&str; 3] = ["env", "file", "command"];

/// Keys below which paths are what sandboxes see, or data: the host obeys none of it.
const NOT_OBEYED: [&str; 7] =
    ["agents", "lend", "path", "command", "argv", "database", "extra_safe_path_prefixes"];

/// Opens a file that belljar obeys, if no sandbox and no other user can write it.
pub(crate) fn open(path: &Path) -> Result<File, CliError> {
    state::open();
    trusted_file::open(path).map_err(|error| untrusted(path, error))
}

/// Checks a file that belljar obeys, and that is read elsewhere.
pub(crate) fn check(path: &Path) -> Result<(), CliError> {
    state::open();
    trusted_file::check(path).map(drop).map_err(|error| untrusted(path, error))
}

/// Refuses a policy that lies where the sandbox writes: it would be its own.
pub(crate) fn check_outside(path: &Path, workspace: &WorkspaceChoice) -> Result<(), CliError> {
    let WorkspaceChoice::Direct(directory) = workspace else { return Ok(()) };
    trusted_file::check_outside(path, directory.as_path()).map_err(|error| untrusted(path, error))
}

fn untrusted(path: &Path, error: UntrustedFileError) -> CliError {
    CliError::read(path, error.into())
}

/// Checks the files that a configuration names: credentials and the programs that print them, authorities, secrets.
pub(crate) fn check_named(document: &[u8]) -> Result<(), CliError> {
    // Mistakes are told by those who read the document for what it says.
    let Some(root) = yaml::parse(document, &mut Log::default()) else { return Ok(()) };
    let mut named = Vec::new();
    collect(&root, &mut named);
    named.iter().try_for_each(|path| check(path))
}

fn collect(node: &Node, named: &mut Vec<PathBuf>) {
    match &node.value {
        Value::Plain(text) | Value::Text(text) => {
            let path = Path::new(text);
            if path.is_absolute() && path.is_file() {
                named.push(path.to_owned());
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| collect(item, named)),
        Value::Mapping(members) => {
            let is_source = members.iter().all(|(key, _)| SOURCE.contains(&key.name.as_str()));
            for (key, value) in members {
                match (is_source, key.name.as_str()) {
                    (true, "command") => collect_command(value, named),
                    (_, name) if NOT_OBEYED.contains(&name) => {}
                    _ => collect(value, named),
                }
            }
        }
    }
}

/// The program of a command, and every argument that is a file: the program may run it.
fn collect_command(node: &Node, named: &mut Vec<PathBuf>) {
    let Value::Sequence(items) = &node.value else { return };
    for (at, item) in items.iter().enumerate() {
        let (Value::Plain(text) | Value::Text(text)) = &item.value else { continue };
        let path = Path::new(text);
        if at == 0 && !text.contains('/') {
            named.extend(on_search_path(text));
        } else if path.is_file() {
            named.push(path.to_owned());
        }
    }
}

/// The program that a name means, as it is found when it is run.
fn on_search_path(name: &str) -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH")?;
    std::env::split_paths(&search_path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Registers the workspace if a sandbox writes it directly. It is refused if belljar obeys a file in it, or would obey one that the
/// sandbox could put there, or keeps its state there.
pub(crate) fn lend(workspace: &WorkspaceChoice) -> Result<(), CliError> {
    let WorkspaceChoice::Direct(directory) = workspace else { return Ok(()) };
    let directory = directory.as_path();
    let mut places = candidates();
    places.push(state::open().path().join("runs"));
    // Both may have been said relative to the working directory.
    let places: Vec<PathBuf> = places.iter().filter_map(|place| std::path::absolute(place).ok()).collect();
    trusted_file::lend_workspace(directory, &places).map_err(|error| CliError::usage(error.to_string()))
}
