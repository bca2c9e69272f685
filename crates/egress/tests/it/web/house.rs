//! A web proxy with a policy, a name server, and an upstream that counts who has come.

use crate::names::nameserver::{Entry, NameServer};
use belljar_contract::egress::{PassageBegun, PassageOutcome, PassageRecord};
use belljar_contract::id::RunId;
use belljar_contract::yaml::{Log, parse};
use belljar_egress::inference::ledger::Written;
use belljar_egress::proxy::{Listener, Proxy, Serving};
use belljar_egress::upstream::names::NameSource;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::limits::WebLimits;
use belljar_egress::web::live::LivePolicy;
use belljar_egress::web::run::WebRun;
use belljar_policy::egress::EgressPolicy;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The name of the upstream; `PORT` in rules and requests is its port.
pub(crate) const UP: &str = "up.test";

/// All that stands between a client and an upstream.
pub(crate) struct House {
    pub(crate) upstream: Upstream,
    pub(crate) names: NameServer,
    pub(crate) run: Arc<WebRun>,
    pub(crate) policy: Arc<LivePolicy>,
    pub(crate) ledger: Arc<Ledger>,
    address: SocketAddr,
    serving: Option<Serving>,
    _proxy: Proxy,
    _folder: TempDir,
}

/// A server that answers every request of HTTP with `hello`, says back whatever else it hears, and counts.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    heads: Mutex<Vec<String>>,
}

/// A ledger that can be read, and can be broken.
#[derive(Default)]
pub(crate) struct Ledger {
    begun: Mutex<Vec<PassageBegun>>,
    ended: Mutex<Vec<PassageRecord>>,
    pub(crate) is_broken: AtomicBool,
}

/// What a client was told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) text: String,
}

// === impl House ===

impl House {
    /// One with these rules, in which the upstream's name leads to it.
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
        let ledger = Arc::<Ledger>::default();
        let run_id = RunId::from_uuid(uuid::Uuid::now_v7());
        let written = Arc::clone(&ledger) as Arc<dyn WebLedger>;
        let run = Arc::new(WebRun::new(run_id, Arc::clone(&policy), limits, written));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let serving = proxy.serve_web(Arc::clone(&run), vec![Listener::Tcp(listener)]).unwrap();
        let serving = Some(serving);
        Self { upstream, names, run, policy, ledger, address, serving, _proxy: proxy, _folder: folder }
    }

    /// Has other rules count.
    pub(crate) fn replace(&self, rules: &str) -> u64 {
        self.policy.replace(policy(rules, self.upstream.address.port()))
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// What is said to these bytes, until the connection is closed or nothing more comes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Told {
        let mut stream = self.connect();
        // Whoever is refused may be so before all is sent.
        let _ = stream.write_all(&self.filled(bytes));
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        told(&text)
    }

    /// Asks for a tunnel; the stream if there is one.
    pub(crate) fn tunnel(&self, authority: &str) -> Result<TcpStream, Told> {
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
        // It stays open, for whoever wants to ask again.
        let length =
            found.text.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        let _ = stream.read_exact(&mut body);
        text.extend_from_slice(&body);
        Err(told(&text))
    }

    /// Asks for something over plain HTTP.
    pub(crate) fn get(&self, url: &str) -> Told {
        let host = url.split('/').nth(2).unwrap_or_default();
        self.send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
    }

    /// Ends the run; what was recorded of it.
    pub(crate) fn end(&mut self) -> Vec<PassageRecord> {
        self.serving.take().unwrap().end();
        self.ledger.ended()
    }

    fn filled(&self, bytes: &[u8]) -> Vec<u8> {
        let port = self.upstream.address.port().to_string();
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

pub(crate) fn leads(addresses: &[&str]) -> Entry {
    Entry::Leads(addresses.iter().map(|address| address.parse::<IpAddr>().unwrap()).collect())
}

fn policy(rules: &str, port: u16) -> EgressPolicy {
    let text = format!("rules:\n{}", rules.replace("PORT", &port.to_string()));
    let mut log = Log::default();
    let policy = parse(text.as_bytes(), &mut log).map(|node| EgressPolicy::read(&node, &mut log));
    log.finish().unwrap();
    policy.unwrap()
}

fn told(bytes: &[u8]) -> Told {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Told { status, text }
}

// === impl Told ===

impl Told {
    /// The code of a refusal.
    pub(crate) fn code(&self) -> &str {
        let code = self.text.split("urn:belljar:egress:").nth(1).unwrap_or_default();
        code.split('"').next().unwrap_or_default()
    }
}

// === impl Upstream ===

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Seen>::default();
        let theirs = Arc::clone(&seen);
        // It goes with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                theirs.connections.fetch_add(1, Ordering::SeqCst);
                let seen = Arc::clone(&theirs);
                std::thread::spawn(move || answer(stream, &seen));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The heads of all requests that have come, in the order in which they did.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, seen: &Seen) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 << 10]);
    while let Ok(count) = stream.read(&mut buffer) {
        if count == 0 {
            return;
        }
        let is_http = bytes.first().or(buffer.first()).is_some_and(u8::is_ascii_uppercase);
        if !is_http {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
            continue;
        }
        bytes.extend_from_slice(&buffer[..count]);
        while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            bytes.drain(..end + 4);
            let reply: &[u8] = match head.starts_with("HEAD") {
                true => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                false => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Seen: yes\r\n\r\nhello",
            };
            seen.heads.lock().unwrap().push(head);
            if stream.write_all(reply).is_err() {
                return;
            }
        }
    }
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn begun(&self) -> Vec<PassageBegun> {
        self.begun.lock().unwrap().clone()
    }

    pub(crate) fn ended(&self) -> Vec<PassageRecord> {
        self.ended.lock().unwrap().clone()
    }

    /// The latest record, once there are so many.
    pub(crate) fn latest(&self, count: usize) -> PassageRecord {
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

/// `completed`, or the code.
pub(crate) fn outcome(record: &PassageRecord) -> String {
    match &record.outcome {
        PassageOutcome::Completed => "completed".to_owned(),
        PassageOutcome::Denied { reason } => format!("denied: {}", reason.as_str()),
        PassageOutcome::Failed { code } => format!("failed: {}", code.as_str()),
    }
}

impl WebLedger for Ledger {
    fn begin(&self, record: PassageBegun) -> Written {
        self.begun.lock().unwrap().push(record);
        let is_written = !self.is_broken.load(Ordering::SeqCst);
        Box::pin(async move { is_written })
    }

    fn record(&self, record: PassageRecord) {
        self.ended.lock().unwrap().push(record);
    }

    fn is_sound(&self) -> bool {
        true
    }
}
