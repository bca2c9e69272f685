//! Our proxy in a process of its own, configured like `belljar exec --model`: with a socket and a port, a credential to
//! inject, a list of models to check, and an audit log if requested.

use super::message::{ACCOUNT, KEY, RUN};
use super::part::{Part, say, wait_for_end};
use super::process::Process;
use super::socket::ListenerAddress;
use belljar_contract::id::RunId;
use belljar_contract::inference::{BodiesRecord, CallRecord, CallStartRecord};
use belljar_contract::yaml;
use belljar_egress::http1::limits::Times;
use belljar_egress::identity::Identity;
use belljar_egress::inference::budget::Budget;
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::inference::ledger::{Ledger, WriteConfirmation};
use belljar_egress::inference::run::Run;
use belljar_egress::proxy::{Listener, Proxy};
use belljar_journal::{ModelCalls, RunJournal};
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The part. It prints its port, and at its end the number of calls that it has recorded.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProxyPart {
    socket: PathBuf,
    provider: SocketAddr,
    /// State directory whose audit log records the calls; `None` records nothing.
    audit: Option<PathBuf>,
    credential: PathBuf,
}

/// A process with our proxy.
pub(super) struct ProxyProcess {
    pub(super) process: Process,
    pub(super) socket: ListenerAddress,
    pub(super) port: ListenerAddress,
}

/// Discards all records.
struct NullRecords;

// === impl ProxyProcess ===

impl ProxyProcess {
    /// Starts a proxy in front of a provider, with its files in this folder.
    pub(super) fn start(folder: &Path, provider: SocketAddr, audit: Option<&Path>) -> Self {
        let socket = folder.join(if audit.is_some() { "audited.sock" } else { "ours.sock" });
        let credential = folder.join("key");
        std::fs::write(&credential, KEY).expect("a file");
        let audit = audit.map(Path::to_owned);
        let house = ProxyPart { socket: socket.clone(), provider, audit, credential };
        let mut process = Process::play(&Part::House(house));
        let port = ListenerAddress::Tcp(process.hear());
        Self { process, socket: ListenerAddress::Local(socket), port }
    }
}

// === impl ProxyPart ===

impl ProxyPart {
    pub(super) fn play(&self) {
        let config = self.config();
        let book = self.audit.as_deref().map(|state| Arc::new(RunJournal::open(state).expect("an audit")));
        let ledger: Arc<dyn Ledger> = match &book {
            Some(book) => Arc::clone(book) as Arc<dyn Ledger>,
            None => Arc::new(NullRecords),
        };
        let budget = Budget::new(config.budget);
        let times = Times::default();
        let run =
            Run { identity: identity(), models: config.models, budget, times, keeps_bodies: false, ledger };
        let by_port = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = by_port.local_addr().expect("an address");
        let by_path = UnixListener::bind(&self.socket).expect("a free path");
        let sockets = [by_port.into(), by_path.into()].map(Listener::from_descriptor);
        let sockets = sockets.into_iter().collect::<Result<_, _>>().expect("sockets that listen");
        let proxy = Proxy::start().expect("a thread");
        let serving = proxy.serve(Arc::new(run), sockets).expect("sockets that are served");
        say(&address);
        wait_for_end();
        serving.end();
        say(&book.as_ref().map_or(0, written));
    }

    /// Returns the configuration in the format of a file. The rate of records isn't limited, because calls per second are
    /// measured.
    fn config(&self) -> InferenceConfig {
        let (provider, key) = (self.provider, self.credential.display());
        let text = format!(
            "providers: [{{name: house, kind: litellm, url: 'http://{provider}', credential: {{file: '{key}'}}}}]\n\
             models: [{{name: small, provider: house, upstream: gpt-4o-mini}}, {{name: large, provider: house}}]\n\
             budget: {{at_once: 2000, audit_bytes: 1024g, audit_bytes_per_second: 64g}}\n"
        );
        let mut log = yaml::MistakeLog::default();
        let config =
            yaml::parse(text.as_bytes(), &mut log).map(|root| InferenceConfig::read(&root, &mut log));
        log.finish().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        config.expect("a configuration")
    }
}

/// Closes the log, and returns the number of calls on disk.
fn written(book: &Arc<RunJournal>) -> u64 {
    Arc::clone(book).close("inference_end", None, &serde_json::json!({})).expect("every record");
    let ModelCalls { listed, unlisted } = book.calls();
    listed.len() as u64 + unlisted
}

fn identity() -> Identity {
    Identity {
        run_id: RunId::parse(RUN).expect("an id"),
        attempt: 0,
        billing_account_id: ACCOUNT.to_owned(),
        graph_id: "sandbox:agent".to_owned(),
        user_id: None,
        existing_trace_id: None,
        session_id: None,
        trace_user_id: None,
    }
}

// === impl NullRecords ===

impl Ledger for NullRecords {
    fn begin(&self, _: CallStartRecord) -> WriteConfirmation {
        Box::pin(std::future::ready(true))
    }

    fn record(&self, _: CallRecord) {}

    fn record_bodies(&self, _: BodiesRecord) {}

    fn is_sound(&self) -> bool {
        true
    }
}
