//! An HTTPS server that records the head of each request, with a certificate that no system CA has signed.

use crate::https_server::HttpsServer;
use std::path::PathBuf;

/// The server.
pub(crate) struct RecordingServer {
    server: HttpsServer,
}

/// Responds to every request with an empty completion, which is JSON if the client wants JSON.
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
        Self { server: HttpsServer::start(SERVER, &[], |_| {}) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the file with its certificate, which is self-signed.
    pub(crate) fn authority(&self) -> PathBuf {
        self.server.authority()
    }

    /// Returns the heads of all requests so far: method and path, and then one line per header, with its name in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        let asked = std::fs::read_to_string(self.server.file("asked")).unwrap_or_default();
        asked.split_terminator('\0').map(str::to_owned).collect()
    }
}
