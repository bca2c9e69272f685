//! NT7: no file and no environment variable inside changes where connections lead.

use crate::case::{Case, HERE, args};
use crate::network::ip::{UNREACHABLE, connect};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EACCES, EPERM, EROFS, O_WRONLY};

/// Files that configure name resolution.
const SETTINGS: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"];

/// Ports of the host at which a proxy might listen.
const PROXIES: [&str; 4] = ["port 8080", "port 80", "port 443", "loopback"];

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let settings = SETTINGS.map(|path| {
        Case::call("NT7", path, "openat", args![HERE, place.path(path), O_WRONLY, 0])
            .fails(&[EROFS, EACCES, EPERM])
    });
    let proxies = scene.listeners.tcp().filter(|(name, _)| PROXIES.contains(name)).map(|(name, address)| {
        Case::denied("NT7", format!("past every proxy, to {name}"), connect(address))
            .fails(UNREACHABLE)
            .seen_by(format!("tcp {name}"))
    });
    settings.into_iter().chain(proxies).collect()
}
