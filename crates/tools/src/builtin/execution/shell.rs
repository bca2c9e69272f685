//! `shell_command`: runs a command by a shell of the sandbox.

use super::{check_argument, told, within};
use crate::answer::{Answer, Failure};
use crate::builtin::files::relative;
use crate::caller::Caller;
use crate::typed::{NOT_BLANK, TypedTool};
use crate::workbench::{Command, Workbench};
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Runs a command in the sandbox with `bash -c`, or `sh -c` if there \
    is no bash (see `shell`), in the workspace's root or in `working_directory`. Returns `stdout`, \
    `stderr`, `exit_code` (128 plus the signal number if a signal ended it) and `timed_out`; output \
    longer than 64 KiB is reduced to its beginning and end, with the number of omitted bytes. \
    Standard input is empty. All processes that the command has started, background processes \
    included, are killed when it ends; files remain.";

/// The shells, in order of preference.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// The command and its directory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The command.
    #[schemars(length(min = 1), regex(pattern = r"\S"), extend("x-belljar-expected" = NOT_BLANK))]
    command: String,
    /// The directory, relative to the workspace's root.
    #[schemars(length(min = 1, max = 4095))]
    working_directory: Option<String>,
    /// Time limit, in seconds. Default: 30.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<f64>,
}

pub(super) struct ShellTool(pub(super) Arc<dyn Workbench>);

impl TypedTool for ShellTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { command: text, working_directory, timeout } = arguments;
        check_argument("command", &text)?;
        let directory = working_directory.as_deref().map(|name| relative("working_directory", name));
        let directory = directory.transpose()?;
        let within = within(timeout);
        for shell in SHELLS {
            let argv = vec![shell.to_owned(), "-c".to_owned(), text.clone()];
            let directory = directory.clone();
            let command = Command { within, directory, ..Command::new(Category::Terminal, argv) };
            match self.0.run(caller, command).await {
                Err(failure) if failure.code == DomainCode::NotSupported => {}
                ended => {
                    let mut told = told(&ended?);
                    told.data["shell"] = json!(shell);
                    return Ok(told);
                }
            }
        }
        Err(Failure::new(DomainCode::NotSupported, "there is no shell in this sandbox"))
    }
}
