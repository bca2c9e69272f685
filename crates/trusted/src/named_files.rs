//! The files that a document names, such as a configuration or a policy: credentials, programs that print them, authorities.

mod local;

use crate::mentioned_paths::{Variables, paths_in};
use crate::trusted_file::{self, PathRole, PathState, UntrustedFileError};
use belljar_contract::yaml::{self, Key, MistakeLog, Node, Value};
use std::ffi::OsStr;
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
    NamedFiles::of(document).iter().try_for_each(|(path, role)| match trusted_file::expect(path, *role)? {
        PathState::File => trusted_file::check(path).map(drop),
        PathState::Directory | PathState::Nothing => Ok(()),
    })
}

/// Registers what a document names without refusing it: for those who read the document for nothing else.
pub fn register(document: &[u8]) {
    for (path, role) in NamedFiles::of(document) {
        // The process that obeys it reports what is wrong with it.
        let _ = trusted_file::expect(&path, role);
    }
}

/// The program that a name means: the first on the search path that is there.
fn on_search_path(name: &str) -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH")?;
    std::env::split_paths(&search_path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

fn is_true(node: &Node) -> bool {
    matches!(&node.value, Value::Plain(text) if text == "true")
}

/// Returns the variables that a server of tools is given.
fn variables(members: &[(Key, Node)]) -> Variables {
    let env = members.iter().find(|(key, _)| key.name == "env").map(|(_, value)| &value.value);
    let Some(Value::Mapping(env)) = env else { return Variables::default() };
    let text = |(key, node): &(Key, Node)| match &node.value {
        Value::Plain(text) | Value::Text(text) => Some((key.name.clone(), text.clone())),
        _ => None,
    };
    Variables::of(env.iter().filter_map(text))
}

/// Files that a document names, each with its role.
#[derive(Default)]
struct NamedFiles(Vec<(PathBuf, PathRole)>);

// === impl NamedFiles ===

impl NamedFiles {
    fn of(document: &[u8]) -> Vec<(PathBuf, PathRole)> {
        let mut named = Self::default();
        // Mistakes are reported by the reader that the document is for.
        if let Some(root) = yaml::parse(document, &mut MistakeLog::default()) {
            named.collect(&root);
        }
        named.0
    }

    fn collect(&mut self, node: &Node) {
        match &node.value {
            Value::Plain(text) | Value::Text(text) => {
                self.0.extend(local::paths(text).into_iter().map(|path| (path, PathRole::File)));
            }
            Value::Sequence(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Mapping(members) => {
                let is_source = members.iter().all(|(key, _)| SOURCE.contains(&key.name.as_str()));
                // A server of tools that runs on the host itself.
                let is_unsealed = members.iter().any(|(key, value)| key.name == "unsealed" && is_true(value));
                let is_program = is_source || is_unsealed;
                let variables = if is_unsealed { variables(members) } else { Variables::default() };
                for (key, value) in members {
                    match key.name.as_str() {
                        "command" if is_program => self.collect_command(value, &variables),
                        "args" if is_program => {
                            self.collect_mentioned(value, (&variables, PathRole::Mentioned));
                        }
                        "env" if is_unsealed => self.collect_env(value, &variables),
                        name if NOT_OBEYED.contains(&name) => {}
                        _ => self.collect(value),
                    }
                }
            }
        }
    }

    /// The program of a command, and what its arguments name.
    fn collect_command(&mut self, node: &Node, variables: &Variables) {
        let told = (variables, PathRole::Mentioned);
        let items = match &node.value {
            Value::Sequence(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let Some((program, arguments)) = items.split_first() else { return };
        match &program.value {
            Value::Plain(text) | Value::Text(text) if !text.contains('/') => {
                self.0.extend(on_search_path(text).map(|path| (path, PathRole::File)));
            }
            _ => self.collect_mentioned(program, told),
        }
        arguments.iter().for_each(|argument| self.collect_mentioned(argument, told));
    }

    fn collect_env(&mut self, node: &Node, variables: &Variables) {
        let Value::Mapping(members) = &node.value else { return };
        for (key, value) in members {
            self.collect_mentioned(value, (variables, Variables::role_of(&key.name)));
        }
    }

    /// Collects all that a program's arguments, or one of its variables, names.
    fn collect_mentioned(&mut self, node: &Node, (variables, role): (&Variables, PathRole)) {
        match &node.value {
            Value::Plain(text) | Value::Text(text) => {
                let mentioned = paths_in(OsStr::new(text), variables).into_iter();
                self.0.extend(mentioned.map(|path| (path, role)));
            }
            Value::Sequence(items) => {
                items.iter().for_each(|item| self.collect_mentioned(item, (variables, role)));
            }
            Value::Mapping(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(document: &str) -> Vec<String> {
        NamedFiles::of(document.as_bytes()).into_iter().map(|(path, _)| path.display().to_string()).collect()
    }

    #[test]
    fn document_lists_its_credential_files_but_not_sandbox_paths() {
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

    #[test]
    fn variables_of_host_servers_name_paths_and_those_of_sandboxed_servers_do_not() {
        let server = |unsealed: bool, value: &str| {
            format!(
                "mcp: {{servers: [{{name: a, unsealed: {unsealed}, command: /opt/server, \
                 env: {{HOME: /h, A: /w, X: '{value}'}}}}]}}"
            )
        };
        for value in [
            "/w/x",
            "/srv:/w/x",
            "--require /w/x",
            "~/../w/x",
            "$HOME/../w/x",
            "${A}/x",
            "$A/x",
            "../w/x",
            "usr/../w/x",
        ] {
            let is_seen = |path: &String| path.ends_with("w/x");
            assert!(named(&server(true, value)).iter().any(is_seen), "{value}");
            // The control: the host obeys none of what is given to a program in a sandbox, but for a path alone.
            assert!(
                !named(&server(false, value)).iter().any(|path| path != value && is_seen(path)),
                "{value}"
            );
        }
    }
}
