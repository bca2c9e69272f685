//! Front ends of a server: TLS with its own certificate authority, and proxies.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

/// TLS in front of a server of plain HTTP.
pub(super) struct TlsFrontend {
    pub(super) address: SocketAddr,
    /// Certificate of its certificate authority.
    pub(super) authority: PathBuf,
    _folder: tempfile::TempDir,
}

/// Serves TLS for that name, and forwards to a server, one connection after the other.
pub(super) fn tls_front(server: SocketAddr, name: &str) -> TlsFrontend {
    let mut of_authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority = of_authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_params(&of_authority, &authority_key);
    let certificate =
        CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authority.pem");
    std::fs::write(&path, authority.pem()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let address = listen(move |client| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut client = StreamOwned::new(connection, client);
        let mut server = TcpStream::connect(server).unwrap();
        // One exchange after the other, each of which is smaller than the buffer or says its length.
        while let Some(request) = message(&mut client) {
            server.write_all(&request).unwrap();
            let Some(answer) = message(&mut server) else { return };
            if client.write_all(&answer).and_then(|()| client.flush()).is_err() {
                return;
            }
        }
    });
    TlsFrontend { address, authority: path, _folder: folder }
}

/// A proxy that forwards requests for one host in absolute form to a server, and refuses others.
pub(super) fn plain_proxy(server: SocketAddr, host: &'static str) -> SocketAddr {
    listen(move |mut client| {
        let mut upstream = TcpStream::connect(server).unwrap();
        while let Some(request) = message(&mut client) {
            let text = String::from_utf8(request).unwrap();
            let absolute = format!(" http://{host}/");
            let head = text.lines().next().unwrap_or_default();
            assert!(head.contains(&absolute), "{head}");
            upstream.write_all(text.replacen(&absolute, " /", 1).as_bytes()).unwrap();
            let Some(answer) = message(&mut upstream) else { return };
            if client.write_all(&answer).is_err() {
                return;
            }
        }
    })
}

/// A proxy that accepts `CONNECT` to one target, which a server stands for.
pub(super) fn connecting_proxy(server: SocketAddr, target: &'static str) -> SocketAddr {
    listen(move |mut client| {
        let request = String::from_utf8(message(&mut client).unwrap_or_default()).unwrap();
        assert!(request.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")), "{request}");
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        let mut server = TcpStream::connect(server).unwrap();
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let there = std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
        let _ = std::io::copy(&mut server, &mut client);
        let _ = client.shutdown(std::net::Shutdown::Both);
        let _ = there.join();
    })
}

/// Serves each connection in a thread of its own.
fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(client));
        }
    });
    address
}

/// A message of HTTP with a length or in chunks; nothing where the connection ends.
fn message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        let size = stream.read(&mut buffer).ok().filter(|size| *size > 0)?;
        bytes.extend_from_slice(&buffer[..size]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let is_whole = match length {
            Some(length) => bytes.len() >= head.len() + 4 + length,
            None if head.contains("transfer-encoding: chunked") => body.ends_with("0\r\n\r\n"),
            None => true,
        };
        if is_whole {
            return Some(bytes);
        }
    }
}
