//! The files that a document names, such as a configuration or a policy: credentials, programs that print them, authorities.

mod local;

use crate::trusted_file::{self, Found, Role, UntrustedFileError};
use belljar_contract::yaml::{self, Log, Node, Value};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The keys of a credential's source. A mapping with nothing else is one.
const SOURCE: [&str; 3] = ["env", "file", "command"];

/// Keys below which paths are what sandboxes see, or of the web, or data: the host obeys none of it.
const NOT_OBEYED: [&str; 8] =
    ["agents", "lend", "path", "paths", "command", "argv", "database", "extra_safe_path_prefixes"];

/// Checks the files that a document in YAML names, and registers them. Those that are missing must not be where a sandbox could put
/// them; they are checked again when they are used.
///
/// # Errors
/// [`UntrustedFileError`] if a sandbox or another user could write one of them.
pub fn check(document: &[u8]) -> Result<(), UntrustedFileError> {
    Named::of(document).iter().try_for_each(|(path, role)| match trusted_file::expect(path, *role)? {
        Found::File => trusted_file::check(path).map(drop),
        Found::Directory | Found::Nothing => Ok(()),
    })
}

/// Registers what a document names without refusing it: for those who read the document for nothing else.
pub fn register(document: &[u8]) {
    for (path, role) in Named::of(document) {
        // The process that obeys it reports what is wrong with it.
        let _ = trusted_file::expect(&path, role);
    }
}

/// The absolute paths in an argument, which a program may read or run. What a shell makes of variables and relative paths isn't seen.
pub(crate) fn paths_in(argument: &OsStr) -> Vec<PathBuf> {
    const BETWEEN: &[u8] = b" \t\n:;,='\"()<>|&`[]{}@";
    let bytes = argument.as_bytes();
    let value = bytes.iter().position(|byte| *byte == b'=').and_then(|at| bytes.get(at + 1..));
    let whole = [Some(bytes), value].into_iter().flatten();
    let mut parts: Vec<&[u8]> = whole.chain(bytes.split(|byte| BETWEEN.contains(byte))).collect();
    // `-fFILE`
    let of_flags: Vec<&[u8]> = parts
        .iter()
        .filter(|part| part.starts_with(b"-"))
        .filter_map(|part| part.get(part.iter().position(|byte| *byte == b'/')?..))
        .collect();
    parts.extend(of_flags);
    parts.dedup();
    parts.into_iter().filter_map(absolute).collect()
}

/// A path that begins at the root or at home.
fn absolute(part: &[u8]) -> Option<PathBuf> {
    if part.starts_with(b"/") {
        return Some(PathBuf::from(OsStr::from_bytes(part)));
    }
    let home = PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?);
    let below = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|home| part.strip_prefix(home.as_bytes()))?;
    Some(home.join(OsStr::from_bytes(below)))
}

/// The program that a name means: the first on the search path that is there.
fn on_search_path(name: &str) -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH")?;
    std::env::split_paths(&search_path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

fn is_true(node: &Node) -> bool {
    matches!(&node.value, Value::Plain(text) if text == "true")
}

/// What a document names, each with its role.
#[derive(Default)]
struct Named(Vec<(PathBuf, Role)>);

// === impl Named ===

impl Named {
    fn of(document: &[u8]) -> Vec<(PathBuf, Role)> {
        let mut named = Self::default();
        // Mistakes are told by those who read the document for what it says.
        if let Some(root) = yaml::parse(document, &mut Log::default()) {
            named.collect(&root);
        }
        named.0
    }

    fn collect(&mut self, node: &Node) {
        match &node.value {
            Value::Plain(text) | Value::Text(text) => {
                self.0.extend(local::paths(text).into_iter().map(|path| (path, Role::File)));
            }
            Value::Sequence(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Mapping(members) => {
                let is_source = members.iter().all(|(key, _)| SOURCE.contains(&key.name.as_str()));
                // A server of tools that runs on the host itself.
                let is_unsealed = members.iter().any(|(key, value)| key.name == "unsealed" && is_true(value));
                for (key, value) in members {
                    match (is_source || is_unsealed, key.name.as_str()) {
                        (true, "command") => self.collect_command(value),
                        (true, "args") => self.collect_arguments(value),
                        (_, name) if NOT_OBEYED.contains(&name) => {}
                        _ => self.collect(value),
                    }
                }
            }
        }
    }

    /// The program of a command, and what its arguments name.
    fn collect_command(&mut self, node: &Node) {
        let items = match &node.value {
            Value::Sequence(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let Some((program, arguments)) = items.split_first() else { return };
        match &program.value {
            Value::Plain(text) | Value::Text(text) if !text.contains('/') => {
                self.0.extend(on_search_path(text).map(|path| (path, Role::File)));
            }
            _ => self.collect_mentioned(program),
        }
        arguments.iter().for_each(|argument| self.collect_mentioned(argument));
    }

    fn collect_arguments(&mut self, node: &Node) {
        let Value::Sequence(items) = &node.value else { return };
        items.iter().for_each(|item| self.collect_mentioned(item));
    }

    fn collect_mentioned(&mut self, node: &Node) {
        let (Value::Plain(text) | Value::Text(text)) = &node.value else { return };
        let mentioned = paths_in(OsStr::new(text)).into_iter();
        self.0.extend(mentioned.map(|path| (path, Role::Mentioned)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(document: &str) -> Vec<String> {
        Named::of(document.as_bytes()).into_iter().map(|(path, _)| path.display().to_string()).collect()
    }

    #[test]
    fn every_path_that_an_argument_holds_is_seen() {
        let seen = |argument: &str| {
            let paths = paths_in(OsStr::new(argument)).into_iter();
            paths.map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        for argument in [
            "/w/env.sh",
            "--env=/w/env.sh",
            ". /w/env.sh; print",
            "a:/w/env.sh",
            "'/w/env.sh'",
            "-f/w/env.sh",
        ] {
            assert!(seen(argument).contains(&"/w/env.sh".to_owned()), "{argument}");
        }
        assert!(seen("--env=/w/a b").contains(&"/w/a b".to_owned()));
        assert!(seen("/w/a b").contains(&"/w/a b".to_owned()));
        assert_eq!(seen("print --format=text w/env.sh"), [""; 0]);
    }

    #[test]
    fn a_document_names_its_credentials_and_not_what_sandboxes_see() {
        let policy = "credentials: [{host: a.example, from: {command: [/opt/tok, --in, /etc/tok]}}]\n\
                      authorities: /etc/ca.pem\nrules: [{host: a.example, paths: [/pub/]}]";
        assert_eq!(named(policy), ["/opt/tok", "/etc/tok", "/etc/ca.pem"]);
        let agents = "agents: {x: {command: [/opt/agent]}}\ninference: {credential: {file: /etc/key}}";
        assert_eq!(named(agents), ["/etc/key"]);
        let anchors = "audit: {anchors: [{to: 'file:/mnt/a'}, {to: 'syslog:/dev/log'}, {to: 's3://a/b'}]}";
        assert_eq!(named(anchors), ["/mnt/a", "/dev/log"]);
        let servers = "mcp: {servers: [{name: a, unsealed: true, command: /opt/server, args: [--in, /etc/in]}, \
                       {name: b, command: /opt/inside}]}";
        assert_eq!(named(servers), ["/opt/server", "/etc/in"]);
    }
}
