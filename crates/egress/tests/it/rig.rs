//! Test rig: a proxy between a raw client and a scripted model server.

use belljar_contract::id::RunId;
use belljar_contract::inference::{BodiesRecord, CallRecord, CallStartRecord};
use belljar_egress::credential::{Credential, SecretSource};
use belljar_egress::http1::limits::Times;
use belljar_egress::identity::Identity;
use belljar_egress::inference::budget::{Budget, BudgetLimits};
use belljar_egress::inference::ledger::{Ledger, WriteConfirmation};
use belljar_egress::inference::models::{Model, Models, Price, Provider, ProviderKind};
use belljar_egress::inference::run::Run;
use belljar_egress::proxy::{Listener, Proxy, ServedRun};
use belljar_egress::upstream::Upstream;
use belljar_egress::upstream::names::NameSource;
use belljar_testkit::models::{ModelServer, Script, ServerBehaviour};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// Key that only the provider may see.
pub(crate) const KEY: &str = "sk-host-4f9aB7zKd82QmX01";
pub(crate) const RUN: &str = "01a20073-e9f5-7598-b496-5102b8186da2";

pub(crate) const CHAT: &str = "/v1/chat/completions";

/// Everything between a client and a model.
pub(crate) struct Rig {
    pub(crate) server: ModelServer,
    pub(crate) book: Arc<CallLedger>,
    pub(crate) run: Arc<Run>,
    address: SocketAddr,
    serving: Option<ServedRun>,
    // Last, because dropping it ends everything.
    _proxy: Proxy,
    _folder: TempDir,
}

/// Configuration of a rig.
pub(crate) struct RigConfig {
    pub(crate) kind: ProviderKind,
    pub(crate) conduct: ServerBehaviour,
    pub(crate) limits: BudgetLimits,
    pub(crate) stated_price: Option<Price>,
    pub(crate) times: Times,
}

/// Ledger that can be read and broken.
#[derive(Default)]
pub(crate) struct CallLedger {
    records: Mutex<Vec<CallRecord>>,
    bodies: Mutex<Vec<BodiesRecord>>,
    begun: Mutex<Vec<CallStartRecord>>,
    pub(crate) is_broken: AtomicBool,
    /// If set, calls wait until the test decides whether their record is written.
    pub(crate) is_slow: AtomicBool,
    pub(crate) waiting: Mutex<Vec<oneshot::Sender<bool>>>,
    pub(crate) is_full: AtomicBool,
}

/// Answer as the client got it.
#[derive(Debug)]
pub(crate) struct ClientAnswer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Default for RigConfig {
    fn default() -> Self {
        Self {
            kind: ProviderKind::LiteLlm,
            conduct: ServerBehaviour::default(),
            limits: BudgetLimits::default(),
            stated_price: None,
            times: Times::default(),
        }
    }
}

// === impl CallLedger ===

impl CallLedger {
    pub(crate) fn records(&self) -> Vec<CallRecord> {
        self.records.lock().unwrap().clone()
    }

    /// Recorded bodies of calls.
    pub(crate) fn bodies(&self) -> Vec<BodiesRecord> {
        self.bodies.lock().unwrap().clone()
    }

    /// Records of calls that were about to begin.
    pub(crate) fn begun(&self) -> Vec<CallStartRecord> {
        self.begun.lock().unwrap().clone()
    }

    /// Waits for the only record.
    pub(crate) fn only(&self) -> CallRecord {
        belljar_testkit::wait::until(|| !self.records().is_empty());
        let records = self.records();
        assert_eq!(records.len(), 1, "{records:?}");
        records.into_iter().next().unwrap()
    }
}

impl Ledger for CallLedger {
    fn begin(&self, record: CallStartRecord) -> WriteConfirmation {
        let (done, written) = oneshot::channel();
        self.begun.lock().unwrap().push(record);
        match self.is_slow.load(Ordering::Relaxed) {
            true => self.waiting.lock().unwrap().push(done),
            false => done.send(true).unwrap(),
        }
        Box::pin(async { written.await.unwrap_or(false) })
    }

    fn record(&self, record: CallRecord) {
        self.records.lock().unwrap().push(record);
    }

    fn record_bodies(&self, record: BodiesRecord) {
        self.bodies.lock().unwrap().push(record);
    }

    fn is_sound(&self) -> bool {
        !self.is_broken.load(Ordering::Relaxed)
    }

    fn has_room(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }
}

// === impl Rig ===

impl Rig {
    pub(crate) fn new(script: Script) -> Self {
        Self::with(RigConfig::default(), script)
    }

    pub(crate) fn with(plan: RigConfig, script: Script) -> Self {
        let server = ModelServer::start_with(plan.conduct.clone(), script);
        let upstream = Upstream::parse(&server.url()).unwrap();
        Self::at((server, upstream), NameSource::of_system(), plan)
    }

    /// Makes a complete rig.
    fn at(
        (server, upstream): (ModelServer, Upstream),
        names: NameSource,
        RigConfig { kind, limits, stated_price, times, .. }: RigConfig,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), KEY).unwrap();
        let provider = Arc::new(Provider {
            name: "house".to_owned(),
            kind,
            upstream,
            credential: Some(Arc::new(Credential::new(SecretSource::File(folder.path().join("key"))))),
        });
        let model = |name: &str, upstream_name: &str| Model {
            name: name.to_owned(),
            upstream_name: upstream_name.to_owned(),
            provider: Arc::clone(&provider),
            stated_price,
        };
        let book = Arc::new(CallLedger::default());
        let run = Arc::new(Run {
            identity: identity(),
            models: Models::from_iter([model("small", "gpt-4o-mini"), model("large", "large")]),
            budget: Budget::new(limits),
            times,
            keeps_bodies: true,
            ledger: Arc::clone(&book) as Arc<dyn Ledger>,
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = Proxy::start_with(names).unwrap();
        let listener = Listener::from_descriptor(listener.into()).unwrap();
        let serving = proxy.serve(Arc::clone(&run), vec![listener]).unwrap();
        Self { server, book, run, address, serving: Some(serving), _proxy: proxy, _folder: folder }
    }

    pub(crate) fn key_file(&self) -> std::path::PathBuf {
        self._folder.path().join("key")
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes, and reads until the other end closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> ClientAnswer {
        let mut stream = self.connect();
        // A proxy that refuses early closes early.
        let _ = stream.write_all(bytes);
        read(stream)
    }

    /// Posts a document with additional headers, and waits for the whole answer.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &Value) -> ClientAnswer {
        let mut stream = self.connect();
        stream.write_all(&request(path, &format!("{headers}Connection: close\r\n"), body)).unwrap();
        read(stream)
    }

    pub(crate) fn get(&self, path: &str) -> ClientAnswer {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        read(stream)
    }

    /// Makes a rig with a LiteLLM provider at the given upstream.
    pub(crate) fn reaching(upstream: Upstream, server: ModelServer, names: NameSource) -> Self {
        let times = Times { connect: std::time::Duration::from_secs(5), ..Times::default() };
        Self::at((server, upstream), names, RigConfig { times, ..RigConfig::default() })
    }

    /// Ends the run.
    pub(crate) fn end(&mut self) {
        self.serving.take().unwrap().end();
    }
}

pub(crate) fn identity() -> Identity {
    Identity {
        run_id: RunId::parse(RUN).unwrap(),
        attempt: 2,
        billing_account_id: "account-7".to_owned(),
        graph_id: "sandbox:agent".to_owned(),
        user_id: Some("user-9".to_owned()),
        existing_trace_id: Some("trace-1".to_owned()),
        session_id: Some("session-3".to_owned()),
        trace_user_id: None,
    }
}

pub(crate) fn request(path: &str, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

/// Reads one answer to its end.
pub(crate) fn read(mut stream: TcpStream) -> ClientAnswer {
    let mut bytes = Vec::new();
    // A connection that is cut off may be reset.
    let _ = stream.read_to_end(&mut bytes);
    ClientAnswer::from(bytes)
}

// === impl ClientAnswer ===

impl ClientAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Vec<u8>> for ClientAnswer {
    fn from(bytes: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status =
            head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned(), bytes }
    }
}
