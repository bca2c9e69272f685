//! The peers: nginx with the headers that a host adds, and socat in front of it, the chain of the original design
//! (`docs/contracts/agents.md#a4`).

use super::message::{ACCOUNT, KEY, METADATA};
use super::process::Process;
use super::socket::ListenerAddress;
use crate::installed;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// nginx, with one worker.
pub(super) struct Nginx {
    pub(super) process: Process,
    pub(super) socket: ListenerAddress,
    pub(super) port: ListenerAddress,
    path: PathBuf,
}

/// socat, which forwards each connection to a socket in a process of its own.
pub(super) struct Socat {
    pub(super) process: Process,
    pub(super) port: ListenerAddress,
}

/// Returns a program of these that isn't installed.
pub(super) fn missing(wanted: &[&'static str]) -> Option<&'static str> {
    wanted.iter().copied().find(|name| installed(&[name]).is_none())
}

// === impl Nginx ===

impl Nginx {
    pub(super) fn start(folder: &Path, provider: SocketAddr) -> Self {
        let (path, port) = (folder.join("nginx.sock"), free_port());
        let config = folder.join("nginx.conf");
        std::fs::write(&config, configuration(folder, provider, port)).expect("a file");
        let text = |path: &Path| path.display().to_string();
        let log = text(&folder.join("nginx.log"));
        let arguments = ["-c", &text(&config), "-p", &text(folder), "-e", &log].map(str::to_owned);
        let process = Process::foreign("nginx", &arguments);
        let nginx = Self {
            process,
            socket: ListenerAddress::Local(path.clone()),
            port: ListenerAddress::Tcp(port),
            path,
        };
        must_listen(&nginx.socket);
        must_listen(&nginx.port);
        nginx
    }
}

/// Returns the configuration; all other settings are nginx's defaults. It closes no connection in the middle of a turn, and
/// has one connection to the provider for each of a client's.
fn configuration(folder: &Path, provider: SocketAddr, port: SocketAddr) -> String {
    let folder = folder.display();
    format!(
        "worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 32m;
    keepalive_requests 1000000000;
    upstream provider {{
        server {provider};
        keepalive 128;
        keepalive_requests 1000000000;
    }}
    server {{
        listen unix:{folder}/nginx.sock;
        listen {port};
        location /v1/ {{
            proxy_pass http://provider;
            proxy_http_version 1.1;
            proxy_set_header connection '';
            proxy_set_header host $http_host;
            proxy_set_header content-type $http_content_type;
            proxy_set_header authorization 'Bearer {KEY}';
            proxy_set_header x-litellm-end-user-id '{ACCOUNT}';
            proxy_set_header x-litellm-spend-logs-metadata '{METADATA}';
            proxy_buffering off;
            proxy_cache off;
            proxy_read_timeout 300s;
        }}
    }}
}}
"
    )
}

// === impl Socat ===

impl Socat {
    /// Starts socat in front of nginx's socket.
    pub(super) fn start(nginx: &Nginx) -> Self {
        let port = free_port();
        let listen = format!("TCP-LISTEN:{},bind=127.0.0.1,fork,reuseaddr,backlog=128", port.port());
        let process = Process::foreign("socat", &[listen, format!("UNIX-CONNECT:{}", nginx.path.display())]);
        let port = ListenerAddress::Tcp(port);
        must_listen(&port);
        Self { process, port }
    }
}

fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

fn must_listen(target: &ListenerAddress) {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begun = Instant::now();
    while target.connect().is_err() {
        assert!(begun.elapsed() < PATIENCE, "no process listens at {target:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
