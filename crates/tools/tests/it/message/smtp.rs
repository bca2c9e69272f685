//! A mail server for tests, which records the commands it receives and has its own certificate authority.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Behavior of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerBehavior {
    /// Supports STARTTLS.
    Asked,
    /// Speaks only TLS.
    Implicit,
    /// Doesn't support TLS.
    WithoutTls,
    /// Sends another reply along with the one to STARTTLS.
    AheadOfTls,
    /// Has a certificate for another name.
    Another,
    /// Rejects the second recipient.
    RefusesTheSecond,
}

/// A listening server. Its thread ends with the test process.
pub(crate) struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
    folder: TempDir,
}

// === impl Server ===

impl Server {
    pub(crate) fn start(manner: ServerBehavior) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        let name = if manner == ServerBehavior::Another { "other.example" } else { "localhost" };
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = Arc::new(config.with_single_cert(vec![certificate.into()], key).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let theirs = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Errors of clients, for example disconnects, are ignored.
                let _ = serve(stream, manner, &config, &theirs);
            }
        });
        Self { port, heard, folder }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// All lines received so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        locked(&self.heard).clone()
    }
}

fn locked(heard: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    mut stream: TcpStream,
    manner: ServerBehavior,
    config: &Arc<ServerConfig>,
    heard: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let secure = |stream| {
        let session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        Ok::<_, io::Error>(StreamOwned::new(session, stream))
    };
    if manner == ServerBehavior::Implicit {
        let mut stream = secure(stream)?;
        stream.write_all(b"220 house\r\n")?;
        return converse(&mut stream, manner, heard).map(drop);
    }
    stream.write_all(b"220-house\r\n220 at your service\r\n")?;
    if converse(&mut stream, manner, heard)? {
        converse(&mut secure(stream)?, manner, heard)?;
    }
    Ok(())
}

/// Answers until STARTTLS or the end of the connection. Returns true if TLS starts.
fn converse<S: Read + Write>(
    stream: &mut S,
    manner: ServerBehavior,
    heard: &Mutex<Vec<String>>,
) -> io::Result<bool> {
    // Unbuffered, so that bytes after the command are not consumed.
    let mut lines = BufReader::with_capacity(1, stream);
    let mut is_mail = false;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim_end_matches("\r\n").to_owned();
        locked(heard).push(line.clone());
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            _ if is_mail && line != "." => continue,
            "EHLO" => "250-house\r\n250-STARTTLS\r\n250 AUTH PLAIN",
            "STARTTLS" if manner == ServerBehavior::WithoutTls => "502 no",
            "STARTTLS" if manner == ServerBehavior::AheadOfTls => "220 go\r\n250 and more",
            "STARTTLS" => "220 go",
            "AUTH" => "235 welcome",
            "RCPT" if manner == ServerBehavior::RefusesTheSecond && line.contains("two@") => {
                "550 unknown recipient"
            }
            "DATA" => "354 go on",
            "QUIT" => return Ok(false),
            _ => "250 fine",
        };
        is_mail = answer.starts_with("354");
        lines.get_mut().write_all(format!("{answer}\r\n").as_bytes())?;
        lines.get_mut().flush()?;
        if line == "STARTTLS" && manner != ServerBehavior::WithoutTls {
            return Ok(true);
        }
    }
}
