//! Name resolution as a small image supports it: `/etc/hosts`, then the servers of `/etc/resolv.conf`. A static program
//! doesn't have the C library's resolver.

mod message;

use message::{DnsRecordType, DnsReply};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Configuration of the name resolution.
#[derive(Debug, PartialEq, Eq)]
struct Resolver {
    servers: Vec<IpAddr>,
    /// Search domains.
    search: Vec<String>,
    /// Number of dots from which on a name is tried unchanged first.
    dots: usize,
}

const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";
const PORT: u16 = 53;
/// Timeout of a server, after which the next one is asked.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Maximum size of these files, in bytes.
const LONGEST_FILE: u64 = 1 << 20;
const MOST_SERVERS: usize = 3;
const MOST_DOMAINS: usize = 6;

/// Returns the addresses of a name, in the order in which they are to be tried.
pub(super) fn look_up(name: &str, until: Instant) -> io::Result<Vec<IpAddr>> {
    let listed = in_hosts(&read(HOSTS), name);
    if !listed.is_empty() {
        return Ok(listed);
    }
    let resolver = Resolver::of(&read(RESOLVER));
    let mut last = not_found(name);
    for candidate in resolver.candidates(name) {
        match resolver.addresses(&candidate, until) {
            Ok(addresses) if !addresses.is_empty() => return Ok(addresses),
            Ok(_) => {}
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("hostname {name} has no address"))
}

/// Returns the text of a file; empty if it can't be read.
fn read(path: &str) -> String {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text));
    read.map(|_| text).unwrap_or_default()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(['#', ';']).next().unwrap_or_default().split_whitespace()
}

fn in_hosts(hosts: &str, name: &str) -> Vec<IpAddr> {
    let name = name.trim_end_matches('.');
    let of_line = |line| {
        let mut words = words(line);
        let address = words.next()?.parse().ok()?;
        words.any(|known| known.eq_ignore_ascii_case(name)).then_some(address)
    };
    hosts.lines().filter_map(of_line).collect()
}

// === impl Resolver ===

impl Resolver {
    fn of(text: &str) -> Self {
        let mut resolver = Self { servers: Vec::new(), search: Vec::new(), dots: 1 };
        for line in text.lines() {
            let mut words = words(line);
            match words.next() {
                Some("nameserver") => {
                    resolver.servers.extend(words.next().and_then(|word| word.parse::<IpAddr>().ok()));
                }
                // The last such line counts.
                Some("search" | "domain") => {
                    let domains = words.map(|word| word.trim_matches('.').to_owned());
                    resolver.search = domains.filter(|word| !word.is_empty()).take(MOST_DOMAINS).collect();
                }
                Some("options") => {
                    let dots = words.find_map(|word| word.strip_prefix("ndots:")?.parse().ok());
                    resolver.dots = dots.unwrap_or(resolver.dots);
                }
                _ => {}
            }
        }
        resolver.servers.truncate(MOST_SERVERS);
        if resolver.servers.is_empty() {
            resolver.servers.push(Ipv4Addr::LOCALHOST.into());
        }
        resolver
    }

    /// Returns the full names that a name may stand for.
    fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(full) = name.strip_suffix('.') {
            return vec![full.to_owned()];
        }
        let completed = self.search.iter().map(|domain| format!("{name}.{domain}"));
        match name.matches('.').count() >= self.dots {
            true => std::iter::once(name.to_owned()).chain(completed).collect(),
            false => completed.chain([name.to_owned()]).collect(),
        }
    }

    /// Returns the addresses of a full name; empty if there is no such name.
    fn addresses(&self, name: &str, until: Instant) -> io::Result<Vec<IpAddr>> {
        let v4 = self.ask_servers(name, DnsRecordType::V4, until);
        let v6 = self.ask_servers(name, DnsRecordType::V6, until);
        // One address family is enough.
        match (v4, v6) {
            (Ok(mut all), Ok(others)) => {
                all.extend(others);
                Ok(all)
            }
            (Ok(found), Err(_)) | (Err(_), Ok(found)) if !found.is_empty() => Ok(found),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    fn ask_servers(&self, name: &str, kind: DnsRecordType, until: Instant) -> io::Result<Vec<IpAddr>> {
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for server in &self.servers {
            match ask(SocketAddr::new(*server, PORT), name, kind, until) {
                Ok(addresses) => return Ok(addresses),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Asks one server, by UDP, and by TCP if the answer is truncated.
fn ask(server: SocketAddr, name: &str, kind: DnsRecordType, until: Instant) -> io::Result<Vec<IpAddr>> {
    let [high, low, ..] = *uuid::Uuid::new_v4().as_bytes();
    let id = u16::from_be_bytes([high, low]);
    let question = message::question(id, name, kind)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the hostname is too long"))?;
    let until = until.min(Instant::now() + PATIENCE);
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(&question)?;
    let mut buffer = [0; 4096];
    loop {
        socket.set_read_timeout(Some(left(until)?))?;
        let size = match socket.recv(&mut buffer) {
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        match message::read(&buffer[..size], &question) {
            Some(DnsReply::Addresses(addresses)) => return Ok(addresses),
            Some(DnsReply::Cut) => return ask_by_connection(server, &question, until),
            Some(DnsReply::Failed(code)) => {
                return Err(io::Error::other(format!("the DNS server returned error code {code}")));
            }
            // The message answers another question.
            None => {}
        }
    }
}

fn ask_by_connection(server: SocketAddr, question: &[u8], until: Instant) -> io::Result<Vec<IpAddr>> {
    let mut stream = TcpStream::connect_timeout(&server, left(until)?)?;
    stream.set_read_timeout(Some(left(until)?))?;
    stream.set_write_timeout(Some(left(until)?))?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut answer)?;
    match message::read(&answer, question) {
        Some(DnsReply::Addresses(addresses)) => Ok(addresses),
        Some(DnsReply::Failed(code)) => {
            Err(io::Error::other(format!("the DNS server returned error code {code}")))
        }
        Some(DnsReply::Cut) | None => Err(io::Error::other("the DNS server's reply is malformed")),
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_file_entries_match_all_their_names() {
        let hosts = "127.0.0.1 localhost\n10.0.0.7\tOrchestrator orch # the node's\n::1 ip6-localhost\n#10.0.0.8 gone\n";
        assert_eq!(in_hosts(hosts, "orchestrator"), ["10.0.0.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(in_hosts(hosts, "orch."), ["10.0.0.7".parse::<IpAddr>().unwrap()]);
        assert!(in_hosts(hosts, "gone").is_empty() && in_hosts(hosts, "node's").is_empty());
    }

    #[test]
    fn short_hostnames_are_expanded_with_the_resolver_search_list() {
        let text =
            "nameserver 10.0.0.10\nsearch ns.svc.cluster.local svc.cluster.local\noptions ndots:5 edns0\n";
        let resolver = Resolver::of(text);
        assert_eq!(resolver.servers, ["10.0.0.10".parse::<IpAddr>().unwrap()]);
        let full = ["gateway.ns.svc.cluster.local", "gateway.svc.cluster.local", "gateway"];
        assert_eq!(resolver.candidates("gateway"), full);
        assert_eq!(resolver.candidates("a.b.")[..], ["a.b"]);
        assert_eq!(Resolver::of("").candidates("a.b"), ["a.b"]);
        assert_eq!(Resolver::of("").servers, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    }

    /// A server that answers questions about one kind of address.
    fn server(answers: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((size, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(&answers(&buffer[..size]), from);
            }
        });
        at
    }

    #[test]
    fn dns_reply_must_match_the_query_id() {
        let soon = || Instant::now() + Duration::from_secs(5);
        let at = server(|question| message::tests::answer(question, &[[192, 0, 2, 1]]));
        assert_eq!(
            ask(at, "a.example", DnsRecordType::V4, soon()).unwrap(),
            ["192.0.2.1".parse::<IpAddr>().unwrap()]
        );
        let no_such_name = server(|question| {
            let mut answer = message::tests::answer(question, &[]);
            answer[3] |= 3;
            answer
        });
        assert!(ask(no_such_name, "a.example", DnsRecordType::V4, soon()).unwrap().is_empty());
        let of_another = server(|question| {
            let mut answer = message::tests::answer(question, &[[192, 0, 2, 1]]);
            answer[0] ^= 1;
            answer
        });
        assert!(ask(of_another, "a.example", DnsRecordType::V4, soon()).is_err());
    }
}
