//! Git over HTTPS, served by Git's own backend, for a repository with one file.

use crate::https_server::HttpsServer;
use std::path::Path;
use std::process::Command;

/// A Git server. It logs one line per request.
pub(crate) struct GitServer {
    server: HttpsServer,
}

/// Passes every request on to `git http-backend`.
const SERVER: &str = r#"
import http.server, os, ssl, subprocess, sys
folder, backend = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        open(folder + '/asked', 'a').write(self.path + ' ' + (self.headers.get('authorization') or '') + '\n')
        path, _, query = self.path.partition('?')
        body = self.rfile.read(int(self.headers.get('content-length') or 0))
        told = subprocess.run([backend, 'http-backend'], input=body, stdout=subprocess.PIPE, env={
            'PATH': os.environ['PATH'], 'GIT_PROJECT_ROOT': folder, 'GIT_HTTP_EXPORT_ALL': '1', 'REQUEST_METHOD': self.command,
            'PATH_INFO': path, 'QUERY_STRING': query, 'CONTENT_TYPE': self.headers.get('content-type') or '',
            'CONTENT_LENGTH': str(len(body)), 'HTTP_CONTENT_ENCODING': self.headers.get('content-encoding') or '',
            'GIT_PROTOCOL': self.headers.get('git-protocol') or ''}).stdout
        head, _, content = told.partition(b'\r\n\r\n')
        status = next((line[8:] for line in head.split(b'\r\n') if line.lower().startswith(b'status: ')), b'200 OK')
        if b'content-length:' not in head.lower():
            head += b'\r\nContent-Length: %d' % len(content)
        self.wfile.write(b'HTTP/1.0 ' + status + b'\r\n' + head + b'\r\n\r\n' + content)
    do_GET = do_POST = answer
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + '/authority.pem', folder + '/key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

// === impl GitServer ===

impl GitServer {
    pub(crate) fn start() -> Self {
        Self { server: HttpsServer::start(SERVER, &["git"], fill) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/repository.git", self.server.url())
    }

    /// Returns a Python program that clones, and pushes to that branch, through the proxy: it prints `cloned` and `pushed` as
    /// far as it gets.
    pub(crate) fn cloning_and_pushing(&self, branch: &str) -> String {
        // The certificate isn't verified: this test is about other things.
        format!(
            "import os, subprocess
for name in ('NO_PROXY', 'no_proxy'): os.environ.pop(name, None)
os.environ['GIT_SSL_NO_VERIFY'] = '1'
def git(*words): subprocess.run(['git', *words], check=True)
git('clone', '-q', '{}', 'work')
os.chdir('work')
git('-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-q', '--allow-empty', '-m', 'one')
print('cloned', flush=True)
git('push', '-q', 'origin', 'HEAD:refs/heads/{branch}')
print('pushed')",
            self.url()
        )
    }

    /// Returns the path of the server's CA certificate.
    pub(crate) fn authority(&self) -> String {
        self.server.authority().display().to_string()
    }

    /// Returns the credentials of each request.
    pub(crate) fn shown(&self) -> Vec<String> {
        let asked = std::fs::read_to_string(self.server.file("asked")).unwrap_or_default();
        asked.lines().map(|line| line.split_once(' ').unwrap_or_default().1.to_owned()).collect()
    }

    /// Returns the number of requests.
    pub(crate) fn asked(&self) -> usize {
        std::fs::read_to_string(self.server.file("asked")).map_or(0, |asked| asked.lines().count())
    }

    /// Accepts pushes without authentication from now on.
    pub(crate) fn open_to_pushes(&self) {
        let repository = self.server.file("repository.git");
        let set =
            Command::new("git").args(["config", "http.receivepack", "true"]).current_dir(repository).status();
        assert!(set.unwrap().success());
    }

    /// Returns true if there is a branch of that name.
    pub(crate) fn has_branch(&self, name: &str) -> bool {
        let reference = format!("refs/heads/{name}");
        let shown = Command::new("git")
            .args(["show-ref", "--quiet", "--verify", &reference])
            .current_dir(self.server.file("repository.git"))
            .status();
        shown.unwrap().success()
    }
}

fn fill(folder: &Path) {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@house.example"]).args(arguments);
        let output = command.current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    git(&["init", "--quiet", "work"]);
    std::fs::write(folder.join("work/file"), "cloned\n").unwrap();
    git(&["-C", "work", "add", "file"]);
    git(&["-C", "work", "commit", "--quiet", "--message", "A file"]);
    git(&["clone", "--quiet", "--bare", "work", "repository.git"]);
}
