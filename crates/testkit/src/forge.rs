//! A forge that counts requests: the APIs of GitHub, Gitea and GitLab as far as pull requests need them, chosen by the
//! request's path. Like the originals, it allows one open pull request for a pair of branches, and requires that the
//! branches exist.

use crate::git::git;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A forge that listens. Its thread ends with the test's process.
#[derive(Debug)]
pub struct Forge {
    address: SocketAddr,
    state: Arc<Mutex<ForgeState>>,
}

/// A pull request that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number, from 1 on.
    pub number: usize,
    /// Project: `OWNER/NAME`.
    pub project: String,
    /// Title.
    pub title: String,
    /// Description.
    pub body: String,
    /// The branch.
    pub head: String,
    /// Target branch.
    pub base: String,
    /// True if it is a draft.
    pub is_draft: bool,
    /// True if it is open.
    pub is_open: bool,
}

/// Reaction to a request to open a pull request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Opens it, and closes the connection without an answer.
    OpensAndHangsUp,
    /// Refuses it with a status and a message.
    Refuses(u16, &'static str),
}

#[derive(Debug)]
struct ForgeState {
    token: String,
    /// Folder of the repositories.
    root: PathBuf,
    opened: Vec<PullRequest>,
    calls: Vec<String>,
    replies: VecDeque<Reply>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForgeKind {
    GitHub,
    Gitea,
    GitLab,
}

/// A parsed request.
struct ForgeRequest {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    token: String,
    body: Value,
}

type ForgeResponse = (u16, Value, bool);

/// Number of pull requests on a page: small, so that there are several pages.
const A_PAGE: usize = 2;

const PROJECT_NUMBER: u64 = 42;

// === impl Forge ===

impl Forge {
    /// Begins to listen, for clients with the token, beside the repositories below a folder.
    pub fn start(token: &str, root: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = ForgeState {
            token: token.to_owned(),
            root: root.to_owned(),
            opened: Vec::new(),
            calls: Vec::new(),
            replies: VecDeque::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let theirs = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&theirs);
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { address, state }
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All that were ever opened.
    pub fn opened(&self) -> Vec<PullRequest> {
        locked(&self.state).opened.clone()
    }

    /// Returns the methods and paths of all requests.
    pub fn calls(&self) -> Vec<String> {
        locked(&self.state).calls.clone()
    }

    /// Opens a pull request, as another client would.
    pub fn has(&self, project: &str, head: &str, base: &str) {
        let mut state = locked(&self.state);
        state.open(PullRequest {
            number: 0,
            project: project.to_owned(),
            title: "by another user".to_owned(),
            body: String::new(),
            head: head.to_owned(),
            base: base.to_owned(),
            is_draft: false,
            is_open: true,
        });
    }

    /// Closes all.
    pub fn close(&self) {
        locked(&self.state).opened.iter_mut().for_each(|one| one.is_open = false);
    }

    /// Reacts like that to the next requests to open one, and opens those after them.
    pub fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        locked(&self.state).replies.extend(replies);
    }
}

// === impl ForgeState ===

impl ForgeState {
    fn open(&mut self, request: PullRequest) -> usize {
        let number = self.opened.len() + 1;
        self.opened.push(PullRequest { number, is_open: true, ..request });
        number
    }

    /// Returns the answer to a request; `None` if the connection is closed instead.
    fn answer(&mut self, asked: &ForgeRequest) -> Option<ForgeResponse> {
        self.calls.push(format!("{} {}", asked.method, asked.path));
        if asked.token != self.token {
            return Some((401, json!({"message": "Bad credentials"}), false));
        }
        let (kind, rest) =
            [("/api/v4", ForgeKind::GitLab), ("/api/v1", ForgeKind::Gitea), ("/api", ForgeKind::GitHub)]
                .into_iter()
                .find_map(|(prefix, kind)| Some((kind, asked.path.strip_prefix(prefix)?)))?;
        let of_project = rest.strip_prefix("/repos/").and_then(|rest| rest.strip_suffix("/pulls"));
        let by_number = format!("/projects/{PROJECT_NUMBER}/merge_requests");
        let project = match (kind, of_project) {
            (ForgeKind::GitLab, _) if rest == "/projects" => return Some((200, self.projects(asked), false)),
            (ForgeKind::GitLab, _) if rest == by_number => "team/origin".to_owned(),
            (ForgeKind::GitHub | ForgeKind::Gitea, Some(project)) if self.bare(project).exists() => {
                project.to_owned()
            }
            _ => return Some((404, json!({"message": "Not Found"}), false)),
        };
        match asked.method.as_str() {
            "GET" => Some(self.list(kind, &project, asked)),
            "POST" => self.request(kind, &project, asked),
            _ => Some((405, json!({"message": "Method Not Allowed"}), false)),
        }
    }

    fn bare(&self, project: &str) -> PathBuf {
        self.root.join(format!("{project}.git"))
    }

    fn projects(&self, asked: &ForgeRequest) -> Value {
        let project = |number: u64, path: &str| json!({"id": number, "path_with_namespace": path});
        // The search matches any part of a path.
        match asked.value("search") {
            "team/origin" => json!([project(7, "team/origin-two"), project(PROJECT_NUMBER, "team/origin")]),
            _ => json!([]),
        }
    }

    fn list(&self, kind: ForgeKind, project: &str, asked: &ForgeRequest) -> ForgeResponse {
        let is_asked_for = |one: &&PullRequest| match kind {
            ForgeKind::GitHub => {
                asked.value("head") == format!("team:{}", one.head) && asked.value("base") == one.base
            }
            ForgeKind::GitLab => {
                asked.value("source_branch") == one.head && asked.value("target_branch") == one.base
            }
            // Gitea's API has no filter for these.
            ForgeKind::Gitea => true,
        };
        let is_open = |one: &&PullRequest| one.is_open && one.project == project;
        let all: Vec<&PullRequest> = self.opened.iter().filter(is_open).filter(is_asked_for).collect();
        let page: usize = asked.value("page").parse().unwrap_or(1);
        let shown = all.iter().skip((page - 1) * A_PAGE).take(A_PAGE);
        (200, shown.map(|one| told(kind, one)).collect(), all.len() > page * A_PAGE)
    }

    fn request(&mut self, kind: ForgeKind, project: &str, asked: &ForgeRequest) -> Option<ForgeResponse> {
        let text = |name: &str| asked.body[name].as_str().unwrap_or_default().to_owned();
        let names = match kind {
            ForgeKind::GitHub | ForgeKind::Gitea => ("head", "base", "body"),
            ForgeKind::GitLab => ("source_branch", "target_branch", "description"),
        };
        let (head, base, title) = (text(names.0), text(names.1), text("title"));
        let is_draft = match kind {
            ForgeKind::GitHub => asked.body["draft"] == true,
            ForgeKind::Gitea => title.starts_with("WIP: "),
            ForgeKind::GitLab => title.starts_with("Draft: "),
        };
        let reply = self.replies.pop_front();
        if let Some(Reply::Refuses(status, why)) = reply {
            return Some((status, json!({"message": why}), false));
        }
        let bare = self.bare(project);
        let branches = git(&bare, &["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"]);
        if ![&head, &base].iter().all(|name| branches.lines().any(|line| line == **name)) {
            let why =
                json!({"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]});
            return Some((422, why, false));
        }
        let is_there = |one: &PullRequest| {
            one.is_open && one.project == project && (&one.head, &one.base) == (&head, &base)
        };
        if self.opened.iter().any(is_there) {
            let status = if kind == ForgeKind::GitHub { 422 } else { 409 };
            return Some((status, json!({"message": "A pull request already exists."}), false));
        }
        let number = self.open(PullRequest {
            number: 0,
            project: project.to_owned(),
            title,
            body: text(names.2),
            head: head.clone(),
            base: base.clone(),
            is_draft,
            is_open: true,
        });
        match reply {
            Some(Reply::OpensAndHangsUp) => None,
            _ => Some((201, told(kind, &self.opened[number - 1]), false)),
        }
    }
}

/// Returns a pull request in the format of that kind of forge.
fn told(kind: ForgeKind, one: &PullRequest) -> Value {
    let PullRequest { number, project, title, body, head, base, .. } = one;
    let url = format!("https://forge.test/{project}/pulls/{number}");
    match kind {
        ForgeKind::GitHub | ForgeKind::Gitea => json!({
            "number": number, "html_url": url, "state": "open", "title": title, "body": body,
            "head": {"ref": head, "repo": {"id": 1}}, "base": {"ref": base, "repo": {"id": 1}},
        }),
        ForgeKind::GitLab => json!({
            "iid": number, "web_url": url, "state": "opened", "title": title, "description": body,
            "source_branch": head, "target_branch": base,
            "source_project_id": PROJECT_NUMBER, "target_project_id": PROJECT_NUMBER,
        }),
    }
}

// === impl ForgeRequest ===

impl ForgeRequest {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (mut token, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => token = value.trim_start_matches("Bearer ").to_owned(),
                "private-token" => token = value.to_owned(),
                "content-length" => length = value.parse().ok()?,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(name, value)| (name.to_owned(), decoded(value))).collect();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Some(Self { method, path: path.to_owned(), query, token, body })
    }

    fn value(&self, name: &str) -> &str {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .unwrap_or_default()
    }
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        decoded.push(u8::from_str_radix(digits, 16).map_or('?', char::from));
        decoded.push_str(rest);
    }
    decoded
}

fn serve(mut stream: &TcpStream, state: &Mutex<ForgeState>) {
    let Some(asked) = ForgeRequest::read(stream) else { return };
    let Some((status, body, has_more)) = locked(state).answer(&asked) else { return };
    let body = body.to_string();
    let link = if has_more { "Link: <https://forge.test/?page=2>; rel=\"next\"\r\n" } else { "" };
    let _ = write!(
        stream,
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n{link}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn locked(state: &Mutex<ForgeState>) -> MutexGuard<'_, ForgeState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
