//! Checks which user serves a TCP connection within this machine, before a secret is sent by it.
//!
//! Any local user can listen at the port of a server that is stopped or starts anew, and would be shown what its clients send: a node's
//! token, a credential of a provider of models. So the kernel is asked for the owner of the connection's other end, or where it
//! can't be, its tables are (`/proc/net/tcp`, `/proc/net/tcp6`).

mod socket_diag;

use crate::accounts;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::geteuid;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The users whose server is sent a secret within this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ServerUser {
    /// The client's own user, and root.
    #[default]
    Own,
    /// The user with this id, too.
    Also(u32),
    /// Any user: the server's user isn't looked up.
    Any,
}

/// Text that names no user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {EXPECTED_USER}")]
pub struct UnknownUserError;

/// Values that [`ServerUser::parse`] accepts, for error messages.
pub const EXPECTED_USER: &str = "the name of a user of this host, a user id, or `any`";

/// Why a server isn't sent anything.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedServerError {
    /// The server is another user's.
    #[error("its server runs as user {owner}, which is neither you nor root")]
    Owner {
        /// Id of the user that owns the server.
        owner: u32,
    },
    /// The server is in another network namespace, or behind a redirection.
    #[error("no process in this network namespace serves it, so its user is unknown")]
    Unknown,
    /// The kernel's table can't be read.
    #[error("can't read {}", path.display())]
    Table {
        /// The table.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The connection was closed.
    #[error("the connection is gone")]
    Gone(#[source] io::Error),
}

/// A row of a table of TCP sockets.
struct SocketTableRow {
    local: SocketAddr,
    remote: SocketAddr,
    is_listener: bool,
    uid: u32,
    /// Returns false for a connection that is not accepted yet, whose user the table doesn't name.
    has_owner: bool,
}

const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// A connection that was made just now may not be in the tables for a moment.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// Checks the other end of a connection. One that leads to another machine is not looked at.
///
/// # Errors
/// [`UntrustedServerError`] if another user serves it, or if its user can't be determined.
pub fn check(stream: &TcpStream, user: ServerUser) -> Result<(), UntrustedServerError> {
    let gone = UntrustedServerError::Gone;
    let (client, server) = (stream.local_addr().map_err(gone)?, stream.peer_addr().map_err(gone)?);
    if user == ServerUser::Any || !is_of_this_machine(client, server) {
        return Ok(());
    }
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(PAUSE);
        }
        let mut owners = socket_diag::owners(server, client);
        if owners.is_empty() {
            owners = owners_in_tables(client, server)?;
        }
        if let Some(owner) = owners.iter().copied().find(|owner| !user.accepts(*owner)) {
            return Err(UntrustedServerError::Owner { owner });
        }
        if !owners.is_empty() {
            return Ok(());
        }
        check_open(stream).map_err(gone)?;
    }
    Err(UntrustedServerError::Unknown)
}

/// Returns the user whose process on this machine has made a connection. `None` for a client on another machine, in another network
/// namespace, or that is gone.
pub fn client_user(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    is_of_this_machine(client, server).then(|| socket_diag::client_user(client, server))?
}

/// Returns true if both ends of a connection have addresses of this machine.
pub fn is_of_this_machine(client: SocketAddr, server: SocketAddr) -> bool {
    let (client, server) = (client.ip().to_canonical(), server.ip().to_canonical());
    server.is_loopback() || server == client
}

/// The users who have the other end of a connection, and those who listen for such ones, by the kernel's tables.
fn owners_in_tables(client: SocketAddr, server: SocketAddr) -> Result<Vec<u32>, UntrustedServerError> {
    for table in TABLES.map(Path::new) {
        let text = match std::fs::read_to_string(table) {
            Ok(text) => text,
            // A kernel without IPv6 has no such table.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(source) => return Err(UntrustedServerError::Table { path: table.to_owned(), source }),
        };
        let found = owners_in(&text, client, server);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn owners_in(table: &str, client: SocketAddr, server: SocketAddr) -> Vec<u32> {
    let rows: Vec<SocketTableRow> = table.lines().skip(1).filter_map(SocketTableRow::parse).collect();
    let is_end = |row: &&SocketTableRow| !row.is_listener && is(row.local, server) && is(row.remote, client);
    let Some(end) = rows.iter().find(is_end) else { return Vec::new() };
    // The table has listeners first: whose connection is still there was there all the time.
    let listens = |row: &&SocketTableRow| {
        let (own, wanted) = (row.local.ip().to_canonical(), server.ip().to_canonical());
        row.is_listener && row.local.port() == server.port() && (own.is_unspecified() || own == wanted)
    };
    let accepted = end.has_owner.then_some(end.uid);
    accepted.into_iter().chain(rows.iter().filter(listens).map(|row| row.uid)).collect()
}

/// Returns true if both are the same, an IPv4 address written as one of IPv6 included.
fn is(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip().to_canonical(), one.port()) == (other.ip().to_canonical(), other.port())
}

fn check_open(stream: &TcpStream) -> io::Result<()> {
    // The flags of the socket may be shared with a runtime, so they stay as they are.
    match rustix::net::recv(stream, &mut [0_u8; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

// === impl ServerUser ===

impl ServerUser {
    /// Parses the name of a user, a user id or `any`.
    ///
    /// # Errors
    /// [`UnknownUserError`] for every other text, and for names that no user of the host has.
    pub fn parse(text: &str) -> Result<Self, UnknownUserError> {
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Ok(uid) = text.parse() {
            return Ok(Self::Also(uid));
        }
        accounts::named(text).map(|account| Self::Also(account.uid)).ok_or(UnknownUserError)
    }

    fn accepts(self, uid: u32) -> bool {
        let is_own = uid == 0 || uid == geteuid().as_raw();
        match self {
            Self::Own => is_own,
            Self::Also(other) => is_own || uid == other,
            Self::Any => true,
        }
    }
}

// === impl SocketTableRow ===

impl SocketTableRow {
    fn parse(line: &str) -> Option<Self> {
        const LISTEN: &str = "0A";
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let field = |at: usize| fields.get(at).copied();
        Some(Self {
            local: address(field(1)?)?,
            remote: address(field(2)?)?,
            is_listener: field(3)? == LISTEN,
            uid: field(7)?.parse().ok()?,
            has_owner: field(9)? != "0",
        })
    }
}

/// An address in hexadecimal digits: words of 32 bits as they are in memory, a colon, the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(digits.get(at * 8..at * 8 + 8)?, 16).ok();
    let ip: IpAddr = match digits.len() {
        8 => Ipv4Addr::from(word(0)?.to_ne_bytes()).into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn connected(to: &str) -> (TcpListener, TcpStream) {
        let listener = TcpListener::bind(to).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener, stream)
    }

    #[test]
    fn connection_belongs_to_its_server_before_and_after_accept() {
        let own = geteuid().as_raw();
        for to in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(to) else { continue };
            let port = listener.local_addr().unwrap().port();
            let by =
                if to.starts_with("[::1") { format!("[::1]:{port}") } else { format!("127.0.0.1:{port}") };
            let stream = TcpStream::connect(by).unwrap();
            let (client, server) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert_eq!(owners_in_tables(client, server).unwrap(), [own], "{to}, not accepted");
            let accepted = listener.accept().unwrap();
            assert_eq!(owners_in_tables(client, server).unwrap(), [own, own], "{to}, accepted");
            drop(listener);
            assert_eq!(owners_in_tables(client, server).unwrap(), [own], "{to}, without a listener");
            drop(accepted);
        }
    }

    #[test]
    fn nothing_is_sent_to_a_connection_without_a_server() {
        let (listener, stream) = connected("127.0.0.1:0");
        check(&stream, ServerUser::Own).unwrap();
        drop(listener);
        let refused = check(&stream, ServerUser::Own);
        assert!(matches!(refused, Err(UntrustedServerError::Gone(_))), "{refused:?}");
    }

    #[test]
    fn socket_table_gives_owners_of_connections_and_listeners() {
        let (client, server) = ("127.0.0.1:40000".parse().unwrap(), "127.0.0.1:12090".parse().unwrap());
        let listener = |uid: u32| {
            format!(
                "   0: 0100007F:2F3A 00000000:0000 0A 00000000:00000000 00:00000000 00000000 {uid:5} 0 7777 1\n"
            )
        };
        let child = |uid: u32, inode: u32| {
            format!(
                "   1: 0100007F:2F3A 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 {uid:5} 0 {inode} 1\n"
            )
        };
        let table = |rows: &[String]| format!("  sl  local_address rem_address\n{}", rows.concat());
        let owners = |rows: &[String]| owners_in(&table(rows), client, server);
        assert_eq!(owners(&[child(1001, 8888)]), [1001]);
        assert_eq!(owners(&[listener(1001), child(0, 8888)]), [0, 1001]);
        // The kernel shows root for a connection that is not accepted yet.
        assert_eq!(owners(&[listener(1001), child(0, 0)]), [1001]);
        assert_eq!(owners(&[listener(0), child(0, 0)]), [0]);
        assert_eq!(owners(&[listener(0)]), Vec::<u32>::new());
        assert_eq!(owners(&[child(0, 0)]), Vec::<u32>::new());
    }

    #[test]
    fn allowed_server_users_are_self_root_and_a_named_user() {
        let other = geteuid().as_raw() + 4_711;
        assert!(ServerUser::Own.accepts(0) && ServerUser::Own.accepts(geteuid().as_raw()));
        assert!(!ServerUser::Own.accepts(other) && ServerUser::Also(other).accepts(other));
        assert_eq!(ServerUser::parse("any"), Ok(ServerUser::Any));
        assert_eq!(ServerUser::parse("998"), Ok(ServerUser::Also(998)));
        assert!(ServerUser::parse("no such user").is_err());
        assert_eq!(ServerUser::parse("root"), Ok(ServerUser::Also(0)));
    }

    #[test]
    fn own_addresses_are_of_this_machine_and_others_are_not() {
        let of =
            |client: &str, server: &str| is_of_this_machine(client.parse().unwrap(), server.parse().unwrap());
        assert!(of("127.0.0.1:1", "127.0.0.2:2") && of("[::1]:1", "[::1]:2"));
        assert!(of("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:2") && of("10.0.0.7:1", "10.0.0.7:2"));
        assert!(!of("10.0.0.7:1", "10.0.0.8:2"));
    }
}
