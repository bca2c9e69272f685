//! The time to open tunnels through the web proxy, and their throughput, compared with squid, tinyproxy and direct
//! connections.
//!
//! Each part is a process of its own, as with [`crate::models`]; all of them share the processors.

pub(crate) mod far_end;
pub(crate) mod gate;
pub(crate) mod knock;
mod many;
mod opened;
mod passed;
mod peers;
pub(crate) mod pull;
pub(crate) mod stay;

pub(crate) use many::run as many;
pub(crate) use opened::run as opened;
pub(crate) use passed::run as passed;

use crate::models::part::Part;
use crate::models::process::Process;
use crate::models::socket::ListenerAddress;
use far_end::FarEnd;
use gate::WebProxyPart;
use peers::{Squid, TinyProxy};
use std::net::SocketAddr;
use std::path::Path;

/// All parts: the far end of tunnels, ours with and without its audit log, and the peers.
struct WebParts {
    _far_end: Process,
    address: SocketAddr,
    ours: Process,
    unrecorded: Process,
    squid: Process,
    tinyproxy: Process,
    lanes: Vec<(&'static str, ListenerAddress)>,
}

/// Indices of the lanes.
const OURS: usize = 0;
const UNRECORDED: usize = 1;
const SQUID: usize = 2;
const TINYPROXY: usize = 3;

/// A host that no policy allows.
const ELSEWHERE: &str = "elsewhere.example:443";

// === impl WebParts ===

impl WebParts {
    /// Starts all of them, with their files in this folder.
    fn start(folder: &Path) -> Self {
        let mut far_end = Process::play(&Part::FarEnd(FarEnd));
        let address: SocketAddr = far_end.hear();
        let gate = |audit| {
            let mut process =
                Process::play(&Part::Gate(WebProxyPart { runs: 2, port: address.port(), audit }));
            let ports: Vec<SocketAddr> = process.hear();
            (process, ports)
        };
        let (ours, recorded) = gate(Some(folder.join("state")));
        let (without, unrecorded_at) = gate(None);
        let (squid, by_squid) = Squid::start(folder, address.port());
        let (tinyproxy, by_tinyproxy) = TinyProxy::start(folder);
        let lanes = vec![
            ("belljar, every tunnel on the disk before it opens", ListenerAddress::Tcp(recorded[0])),
            ("belljar, without the audit", ListenerAddress::Tcp(unrecorded_at[0])),
            ("squid, one worker, without a log", by_squid),
            ("tinyproxy, a thread for each", by_tinyproxy),
            ("belljar, another run", ListenerAddress::Tcp(recorded[1])),
        ];
        Self { _far_end: far_end, address, ours, unrecorded: without, squid, tinyproxy, lanes }
    }

    /// Returns the proxies, by lane.
    fn between(&self) -> [&Process; 4] {
        [&self.ours, &self.unrecorded, &self.squid, &self.tinyproxy]
    }

    fn authority(&self) -> String {
        self.address.to_string()
    }
}
