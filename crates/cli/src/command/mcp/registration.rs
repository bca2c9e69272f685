//! How clients are told of this server.

use crate::error::CliError;
use clap::ValueEnum;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;

/// A client, by how it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ClientKind {
    /// A line for Claude Code
    Claude,
    /// A line for Codex
    Codex,
    /// JSON, as most others read it
    Json,
}

/// The option that is not passed on.
const OWN: &str = "--print-config";

/// Prints it, for this very program with the options that it was started with.
pub(super) fn print(client: ClientKind) -> Result<(), CliError> {
    let program =
        std::env::current_exe().map_err(|source| CliError::read("/proc/self/exe".as_ref(), source))?;
    let words = words(std::env::args_os().skip(1), std::env::current_dir().ok().as_deref())?;
    let program = text(program.into())?;
    let text = match client {
        ClientKind::Claude => format!("claude mcp add belljar -- {}", line(&program, &words)),
        ClientKind::Codex => format!("codex mcp add belljar -- {}", line(&program, &words)),
        ClientKind::Json => {
            let server = json!({ "command": program, "args": words });
            crate::output::json(&json!({ "mcpServers": { "belljar": server } }))
        }
    };
    crate::output::outln!("{text}");
    Ok(())
}

/// Returns the arguments after the program's name, with absolute directories: clients start it in any working directory.
fn words(
    arguments: impl Iterator<Item = OsString>,
    directory: Option<&Path>,
) -> Result<Vec<String>, CliError> {
    const OF_PATHS: [&str; 2] = ["--workspace", "--egress"];
    let mut arguments = arguments.map(text);
    let mut words = Vec::new();
    let whole = |path: &str| match directory {
        Some(directory) => {
            let path = directory.join(path);
            belljar_policy::untrusted::name(&path.canonicalize().unwrap_or(path))
        }
        None => path.to_owned(),
    };
    while let Some(word) = arguments.next().transpose()? {
        match word.split_once('=') {
            _ if word == OWN => drop(arguments.next()),
            Some((OWN, _)) => {}
            _ if OF_PATHS.contains(&word.as_str()) => {
                words.push(word);
                words.extend(arguments.next().transpose()?.map(|path| whole(&path)));
            }
            Some((option, path)) if OF_PATHS.contains(&option) => {
                words.extend([option.to_owned(), whole(path)]);
            }
            _ => words.push(word),
        }
    }
    Ok(words)
}

fn text(word: OsString) -> Result<String, CliError> {
    word.into_string().map_err(|_| CliError::usage("--print-config takes options in UTF-8".to_owned()))
}

/// A line for a shell.
fn line(program: &str, words: &[String]) -> String {
    let quoted = |word: &str| {
        let is_plain = !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=,@+".contains(&byte));
        if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let all: Vec<_> = std::iter::once(program).chain(words.iter().map(String::as_str)).map(quoted).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_command_has_absolute_paths() {
        let given = ["mcp", "--print-config", "codex", "--workspace", "a b", "--egress=rules.yaml", "--keep"];
        let words = words(given.iter().map(OsString::from), Some("/nowhere".as_ref())).unwrap();
        assert_eq!(
            line("/bin/belljar", &words),
            "/bin/belljar mcp --workspace '/nowhere/a b' --egress /nowhere/rules.yaml --keep"
        );
    }
}
