//! The peers: squid and tinyproxy, each configured to allow tunnels to one address only.

use crate::installed;
use crate::models::process::Process;
use crate::models::socket::ListenerAddress;
use std::fs::Permissions;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// squid, which denies by name without a DNS lookup, like ours.
pub(super) struct Squid;

pub(super) struct TinyProxy;

/// Returns one of them that isn't installed.
pub(super) fn missing() -> Option<&'static str> {
    ["squid", "tinyproxy"].into_iter().find(|name| installed(&[name]).is_none())
}

// === impl Squid ===

impl Squid {
    /// Starts squid with one worker, no cache and no log.
    pub(super) fn start(folder: &Path, allowed: u16) -> (Process, ListenerAddress) {
        let own = folder.join("squid");
        std::fs::create_dir(&own).expect("a folder");
        // squid drops root, so its folders must be writable for its own user.
        for open in [folder, &own] {
            std::fs::set_permissions(open, Permissions::from_mode(0o777))
                .expect("a directory that every user may write");
        }
        let (port, place) = (free_port(), own.display());
        let settings = format!(
            "http_port {port}\npid_filename {place}/pid\ncache_log {place}/log\ncoredump_dir {place}\naccess_log none\n\
             cache deny all\ncache_mem 8 MB\nmax_filedescriptors 16384\nshutdown_lifetime 0 seconds\npinger_enable off\n\
             acl elsewhere dstdomain .example\nhttp_access deny elsewhere\n\
             acl there dst 127.0.0.1/32\nacl its_port port {allowed}\nhttp_access allow CONNECT there its_port\nhttp_access deny all\n"
        );
        let file = own.join("squid.conf");
        std::fs::write(&file, settings).expect("a file");
        let arguments = ["-N", "-f", &file.display().to_string()].map(str::to_owned);
        let process = Process::foreign("squid", &arguments);
        (process, listening(port))
    }
}

// === impl TinyProxy ===

impl TinyProxy {
    /// Starts tinyproxy with the same maximum number of connections as ours.
    pub(super) fn start(folder: &Path) -> (Process, ListenerAddress) {
        let (port, filter) = (free_port(), folder.join("tinyproxy.filter"));
        std::fs::write(&filter, "^127\\.0\\.0\\.1$\n").expect("a file");
        let settings = format!(
            "Port {}\nListen 127.0.0.1\nTimeout 600\nMaxClients 4096\nLogLevel Critical\nFilter \"{}\"\nFilterDefaultDeny Yes\n\
             FilterExtended On\n",
            port.port(),
            filter.display()
        );
        let file = folder.join("tinyproxy.conf");
        std::fs::write(&file, settings).expect("a file");
        let arguments = ["-d", "-c", &file.display().to_string()].map(str::to_owned);
        (Process::foreign("tinyproxy", &arguments), listening(port))
    }
}

fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

fn listening(port: SocketAddr) -> ListenerAddress {
    const PATIENCE: Duration = Duration::from_secs(20);
    let (target, begun) = (ListenerAddress::Tcp(port), Instant::now());
    while target.connect().is_err() {
        assert!(begun.elapsed() < PATIENCE, "no process listens at port {port}");
        std::thread::sleep(Duration::from_millis(10));
    }
    target
}
