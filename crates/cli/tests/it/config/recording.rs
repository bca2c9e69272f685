//! An HTTPS server that keeps the head of each request, for a name that no authority of the system vouches for.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A server at `localhost`. Dropping it ends it.
pub(crate) struct RecordingServer {
    folder: TempDir,
    server: Child,
    port: u16,
}

/// Answers everything with an empty completion, which is JSON where a client wants JSON.
const SERVER: &str = r#"
import http.server, ssl, sys
folder = sys.argv[1]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self):
        self.rfile.read(int(self.headers.get('content-length') or 0))
        fields = ''.join(f'{name.lower()}: {value}\n' for name, value in self.headers.items())
        with open(folder + '/asked', 'a') as asked: asked.write(self.command + ' ' + self.path + '\n' + fields + '\0')
        body = b'{"choices": []}'
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = answer
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    def handle_error(self, *_): pass
    def finish_request(self, request, address):
        # In the thread of the connection: a client that says nothing keeps no other one waiting.
        request.settimeout(60)
        super().finish_request(context.wrap_socket(request, server_side=True), address)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + '/authority.pem', folder + '/key.pem')
server = Server(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

// === impl RecordingServer ===

impl RecordingServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join("authority.pem"), cert.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        let mut server = Command::new("python3");
        server.args(["-c", SERVER]).arg(folder.path()).stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { folder, server, port: line.trim().parse().unwrap() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The file with its certificate, which is its own authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// The heads of all requests so far: the method and the path, and then a line for each header, with its name in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        let asked = std::fs::read_to_string(self.folder.path().join("asked")).unwrap_or_default();
        asked.split_terminator('\0').map(str::to_owned).collect()
    }
}

impl Drop for RecordingServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
