//! Test setup: a web proxy with a policy, a name server, and an upstream that counts its connections.

use super::upstream::Upstream;
use crate::names::nameserver::{Entry, NameServer};
use crate::tls::authority::Authority;
use crate::tls::front::TlsServer;
use belljar_contract::egress::{ProxiedRequestOutcome, ProxiedRequestRecord, ProxiedRequestStartRecord};
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::yaml::{MistakeLog, parse};
use belljar_egress::identity::RunOwner;
use belljar_egress::inference::ledger::WriteConfirmation;
use belljar_egress::proxy::{Listener, Proxy, ServedRun};
use belljar_egress::upstream::names::NameSource;
use belljar_egress::web::config::WebConfig;
use belljar_egress::web::fetch::{FetchAnswer, FetchError, FetchRequest, Fetcher, Page, fetcher};
use belljar_egress::web::interception_ca::InterceptionCa as RunAuthority;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::limits::WebLimits;
use belljar_egress::web::live::LivePolicy;
use belljar_egress::web::run::WebRun;
use belljar_policy::egress::EgressPolicy;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Name of the upstream; `PORT` in rules and requests is its port.
pub(crate) const UP: &str = "up.test";

/// Task and job of the run.
pub(crate) const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
pub(crate) const JOB: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f";

/// Everything between a client and an upstream.
pub(crate) struct ProxyRig {
    pub(crate) upstream: Upstream,
    pub(crate) names: NameServer,
    pub(crate) run: Arc<WebRun>,
    pub(crate) policy: Arc<LivePolicy>,
    pub(crate) ledger: Arc<PassageLedger>,
    address: SocketAddr,
    serving: Option<ServedRun>,
    fetcher: Fetcher,
    proxy: Proxy,
    /// With interception: the TLS server in front of the upstream, and the authority that the run trusts.
    front: Option<TlsServer>,
    own: Option<Arc<RunAuthority>>,
    port: String,
    folder: TempDir,
}

/// Ledger that can be read and broken.
#[derive(Default)]
pub(crate) struct PassageLedger {
    begun: Mutex<Vec<ProxiedRequestStartRecord>>,
    ended: Mutex<Vec<ProxiedRequestRecord>>,
    pub(crate) is_broken: AtomicBool,
    /// If set, the ledger has no space and reports that.
    pub(crate) is_full: AtomicBool,
}

/// Answer as the client got it.
#[derive(Debug)]
pub(crate) struct WebAnswer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

// === impl ProxyRig ===

impl ProxyRig {
    /// Makes a setup with these rules, in which the upstream's name leads to it.
    pub(crate) fn with(rules: &str) -> Self {
        Self::limited(rules, WebLimits::default())
    }

    pub(crate) fn limited(rules: &str, limits: WebLimits) -> Self {
        let upstream = Upstream::start();
        let names = NameServer::start(vec![(UP, leads(&["127.0.0.1"]))]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("hosts"), "").unwrap();
        let source = NameSource::at(folder.path().join("hosts"), vec![names.address()]);
        let proxy = Proxy::start_with(source).unwrap();
        let policy = Arc::new(LivePolicy::new(policy(rules, upstream.address.port())));
        let ledger = Arc::<PassageLedger>::default();
        let run_id = RunId::from_uuid(uuid::Uuid::now_v7());
        let written = Arc::clone(&ledger) as Arc<dyn WebLedger>;
        let owner = RunOwner {
            task_id: Some(TaskId::parse(TASK).unwrap()),
            job_id: Some(JobId::parse(JOB).unwrap()),
        };
        let run = Arc::new(WebRun::new(run_id, Arc::clone(&policy), limits, written).owned_by(owner));
        let (listener, address) = listen();
        let (fetcher, fetches) = fetcher();
        let listeners = vec![Listener::Tcp(listener), Listener::Fetches(fetches)];
        let serving = proxy.serve_web(Arc::clone(&run), listeners).unwrap();
        let serving = Some(serving);
        let port = upstream.address.port().to_string();
        let (front, own) = (None, None);
        Self {
            upstream,
            names,
            run,
            policy,
            ledger,
            address,
            serving,
            fetcher,
            proxy,
            front,
            own,
            port,
            folder,
        }
    }

    /// Makes a setup with TLS interception and a section as written in a file. The upstream is reached by TLS and has a
    /// certificate of the authority; `CA` is its file.
    pub(crate) fn looking_into(section: &str, vouched: ServerConfig, authority: &Authority) -> Self {
        Self::looking_into_limited(section, (vouched, authority), WebLimits::default())
    }

    pub(crate) fn looking_into_limited(
        section: &str,
        (vouched, authority): (ServerConfig, &Authority),
        limits: WebLimits,
    ) -> Self {
        let mut house = Self::limited("- {host: absent.test}\n", WebLimits::default());
        let front = TlsServer::start(vouched, house.upstream.address);
        let port = front.port().to_string();
        let file = authority.file().display().to_string();
        let text = section.replace("PORT", &port).replace("CA", &file);
        house.policy.replace(config(&text));
        let run_id = house.run.run_id.clone();
        let own = Arc::new(RunAuthority::new().unwrap());
        let ledger = Arc::clone(&house.ledger) as Arc<dyn WebLedger>;
        let run = WebRun::new(run_id, Arc::clone(&house.policy), limits, ledger);
        house.run = Arc::new(run.inspecting_as(Arc::clone(&own)));
        let (listener, address) = listen();
        let (fetcher, fetches) = fetcher();
        let listeners = vec![Listener::Tcp(listener), Listener::Fetches(fetches)];
        let serving = house.proxy.serve_web(Arc::clone(&house.run), listeners).unwrap();
        (house.serving, house.address, house.fetcher) = (Some(serving), address, fetcher);
        (house.front, house.own, house.port) = (Some(front), Some(own), port);
        house
    }

    /// Sends a request to a server by TLS through a tunnel, trusting the run's authorities. Returns the answer until it closes.
    pub(crate) fn ask_inside(&self, authority: &str, name: &str, bytes: &[u8]) -> Result<WebAnswer, String> {
        let stream = self.tunnel(authority).map_err(|told| told.text)?;
        let mut stream = rustls::StreamOwned::new(self.session(name, rustls::ALL_VERSIONS, &[]), stream);
        stream.write_all(&self.filled(bytes)).map_err(|error| error.to_string())?;
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        Ok(told(&text))
    }

    /// Makes a TLS client that trusts the run's authorities.
    pub(crate) fn session(
        &self,
        name: &str,
        versions: &[&'static rustls::SupportedProtocolVersion],
        protocols: &[&str],
    ) -> rustls::ClientConnection {
        let mut roots = rustls::RootCertStore::empty();
        let bundle = self.own.as_ref().unwrap().bundle(None).unwrap();
        let trusted = CertificateDer::pem_slice_iter(bundle.as_bytes()).map(Result::unwrap);
        roots.add_parsable_certificates(trusted);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(versions).unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        rustls::ClientConnection::new(Arc::new(config), name).unwrap()
    }

    /// Gets a path of the upstream in an intercepted connection, with these additional headers.
    pub(crate) fn get_inside(&self, path: &str, headers: &str) -> WebAnswer {
        let asked =
            format!("GET {path} HTTP/1.1\r\nHost: up.test:PORT\r\n{headers}Connection: close\r\n\r\n");
        self.ask_inside("up.test:PORT", UP, asked.as_bytes()).unwrap()
    }

    /// Replaces the rules.
    pub(crate) fn replace(&self, rules: &str) -> u64 {
        self.policy.replace(policy(rules, self.upstream.address.port()))
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends these bytes, and returns the answer until the connection is closed or nothing more comes.
    pub(crate) fn send(&self, bytes: &[u8]) -> WebAnswer {
        let mut stream = self.connect();
        // A refusal may come before everything is sent.
        let _ = stream.write_all(&self.filled(bytes));
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        told(&text)
    }

    /// Requests a tunnel, and returns the stream if it is allowed.
    pub(crate) fn tunnel(&self, authority: &str) -> Result<TcpStream, WebAnswer> {
        let mut stream = self.connect();
        let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        stream.write_all(&self.filled(head.as_bytes())).unwrap();
        let (mut text, mut byte) = (Vec::new(), [0]);
        while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
            text.push(byte[0]);
        }
        let found = told(&text);
        if found.status == 200 {
            return Ok(stream);
        }
        // The connection stays open for another request.
        let length =
            found.text.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        let _ = stream.read_exact(&mut body);
        text.extend_from_slice(&body);
        Err(told(&text))
    }

    /// Sends a request over plain HTTP.
    pub(crate) fn get(&self, url: &str) -> WebAnswer {
        let host = url.split('/').nth(2).unwrap_or_default();
        self.send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
    }

    /// Has the host fetch a page.
    pub(crate) fn fetch(&self, url: &str) -> Result<Page, FetchError> {
        let url = String::from_utf8(self.filled(url.as_bytes())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.fetcher.fetch(&url))
    }

    /// Has the host send a request.
    pub(crate) fn request(&self, mut request: FetchRequest) -> Result<FetchAnswer, FetchError> {
        request.url = String::from_utf8(self.filled(request.url.as_bytes())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.fetcher.request(request))
    }

    /// Returns the fetcher of the run.
    pub(crate) fn fetcher(&self) -> Fetcher {
        self.fetcher.clone()
    }

    /// Ends the run, and returns its records.
    pub(crate) fn end(&mut self) -> Vec<ProxiedRequestRecord> {
        self.serving.take().unwrap().end();
        self.ledger.ended()
    }

    /// Returns the source for name lookups.
    pub(crate) fn name_source(&self) -> NameSource {
        NameSource::at(self.folder.path().join("hosts"), vec![self.names.address()])
    }

    /// Returns the proxy's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes `PORT` mean the upstream of another setup.
    pub(crate) fn take_port_of(&mut self, other: &Self) {
        self.port = other.port();
    }

    /// Returns the port that `PORT` stands for.
    pub(crate) fn port(&self) -> String {
        self.port.clone()
    }

    pub(crate) fn filled(&self, bytes: &[u8]) -> Vec<u8> {
        let port = &self.port;
        let mut filled = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(at) = rest.windows(4).position(|window| window == b"PORT") {
            filled.extend_from_slice(&rest[..at]);
            filled.extend_from_slice(port.as_bytes());
            rest = &rest[at + 4..];
        }
        filled.extend_from_slice(rest);
        filled
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    (listener, address)
}

/// Reads a section as written in a file.
pub(crate) fn config(text: &str) -> WebConfig {
    let mut log = MistakeLog::default();
    let config = parse(text.as_bytes(), &mut log).map(|node| WebConfig::read(&node, &mut log));
    log.finish().unwrap();
    config.unwrap()
}

pub(crate) fn leads(addresses: &[&str]) -> Entry {
    Entry::Leads(addresses.iter().map(|address| address.parse::<IpAddr>().unwrap()).collect())
}

fn policy(rules: &str, port: u16) -> EgressPolicy {
    let text = format!("rules:\n{}", rules.replace("PORT", &port.to_string()));
    let mut log = MistakeLog::default();
    let policy = parse(text.as_bytes(), &mut log).map(|node| EgressPolicy::read(&node, &mut log));
    log.finish().unwrap();
    policy.unwrap()
}

fn told(bytes: &[u8]) -> WebAnswer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    WebAnswer { status, text }
}

// === impl WebAnswer ===

impl WebAnswer {
    /// Returns the code of a refusal.
    pub(crate) fn code(&self) -> &str {
        let code = self.text.split("urn:belljar:egress:").nth(1).unwrap_or_default();
        code.split('"').next().unwrap_or_default()
    }
}

// === impl PassageLedger ===

impl PassageLedger {
    pub(crate) fn begun(&self) -> Vec<ProxiedRequestStartRecord> {
        self.begun.lock().unwrap().clone()
    }

    pub(crate) fn ended(&self) -> Vec<ProxiedRequestRecord> {
        self.ended.lock().unwrap().clone()
    }

    /// Returns the latest record, once there are that many.
    pub(crate) fn latest(&self, count: usize) -> ProxiedRequestRecord {
        let given_up = Instant::now() + Duration::from_secs(20);
        loop {
            let ended = self.ended();
            if ended.len() >= count {
                return ended[count - 1].clone();
            }
            assert!(Instant::now() < given_up, "{ended:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns `completed`, or the code.
pub(crate) fn outcome(record: &ProxiedRequestRecord) -> String {
    match &record.outcome {
        ProxiedRequestOutcome::Completed => "completed".to_owned(),
        ProxiedRequestOutcome::Denied { reason } => format!("denied: {}", reason.as_str()),
        ProxiedRequestOutcome::Failed { code } => format!("failed: {}", code.as_str()),
    }
}

impl WebLedger for PassageLedger {
    fn begin(&self, record: ProxiedRequestStartRecord) -> WriteConfirmation {
        self.begun.lock().unwrap().push(record);
        let is_written = !self.is_broken.load(Ordering::SeqCst);
        Box::pin(async move { is_written })
    }

    fn record(&self, record: ProxiedRequestRecord) {
        self.ended.lock().unwrap().push(record);
    }

    fn is_sound(&self) -> bool {
        !self.is_full.load(Ordering::SeqCst)
    }
}
