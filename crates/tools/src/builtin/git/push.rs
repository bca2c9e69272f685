//! `git_push`: the host pushes the files of a clone as a branch of its origin.

use super::hatch::{GitHatch, MOST_TOLD, PushRequest};
use crate::answer::{Answer, Failure, Success};
use crate::builtin::files::relative;
use crate::caller::Caller;
use crate::typed::{NOT_BLANK, TypedTool};
use belljar_contract::approval::CallScope;
use belljar_policy::git::BranchName;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Pushes the current files of a repository that `git_clone` has \
    cloned, as one commit on top of the cloned commit, to a new branch of the same remote. The host \
    reads the files and pushes them with its own credentials. It never forces and never replaces an \
    existing branch: use another `branch` for further work. Your own commits, ignored files and the \
    contents of `.git` are not pushed. Returns `outcome` (`pushed` or `already_there`), `remote`, \
    `ref`, `commit`, `base`, `files` and `left_out`, with their counts. The call is idempotent, so \
    repeat it after `unavailable`.";

/// The branch and the commit message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The new branch.
    #[schemars(length(min = 1, max = 200))]
    branch: String,
    /// The commit message.
    #[schemars(length(min = 1, max = 65_536), regex(pattern = r"\S"), extend("x-belljar-expected" = NOT_BLANK))]
    message: String,
    /// Directory of the clone, relative to the workspace's root.
    #[schemars(length(min = 1, max = 4095))]
    directory: Option<String>,
}

/// Member of a scope with the plan of the push.
const MEMBER: &str = "push";

pub(super) struct GitPushTool(pub(super) Arc<dyn GitHatch>);

impl TypedTool for GitPushTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        self.push(caller, arguments.request()?).await
    }

    async fn scope(&self, caller: &Caller, arguments: Arguments) -> Result<CallScope, Failure> {
        let planned = self.0.planned_push(caller, arguments.request()?).await?;
        Ok(CallScope::from_iter([(MEMBER.to_owned(), json!(planned))]))
    }

    async fn call_approved(&self, caller: &Caller, arguments: Arguments, scope: &CallScope) -> Answer {
        let approved = scope.get(MEMBER).cloned().unwrap_or_default();
        let approved = serde_json::from_value(approved)
            .map_err(|error| Failure::internal("read what was approved", &error))?;
        self.push(caller, PushRequest { approved: Some(approved), ..arguments.request()? }).await
    }
}

// === impl Arguments ===

impl Arguments {
    fn request(self) -> Result<PushRequest, Failure> {
        let Self { branch, message, directory } = self;
        let branch =
            BranchName::parse(&branch).map_err(|error| Failure::argument(format!("/branch: {error}")))?;
        if message.contains('\0') {
            return Err(Failure::argument("/message: contains the character U+0000"));
        }
        let directory = directory.map(|name| relative("directory", &name)).transpose()?;
        Ok(PushRequest { directory, branch, message, approved: None })
    }
}

// === impl GitPushTool ===

impl GitPushTool {
    async fn push(&self, caller: &Caller, wanted: PushRequest) -> Answer {
        let reference = wanted.branch.reference();
        let pushed = self.0.push_out(caller, wanted).await?;
        let files = pushed.files.iter().take(MOST_TOLD);
        let files: Vec<_> = files.map(|(path, change)| json!({ "path": path, "change": change })).collect();
        let left_out: Vec<_> = pushed.left_out.iter().take(MOST_TOLD).collect();
        Ok(Success::of(json!({
            "outcome": if pushed.was_there { "already_there" } else { "pushed" },
            "remote": pushed.remote,
            "ref": reference,
            "commit": pushed.commit,
            "base": pushed.base,
            "files": files,
            "file_count": pushed.file_count,
            "left_out": left_out,
            "left_out_count": pushed.left_out_count,
        })))
    }
}
