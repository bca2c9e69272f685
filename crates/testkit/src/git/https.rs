//! `git http-backend` behind nginx: TLS by an authority of its own, and a password.

use super::{ServerProcess, free_port, program};
use crate::wait;
use crate::world::World;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An HTTPS server for git repositories.
#[derive(Debug)]
pub struct HttpsServer {
    address: Ipv4Addr,
    port: u16,
    folder: PathBuf,
    _nginx: ServerProcess,
    _backend: ServerProcess,
}

/// Site of a server.
#[derive(Debug, Clone, Copy)]
pub struct HttpsSite<'s> {
    /// Address that it listens at.
    pub address: Ipv4Addr,
    /// Names in its certificate.
    pub names: &'s [&'s str],
    /// Password of the user `user`.
    pub password: &'s str,
    /// Address of a forge, if one is served beside the repositories.
    pub forge: Option<SocketAddr>,
}

// === impl HttpsServer ===

impl HttpsServer {
    /// Serves the repositories below a folder at an address, for clients with the password, under these names.
    ///
    /// # Errors
    /// Why it can't be had here.
    pub fn start(
        world: &World,
        root: &Path,
        (address, names): (Ipv4Addr, &[&str]),
        password: &str,
    ) -> Result<Self, String> {
        Self::start_beside(world, root, &HttpsSite { address, names, password, forge: None })
    }

    /// Serves the repositories beside a forge, whose interface is below `/api/`.
    ///
    /// # Errors
    /// Why it can't be had here.
    pub fn start_beside(world: &World, root: &Path, site: &HttpsSite<'_>) -> Result<Self, String> {
        let HttpsSite { address, names, password, forge } = *site;
        let (nginx, wrapper) = (program("nginx")?, program("fcgiwrap")?);
        let port = free_port(address);
        let folder = world.path().join(format!("nginx-{port}"));
        std::fs::create_dir_all(folder.join("temporary")).expect("a folder");
        certify(&folder, names);
        std::fs::write(folder.join("passwords"), format!("user:{{PLAIN}}{password}\n")).expect("a file");
        std::fs::write(folder.join("nginx.conf"), configuration((&folder, root), (address, port), forge))
            .expect("a file");
        let socket = folder.join("backend.sock");
        let mut backend = Command::new(wrapper);
        backend.arg("-s").arg(format!("unix:{}", socket.display())).env_clear();
        backend.env("PATH", "/usr/local/bin:/usr/bin:/bin").stdout(Stdio::null()).stderr(Stdio::null());
        let backend = ServerProcess::start(&mut backend);
        wait::until(|| socket.exists());
        let mut server = Command::new(nginx);
        server.arg("-p").arg(&folder).arg("-c").arg(folder.join("nginx.conf")).stderr(Stdio::null());
        let mut server = ServerProcess::start(&mut server);
        wait::until(|| TcpStream::connect((address, port)).is_ok() || server.is_over());
        match server.is_over() {
            true => Err("nginx doesn't start".to_owned()),
            false => Ok(Self { address, port, folder, _nginx: server, _backend: backend }),
        }
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// By what it is trusted: a file in PEM.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// Returns all requests, a line each.
    pub fn requests(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.join("access.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

fn configuration(
    (folder, root): (&Path, &Path),
    (address, port): (Ipv4Addr, u16),
    forge: Option<SocketAddr>,
) -> String {
    let forge = forge.map(|forge| format!("location /api/ {{ auth_basic off; proxy_pass http://{forge}; }}"));
    let forge = forge.unwrap_or_default();
    let (folder, root) = (folder.display(), root.display());
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let backend = ["/usr/local/libexec/git-core", "/usr/lib/git-core", "/usr/libexec/git-core"];
    let backend = backend.map(|place| Path::new(place).join("git-http-backend"));
    let backend = backend.iter().find(|path| path.exists()).expect("git's own server").display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("{name}_temp_path {folder}/temporary/{name};")).join("\n");
    format!(
        "{user} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 64; }}\nhttp {{ access_log {folder}/access.log; {temporary}\n\
         server {{ listen {address}:{port} ssl; ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;\n\
         client_max_body_size 0; auth_basic git; auth_basic_user_file {folder}/passwords;\n\
         {forge}\n\
         location /elsewhere/ {{ auth_basic off; rewrite ^/elsewhere/(.*)$ /$1 redirect; }}\n\
         location / {{ fastcgi_pass unix:{folder}/backend.sock; fastcgi_param SCRIPT_FILENAME {backend};\n\
         fastcgi_param GIT_PROJECT_ROOT {root}; fastcgi_param GIT_HTTP_EXPORT_ALL 1; fastcgi_param PATH_INFO $uri;\n\
         fastcgi_param REMOTE_USER $remote_user; fastcgi_param QUERY_STRING $query_string;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_TYPE $content_type;\n\
         fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;\n\
         fastcgi_param GIT_PROTOCOL $http_git_protocol; fastcgi_param GIT_CONFIG_COUNT 1;\n\
         fastcgi_param GIT_CONFIG_KEY_0 safe.directory; fastcgi_param GIT_CONFIG_VALUE_0 *; }} }} }}\n"
    )
}

/// Creates a certificate authority, and its certificate for the server.
fn certify(folder: &Path, names: &[&str]) {
    let write = |name: &str, content: &str| std::fs::write(folder.join(name), content).expect("a file");
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    write("authority.pem", &authority.self_signed(&key).expect("a certificate").pem());
    let issuer = Issuer::new(authority, key);
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let server = CertificateParams::new(names).expect("parameters");
    let key = KeyPair::generate().expect("a key");
    write("server.pem", &server.signed_by(&key, &issuer).expect("a certificate").pem());
    write("server.key", &key.serialize_pem());
}
