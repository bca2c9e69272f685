//! Our web proxy in a process of its own, configured like `belljar exec --egress`, for some runs.

use crate::models::part::{say, wait_for_end};
use belljar_contract::egress::{ProxiedRequestRecord, ProxiedRequestStartRecord};
use belljar_contract::id::RunId;
use belljar_contract::yaml;
use belljar_egress::inference::ledger::WriteConfirmation;
use belljar_egress::proxy::{Listener, Proxy};
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::limits::WebLimits;
use belljar_egress::web::live::LivePolicy;
use belljar_egress::web::run::WebRun;
use belljar_journal::RunJournal;
use belljar_policy::audit_pace::AuditLimits;
use belljar_policy::egress::EgressPolicy;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

/// The part. It prints the port of each of its runs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WebProxyPart {
    pub(super) runs: usize,
    /// The port that tunnels may lead to.
    pub(super) port: u16,
    /// State directory whose audit log records the tunnels; `None` records nothing.
    pub(super) audit: Option<PathBuf>,
}

/// Discards all records.
struct DiscardedRecords;

/// The cost of records is measured here, not their quota.
const MOST_BYTES: u64 = u64::MAX / 2;
/// Nor is their rate limit measured.
const UNPACED: AuditLimits =
    AuditLimits { bytes: MOST_BYTES, burst_bytes: MOST_BYTES, bytes_per_second: MOST_BYTES };

const RUNS: [&str; 2] = ["01a20073-e9f5-7598-b496-5102b8186da2", "01a20073-e9f5-7598-b496-5102b8186da3"];

// === impl WebProxyPart ===

impl WebProxyPart {
    pub(crate) fn play(&self) {
        let book = self.audit.as_deref().map(|state| Arc::new(RunJournal::open(state).expect("an audit")));
        let ledger: Arc<dyn WebLedger> = match &book {
            Some(book) => Arc::clone(book) as Arc<dyn WebLedger>,
            None => Arc::new(DiscardedRecords),
        };
        let proxy = Proxy::start().expect("a thread");
        let policy = Arc::new(LivePolicy::new(self.policy()));
        let served: Vec<_> = RUNS[..self.runs]
            .iter()
            .map(|run| {
                let limits = WebLimits { bytes: MOST_BYTES, audit: UNPACED, ..WebLimits::default() };
                let run = RunId::parse(run).expect("an id");
                let run = Arc::new(WebRun::new(run, Arc::clone(&policy), limits, Arc::clone(&ledger)));
                let by_port = TcpListener::bind("127.0.0.1:0").expect("a free port");
                let address = by_port.local_addr().expect("an address");
                let socket = Listener::from_descriptor(by_port.into()).expect("a socket that listens");
                (proxy.serve_web(run, vec![socket]).expect("sockets that are served"), address)
            })
            .collect();
        say(&served.iter().map(|(_, address)| *address).collect::<Vec<SocketAddr>>());
        wait_for_end();
        served.into_iter().for_each(|(serving, _)| serving.end());
        if let Some(book) = book {
            book.close("egress_end", None, &serde_json::json!({})).expect("every record");
        }
    }

    fn policy(&self) -> EgressPolicy {
        let text = format!("rules: [{{host: 127.0.0.1, ports: [{}], networks: [127.0.0.1]}}]\n", self.port);
        let mut log = yaml::MistakeLog::default();
        let policy = yaml::parse(text.as_bytes(), &mut log).map(|root| EgressPolicy::read(&root, &mut log));
        log.finish().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        policy.expect("a policy")
    }
}

// === impl DiscardedRecords ===

impl WebLedger for DiscardedRecords {
    fn begin(&self, _: ProxiedRequestStartRecord) -> WriteConfirmation {
        Box::pin(std::future::ready(true))
    }

    fn record(&self, _: ProxiedRequestRecord) {}

    fn is_sound(&self) -> bool {
        true
    }
}
