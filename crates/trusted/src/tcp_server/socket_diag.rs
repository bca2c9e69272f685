//! The kernel's own answer to whose a TCP socket is (`NETLINK_SOCK_DIAG`, sock_diag(7)): one lookup by both addresses, which takes
//! as long however many sockets there are. The tables in `/proc/net` grow with them, and other users can make them grow.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A TCP socket of this network namespace that has been accepted, or that has connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owned {
    /// The user who made it.
    pub(super) uid: u32,
}

/// Length of the header of a netlink message, in bytes.
const HEADER: usize = 16;
/// Length of a request: its header, eight bytes of what is asked, and a socket's id.
const REQUEST: usize = HEADER + 8 + ID;
/// Length of a socket's id: ports, addresses, interface and cookie.
const ID: usize = 48;

/// Where the fields of an answer begin.
const STATE: usize = HEADER + 1;
const UID: usize = HEADER + 4 + ID + 12;
const INODE: usize = UID + 4;

/// `SOCK_DIAG_BY_FAMILY`, as a request and as its answer.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const IS_REQUEST: u16 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;

/// The kernel answers within the call; a lost answer is not waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// Looks for the socket with that local and remote address. `None` if there is none, if it was not accepted yet, and where the kernel
/// has no such lookup.
pub(super) fn find(local: SocketAddr, remote: SocketAddr) -> Option<Owned> {
    let (local, remote) = (canonical(local), canonical(remote));
    let asked = ask(&request(local, remote)?);
    parse(&asked.ok()?, local, remote)
}

fn ask(request: &[u8; REQUEST]) -> Result<Vec<u8>, Errno> {
    let kernel: OwnedFd = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&kernel, Timeout::Recv, Some(PATIENCE))?;
    send(&kernel, request, SendFlags::empty())?;
    let mut answer = vec![0; 4 << 10];
    let (length, _) = recv(&kernel, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}

/// `None` for addresses of two families.
fn request(local: SocketAddr, remote: SocketAddr) -> Option<[u8; REQUEST]> {
    let family = match (local.ip(), remote.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => AF_INET,
        (IpAddr::V6(_), IpAddr::V6(_)) => AF_INET6,
        _ => return None,
    };
    let length = u32::try_from(REQUEST).ok()?;
    let mut bytes = Vec::with_capacity(REQUEST);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(IS_REQUEST.to_ne_bytes());
    // The kernel fills in who asks; answers have no number of their own here.
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(id(local, remote));
    bytes.try_into().ok()
}

/// A socket's id, on any interface and with any cookie.
fn id(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ID);
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    for address in [local, remote] {
        let mut field = [0; 16];
        match address.ip() {
            IpAddr::V4(ip) => field[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => field.copy_from_slice(&ip.octets()),
        }
        bytes.extend(field);
    }
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend([u8::MAX; 8]);
    bytes
}

fn parse(answer: &[u8], local: SocketAddr, remote: SocketAddr) -> Option<Owned> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    // Where no connection is found, the kernel answers with a listener.
    let is_connection = kind == BY_FAMILY && *answer.get(STATE)? != TCP_LISTEN;
    let found = answer.get(HEADER + 4..HEADER + 8)?;
    let is_of_ports = found == [local.port().to_be_bytes(), remote.port().to_be_bytes()].concat();
    let is_held = word(INODE)? != 0;
    (is_connection && is_of_ports && is_held).then_some(Owned { uid: word(UID)? })
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_are_found_once_they_are_held() {
        let own = Some(Owned { uid: geteuid().as_raw() });
        for (to, by) in [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::1]:0", "[::1]")] {
            let Ok(listener) = TcpListener::bind(to) else { continue };
            let port = listener.local_addr().unwrap().port();
            let stream = TcpStream::connect(format!("{by}:{port}")).unwrap();
            let (client, server) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert_eq!(find(client, server), own, "{to}, the client's");
            assert_eq!(find(server, client), None, "{to}, not accepted");
            let accepted = listener.accept().unwrap();
            assert_eq!(find(server, client), own, "{to}, accepted");
            drop((accepted, stream));
        }
    }

    #[test]
    fn connection_that_is_not_there_is_not_found_as_its_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        assert_eq!(find(server, "127.0.0.1:9".parse().unwrap()), None);
        assert_eq!(find("127.0.0.1:9".parse().unwrap(), "[::1]:9".parse().unwrap()), None);
    }
}
