//! `code_runner`: runs code by its language's interpreter.

use super::{check_argument, told, within};
use crate::answer::{Answer, Failure};
use crate::caller::Caller;
use crate::typed::TypedTool;
use crate::workbench::{Command, Workbench, has_program};
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// A language of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Language {
    Python,
    Javascript,
    Bash,
}

/// The languages of the sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Languages(Vec<Language>);

/// The code and its language.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The code.
    #[schemars(length(min = 1))]
    code: String,
    /// Its language.
    language: Language,
    /// Time limit, in seconds. Default: 30.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<f64>,
}

pub(super) struct CodeTool(pub(super) Arc<dyn Workbench>);

pub(super) fn description(languages: &Languages) -> String {
    let missing: Vec<_> =
        Language::ALL.into_iter().filter(|language| !languages.0.contains(language)).collect();
    let missing = match missing.as_slice() {
        [] => String::new(),
        missing => {
            let told = missing.iter().map(|one| format!("{} ({})", one.name(), one.interpreter().0));
            format!(" Not in these sandboxes: {}.", told.collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "Runs code in the sandbox, in the workspace's root, with `python3 -c`, `node -e` or `bash -c`. \
    Returns `stdout`, `stderr`, `exit_code`, `timed_out` and `language`; output longer than 64 KiB \
    is reduced to its beginning and end, with the number of omitted bytes. All processes that the \
    code has started are killed when it ends; files remain.{missing}"
    )
}

impl TypedTool for CodeTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { code, language, timeout } = arguments;
        check_argument("code", &code)?;
        let (program, flag) = language.interpreter();
        let argv = vec![program.to_owned(), flag.to_owned(), code];
        let within = within(timeout);
        let command = Command { within, ..Command::new(Category::CodeExecution, argv) };
        let ended = self.0.run(caller, command).await.map_err(|failure| match failure.code {
            DomainCode::NotSupported => Failure::new(
                DomainCode::NotSupported,
                format!("there is no {} in this sandbox: no {program}", language.name()),
            ),
            _ => failure,
        })?;
        let mut told = told(&ended);
        told.data["language"] = json!(language);
        Ok(told)
    }
}

// === impl Language ===

impl Language {
    /// All languages.
    pub const ALL: [Self; 3] = [Self::Python, Self::Javascript, Self::Bash];

    /// Returns its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Javascript => "javascript",
            Self::Bash => "bash",
        }
    }

    /// Returns its interpreter, and the flag for code as an argument.
    const fn interpreter(self) -> (&'static str, &'static str) {
        match self {
            Self::Python => ("python3", "-c"),
            Self::Javascript => ("node", "-e"),
            Self::Bash => ("bash", "-c"),
        }
    }
}

// === impl Languages ===

impl Languages {
    /// Returns all languages, whether or not they are installed: a missing one is reported on use.
    pub fn all() -> Self {
        Self(Language::ALL.to_vec())
    }

    /// Returns the languages that the caller's sandboxes have.
    ///
    /// # Errors
    /// [`Failure`] when there is no sandbox to look in.
    pub async fn probe(workbench: &dyn Workbench, caller: &Caller) -> Result<Self, Failure> {
        let mut found = Vec::new();
        for language in Language::ALL {
            let (program, flag) = language.interpreter();
            if has_program(workbench, caller, (Category::CodeExecution, &[program, flag, ""])).await? {
                found.push(language);
            }
        }
        Ok(Self(found))
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|language| language.name()).collect()
    }
}
