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

/// A TCP socket of this network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TcpSocket {
    uid: u32,
    is_listener: bool,
    /// Returns false for a connection that is not accepted yet, whose user the kernel doesn't name.
    is_held: bool,
}

/// Length of the header of a netlink message, in bytes.
const HEADER: usize = 16;
/// Length of a request: its header, eight bytes of what is asked, and a socket's id.
const REQUEST: usize = HEADER + 8 + ID;
/// Length of a socket's id: ports, addresses, interface and cookie.
const ID: usize = 48;

/// Offsets of the fields of an answer.
const STATE: usize = HEADER + 1;
const PORT: usize = HEADER + 4;
const UID: usize = PORT + ID + 12;
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

/// The users who have the server's end of a connection, and who listen for such ones. Empty if there is no such connection, and where
/// the kernel has no such lookup.
pub(super) fn owners(server: SocketAddr, client: SocketAddr) -> Vec<u32> {
    let Some(end) = find(server, client).filter(|end| !end.is_listener) else { return Vec::new() };
    // No connection has this port, so the kernel answers with who listens.
    let listener = find(server, SocketAddr::new(client.ip(), 0)).filter(|found| found.is_listener);
    let of = |socket: TcpSocket| socket.is_held.then_some(socket.uid);
    of(end).into_iter().chain(listener.and_then(of)).collect()
}

/// Returns the user that has the client's end of a connection; `None` if there is no such connection.
pub(super) fn client_user(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    find(client, server).filter(|end| !end.is_listener && end.is_held).map(|end| end.uid)
}

/// Looks for the socket with that local and remote address; for a listener where there is none.
fn find(local: SocketAddr, remote: SocketAddr) -> Option<TcpSocket> {
    let (local, remote) = (canonical(local), canonical(remote));
    let asked = ask(&request(local, remote)?);
    parse(&asked.ok()?, local)
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
    // The kernel fills in the sender; answers have no number of their own here.
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

fn parse(answer: &[u8], local: SocketAddr) -> Option<TcpSocket> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let is_of_port = *answer.get(PORT..PORT + 2)? == local.port().to_be_bytes();
    (kind == BY_FAMILY && is_of_port).then_some(TcpSocket {
        uid: word(UID)?,
        is_listener: *answer.get(STATE)? == TCP_LISTEN,
        is_held: word(INODE)? != 0,
    })
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
    fn socket_diag_finds_both_connection_ends_and_the_listener() {
        let own = geteuid().as_raw();
        for (to, by) in [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::1]:0", "[::1]")] {
            let Ok(listener) = TcpListener::bind(to) else { continue };
            let port = listener.local_addr().unwrap().port();
            let stream = TcpStream::connect(format!("{by}:{port}")).unwrap();
            let (client, server) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert_eq!(client_user(client, server), Some(own), "{to}");
            assert_eq!(owners(server, client), [own], "{to}, not accepted");
            let accepted = listener.accept().unwrap();
            assert_eq!(owners(server, client), [own, own], "{to}, accepted");
            drop(listener);
            assert_eq!(owners(server, client), [own], "{to}, without a listener");
            drop((accepted, stream));
        }
    }

    #[test]
    fn missing_connection_is_not_mistaken_for_its_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (server, nothing) = (listener.local_addr().unwrap(), "127.0.0.1:9".parse().unwrap());
        assert_eq!(owners(server, nothing), Vec::<u32>::new());
        assert_eq!(client_user(server, nothing), None);
        assert_eq!(owners(nothing, "[::1]:9".parse().unwrap()), Vec::<u32>::new());
    }
}
