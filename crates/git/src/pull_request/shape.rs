//! Request and response formats of the forges: GitHub's REST API, Gitea's, which is largely compatible, and GitLab's.

use super::forge::Branches;
use super::plan::PullRequestContent;
use belljar_policy::git::{ForgeKind, Project};
use serde_json::{Value, json};

/// Path of GitLab's project search. A project's own path would contain an encoded slash, which connections don't permit.
pub(super) const PROJECTS: &str = "/projects";

/// Returns the calls that a pull request requires.
pub(super) fn calls(kind: ForgeKind, project: &Project) -> Vec<(&'static str, String)> {
    let mut calls = Vec::new();
    if kind == ForgeKind::GitLab {
        calls.push(("GET", PROJECTS.to_owned()));
    }
    let path = requests(kind, project, 0);
    calls.extend(["GET", "POST"].map(|method| (method, path.clone())));
    calls
}

/// Returns the path of a project's pull requests; GitLab identifies the project by a number.
pub(super) fn requests(kind: ForgeKind, project: &Project, number: u64) -> String {
    match kind {
        ForgeKind::GitHub | ForgeKind::Gitea => {
            format!("/repos/{}/{}/pulls", project.owner(), project.name())
        }
        ForgeKind::GitLab => format!("{PROJECTS}/{number}/merge_requests"),
    }
}

/// Returns the query for a page of open pull requests, filtered as far as the forge supports.
pub(super) fn listing(
    kind: ForgeKind,
    project: &Project,
    branches: &Branches<'_>,
    page: usize,
) -> Vec<(&'static str, String)> {
    let Branches { head, base } = branches;
    let page = ("page", page.to_string());
    match kind {
        ForgeKind::GitHub => vec![
            ("state", "open".to_owned()),
            ("head", format!("{}:{head}", project.owner())),
            ("base", (*base).to_owned()),
            ("per_page", "100".to_owned()),
            page,
        ],
        ForgeKind::Gitea => vec![
            ("state", "open".to_owned()),
            ("sort", "recentupdate".to_owned()),
            ("limit", "50".to_owned()),
            page,
        ],
        ForgeKind::GitLab => vec![
            ("state", "opened".to_owned()),
            ("source_branch", (*head).to_owned()),
            ("target_branch", (*base).to_owned()),
            ("per_page", "100".to_owned()),
            page,
        ],
    }
}

/// Returns the body of the call that opens a pull request.
pub(super) fn opening(kind: ForgeKind, branches: &Branches<'_>, said: &PullRequestContent) -> Value {
    let (Branches { head, base }, PullRequestContent { title, body, is_draft }) = (branches, said);
    let marked = |mark: &str| if *is_draft { format!("{mark} {title}") } else { title.clone() };
    match kind {
        ForgeKind::GitHub => {
            json!({ "title": title, "body": body, "head": head, "base": base, "draft": is_draft })
        }
        // A title prefix marks drafts in Gitea and GitLab.
        ForgeKind::Gitea => json!({ "title": marked("WIP:"), "body": body, "head": head, "base": base }),
        ForgeKind::GitLab => json!({
            "title": marked("Draft:"), "description": body, "source_branch": head, "target_branch": base,
        }),
    }
}

/// Returns the URL of a pull request that is open for these branches of the project itself. The forge's filter isn't relied
/// on.
pub(super) fn url_for<'v>(kind: ForgeKind, one: &'v Value, branches: &Branches<'_>) -> Option<&'v str> {
    let (head, base, is_own, is_open) = match kind {
        ForgeKind::GitHub | ForgeKind::Gitea => {
            let repository = |side: &str| one[side]["repo"]["id"].as_u64();
            let is_own = repository("head").is_some() && repository("head") == repository("base");
            (&one["head"]["ref"], &one["base"]["ref"], is_own, one["state"] == "open")
        }
        ForgeKind::GitLab => {
            let is_own = one["source_project_id"] == one["target_project_id"];
            (&one["source_branch"], &one["target_branch"], is_own, one["state"] == "opened")
        }
    };
    let is_wanted = is_own && is_open && *head == branches.head && *base == branches.base;
    is_wanted.then(|| url(kind, one)).flatten()
}

/// Returns the web page of a pull request.
pub(super) fn url(kind: ForgeKind, one: &Value) -> Option<&str> {
    let member = if kind == ForgeKind::GitLab { "web_url" } else { "html_url" };
    one[member].as_str().filter(|url| is_link(url))
}

fn is_link(text: &str) -> bool {
    const LONGEST: usize = 2048;
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    is_web && text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Maximum number of characters of a forge's error message.
const LONGEST: usize = 300;

/// Returns a forge's error message, on one line and without control characters.
pub(super) fn complaint(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut said = Vec::new();
    for member in ["message", "error", "error_description", "errors"] {
        gather(&answer[member], &mut said);
    }
    let said = said.join("; ");
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    let said: String = said.chars().map(plain).take(LONGEST).collect();
    if said.is_empty() { "nothing was said".to_owned() } else { said }
}

/// Collects the distinct texts in a value, up to the limit.
fn gather(value: &Value, said: &mut Vec<String>) {
    if said.iter().map(String::len).sum::<usize>() > LONGEST || said.len() > LONGEST {
        return;
    }
    match value {
        Value::String(text) if !said.contains(text) => said.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|one| gather(one, said)),
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("resource" | "code" | "field" | "documentation_url", _) => {}
                    (_, value) => gather(value, said),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_request_of_another_repository_or_branch_is_ignored() {
        let one = |head: u64, name: &str, base: &str, state: &str| {
            json!({
                "html_url": "https://h.example/a/b/pulls/1", "state": state,
                "head": {"ref": name, "repo": {"id": head}}, "base": {"ref": base, "repo": {"id": 1}},
            })
        };
        let branches = Branches { head: "x", base: "main" };
        let found = |one: Value| url_for(ForgeKind::GitHub, &one, &branches).is_some();
        assert!(found(one(1, "x", "main", "open")));
        assert!(!found(one(2, "x", "main", "open")), "a fork has a branch of the same name");
        assert!(!found(one(1, "y", "main", "open")) && !found(one(1, "x", "other", "open")));
        assert!(!found(one(1, "x", "main", "closed")) && !found(json!({})));
    }

    #[test]
    fn forge_error_is_shown_on_one_line() {
        let of = |body: &str| complaint(body.as_bytes());
        assert_eq!(
            of(
                r#"{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and x"}]}"#
            ),
            "Validation Failed; No commits between main and x"
        );
        assert_eq!(of(r#"{"message":["already exists","b\u001b[31m\nc"]}"#), "already exists; b [31m c");
        assert_eq!(of(r#"{"message":{"base":["is bad"]}}"#), "is bad");
        assert_eq!((of("<html>").as_str(), of("[1]").as_str()), ("nothing was said", "nothing was said"));
    }

    #[test]
    fn pull_request_link_must_be_a_printable_web_url() {
        assert!(is_link("https://h.example/a/b/pulls/1"));
        for bad in ["", "javascript:x", "https://h.example/\u{1b}[m", "https://h.example/a b", "/a"] {
            assert!(!is_link(bad), "{bad:?}");
        }
    }
}
