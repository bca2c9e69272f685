//! Runs git in a caller's repository.

use super::Signature;
use super::hardening::{environment, environment_for};
use crate::answer::Failure;
use crate::builtin::files::relative;
use crate::caller::Caller;
use crate::workbench::{Command, FinishedProgram, ProgramExit, Workbench};
use belljar_contract::category::Category;
use belljar_contract::path::{StepPath, WORKSPACE, WorkspacePath};
use belljar_contract::tool::DomainCode;
use belljar_policy::git::redact;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Git on a workbench.
pub(super) struct Git {
    workbench: Arc<dyn Workbench>,
    signature: Signature,
}

/// A repository whose settings were checked and overridden.
pub(super) struct Repository<'g> {
    git: &'g Git,
    caller: &'g Caller,
    directory: Option<StepPath>,
    env: BTreeMap<String, String>,
}

/// Time limit of one step.
const WITHIN: Duration = Duration::from_secs(30);

/// Maximum size of an output that is shown, in bytes.
const MOST_SHOWN_BYTES: usize = 64 << 10;

/// Maximum size of an output that is processed further, in bytes.
const MOST_READ_BYTES: usize = 1 << 20;

/// Maximum length of git's error messages, in characters.
const LONGEST_COMPLAINT: usize = 500;

// === impl Git ===

impl Git {
    pub(super) fn new(workbench: Arc<dyn Workbench>, signature: Signature) -> Self {
        Self { workbench, signature }
    }

    /// Opens the repository with that root.
    pub(super) async fn open<'g>(
        &'g self,
        caller: &'g Caller,
        directory: Option<&str>,
    ) -> Result<Repository<'g>, Failure> {
        let directory = directory.map(|name| relative("directory", name)).transpose()?;
        let mut repository = Repository { git: self, caller, directory, env: environment() };
        let listed = ["config", "--list", "--includes", "--name-only", "-z"];
        let listed = repository.ran(&listed, (&[], MOST_READ_BYTES)).await?;
        if !listed.is_well() {
            return Err(repository.complaint(&listed));
        }
        let names = listed.stdout.whole().ok_or_else(|| too_much("settings"))?;
        repository.env = environment_for(&names)?;
        for who in ["AUTHOR", "COMMITTER"] {
            repository.env.insert(format!("GIT_{who}_NAME"), self.signature.name.clone());
            repository.env.insert(format!("GIT_{who}_EMAIL"), self.signature.email.clone());
        }
        Ok(repository)
    }
}

// === impl Repository ===

impl Repository<'_> {
    /// Runs a subcommand, which must succeed. Returns the output to show, and true if it is truncated.
    pub(super) async fn shown(&self, arguments: &[&str]) -> Result<(String, bool), Failure> {
        let ended = self.ran(arguments, (&[], MOST_SHOWN_BYTES)).await?;
        match ended.is_well() {
            true => Ok((ended.stdout.text(), ended.stdout.left_out_bytes > 0)),
            false => Err(self.complaint(&ended)),
        }
    }

    /// Runs a subcommand with that input, which must succeed. Returns its whole output.
    pub(super) async fn read(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, Failure> {
        let ended = self.ran(arguments, (input, MOST_READ_BYTES)).await?;
        match ended.is_well() {
            true => ended.stdout.whole().ok_or_else(|| too_much("changes")),
            false => Err(self.complaint(&ended)),
        }
    }

    /// Runs a subcommand that answers by its exit code: 0 for true, 1 for false.
    pub(super) async fn is(&self, arguments: &[&str]) -> Result<bool, Failure> {
        let ended = self.ran(arguments, (&[], MOST_SHOWN_BYTES)).await?;
        match ended.by {
            ProgramExit::Exited(0) => Ok(true),
            ProgramExit::Exited(1) => Ok(false),
            _ => Err(self.complaint(&ended)),
        }
    }

    async fn ran(
        &self,
        arguments: &[&str],
        (input, most_bytes): (&[u8], usize),
    ) -> Result<FinishedProgram, Failure> {
        let argv = ["git", "--no-pager"].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        let command = Command {
            env: self.env.clone(),
            directory: self.directory.clone(),
            input: input.to_vec(),
            within: WITHIN,
            most_bytes,
            ..Command::new(Category::VersionControl, argv)
        };
        self.git.workbench.run(self.caller, command).await.map_err(|failure| match failure.code {
            DomainCode::NotSupported => {
                Failure::new(DomainCode::NotSupported, "there is no git in this sandbox")
            }
            _ => failure,
        })
    }

    /// Returns the failure for an unsuccessful subcommand.
    fn complaint(&self, ended: &FinishedProgram) -> Failure {
        if ended.by == ProgramExit::OutOfTime {
            let said = format!("git was killed after {} s (time limit)", WITHIN.as_secs());
            return Failure::new(DomainCode::LimitExceeded, said);
        }
        let said = redact(&ended.stderr.text());
        let said = crate::page::cut(crate::page::one_line(&said), LONGEST_COMPLAINT).0;
        if said.contains("not a git repository") {
            let place = self.directory.as_ref().map_or(".", StepPath::as_str);
            let said = format!("{place} is not the root of a git repository");
            return Failure::new(DomainCode::NotFound, said);
        }
        Failure::new(DomainCode::ToolFailed, format!("git: {said}"))
    }
}

fn too_much(of_what: &str) -> Failure {
    Failure::new(DomainCode::LimitExceeded, format!("the repository has too many {of_what}"))
}

/// Checks that git won't read a word as an option.
pub(super) fn word<'t>(name: &str, text: &'t str) -> Result<&'t str, Failure> {
    let wrong = |what: &str| Err(Failure::argument(format!("/{name}: {what}")));
    match text {
        "" => wrong("must not be empty"),
        text if text.starts_with('-') => wrong("must not begin with `-`, like an option"),
        text if text.chars().any(char::is_control) => wrong("must not contain control characters"),
        text => Ok(text),
    }
}

/// Converts paths in the workspace to git's form.
pub(super) fn paths(name: &str, texts: &[String]) -> Result<Vec<String>, Failure> {
    let path = |text: &String| {
        word(name, text)?;
        let path = relative(name, text)?.beneath(WORKSPACE);
        let path = path.map_err(|error| Failure::new(DomainCode::PermissionDenied, error.to_string()))?;
        Ok(if path.is_root() { ".".to_owned() } else { WorkspacePath::as_str(&path).to_owned() })
    };
    texts.iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_arguments_that_look_like_flags_are_rejected() {
        for text in ["-x", "--upload-pack=x", "", "a\nb", "a\0", "\u{85}"] {
            assert_eq!(word("ref", text).unwrap_err().code, DomainCode::InvalidArgument, "{text:?}");
            assert!(paths("paths", &[text.to_owned()]).is_err(), "{text:?}");
        }
        assert_eq!(word("ref", "HEAD~1"), Ok("HEAD~1"));
        let good = ["./a/b".to_owned(), ".".to_owned(), ":(top)x".to_owned()];
        assert_eq!(paths("paths", &good).unwrap(), ["a/b", ".", ":(top)x"]);
        assert!(paths("paths", &["../x".to_owned()]).is_err());
    }
}
