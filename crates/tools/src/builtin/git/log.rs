//! `git_log`: lists commits, the latest first.

use super::repository::{Git, paths, word};
use crate::answer::{Answer, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) const DESCRIPTION: &str = "Lists commits, newest first: returns `output`, and whether it is \
    `truncated`. `max_count` limits their number (default 10, maximum 100); `oneline` shows one \
    line per commit. `ref` is the commit to start from; `author`, `since`, `until` and `paths` \
    filter.";

/// Filter and format of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Maximum number of commits.
    #[schemars(range(min = 1))]
    max_count: Option<u64>,
    /// True for one line per commit.
    #[serde(default)]
    oneline: bool,
    /// The commit, branch or tag to begin at.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 1024))]
    reference: Option<String>,
    /// Only commits of this author.
    #[schemars(length(min = 1, max = 1024))]
    author: Option<String>,
    /// Only commits since this time.
    #[schemars(length(min = 1, max = 128))]
    since: Option<String>,
    /// Only commits until this time.
    #[schemars(length(min = 1, max = 128))]
    until: Option<String>,
    /// Only commits that change these paths.
    #[serde(default)]
    #[schemars(length(max = 100))]
    paths: Vec<String>,
    /// The repository's directory.
    #[schemars(length(min = 1, max = 4095))]
    directory: Option<String>,
}

pub(super) struct GitLogTool(pub(super) Git);

const USUAL: u64 = 10;
const MOST: u64 = 100;

/// Fixed formats, as some placeholders verify signatures, which runs a program.
const WHOLE: &str = "--format=commit %H%d%nAuthor: %an <%ae>%nDate:   %aI%n%n%w(0,4,4)%B";
const ONE_LINE: &str = "--format=%h%d %s";

impl TypedTool for GitLogTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let count = arguments.max_count.unwrap_or(USUAL).clamp(1, MOST);
        let mut asked: Vec<String> = [
            "log",
            "--no-show-signature",
            "--no-ext-diff",
            "--no-textconv",
            "--no-patch",
            if arguments.oneline { ONE_LINE } else { WHOLE },
        ]
        .map(str::to_owned)
        .into();
        asked.push(format!("--max-count={count}"));
        let which = [("author", &arguments.author), ("since", &arguments.since), ("until", &arguments.until)];
        for (name, value) in which {
            if let Some(value) = value {
                asked.push(format!("--{name}={}", word(name, value)?));
            }
        }
        asked.push("--end-of-options".to_owned());
        if let Some(reference) = &arguments.reference {
            asked.push(word("ref", reference)?.to_owned());
        }
        asked.push("--".to_owned());
        asked.extend(paths("paths", &arguments.paths)?);
        let repository = self.0.open(caller, arguments.directory.as_deref()).await?;
        // An empty log of a new repository is not an error.
        let is_empty = arguments.reference.is_none()
            && !repository.is(&["rev-parse", "--verify", "--quiet", "HEAD"]).await?;
        if is_empty {
            return Ok(Success::of(json!({ "output": "there are no commits yet\n", "truncated": false })));
        }
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let (output, truncated) = repository.shown(&asked).await?;
        let output = if output.is_empty() { "no commit matches\n".to_owned() } else { output };
        Ok(Success::of(json!({ "output": output, "truncated": truncated })))
    }
}
