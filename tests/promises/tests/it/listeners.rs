//! Listeners on the host, and the number of times that each was reached.

use belljar_testkit::world::World;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{self, UnixDatagram, UnixListener};
use std::path::Path;

/// Listeners of the host, by name.
pub(crate) struct Listeners {
    tcp: BTreeMap<String, (SocketAddr, TcpListener)>,
    udp: BTreeMap<String, (SocketAddr, UdpSocket)>,
    local: RefCell<Vec<(String, UnixListener)>>,
    datagrams: BTreeMap<String, UnixDatagram>,
    /// Ports that are in use, or that this user may not bind.
    pub(crate) taken: Vec<u16>,
}

/// Ports of well-known services: a sandbox that lets one of them pass has a rule for it.
const PORTS: [u16; 11] = [22, 53, 80, 443, 853, 2375, 5353, 5355, 5432, 6443, 8080];

// === impl Listeners ===

impl Listeners {
    pub(crate) fn open(mark: &str, world: &World) -> Self {
        let mut listeners = Self {
            tcp: BTreeMap::new(),
            udp: BTreeMap::new(),
            local: RefCell::default(),
            datagrams: BTreeMap::new(),
            taken: Vec::new(),
        };
        let own = loopback_address(mark);
        for port in PORTS {
            listeners.open_ip(&format!("port {port}"), SocketAddr::new(own, port));
        }
        listeners.open_ip("loopback", SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0));
        listeners.open_ip("loopback 6", SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0));
        listeners.open_ip("resolver", SocketAddr::new(Ipv4Addr::new(127, 0, 0, 11).into(), 53));
        listeners.open_ip("local resolver", SocketAddr::new(Ipv4Addr::new(127, 0, 0, 53).into(), 53));
        for (name, address) in outward_addresses() {
            listeners.open_ip(name, SocketAddr::new(address, 0));
        }
        for name in ["abstract", "X11"] {
            let full = format!("{name}-{mark}");
            let address = net::SocketAddr::from_abstract_name(&full).unwrap();
            listeners.add_local(name, UnixListener::bind_addr(&address).unwrap());
            let address = net::SocketAddr::from_abstract_name(format!("{full}-datagrams")).unwrap();
            let socket = UnixDatagram::bind_addr(&address).unwrap();
            socket.set_nonblocking(true).unwrap();
            listeners.datagrams.insert(format!("{name} datagrams"), socket);
        }
        for (name, path) in [
            ("service", "service.sock"),
            ("lent service", "lent/listening"),
            ("lent service", "outside/lent/listening"),
            ("workspace service", "given/direct/listening"),
            ("workspace service", "given/copy/listening"),
            ("workspace service", "given/job/listening"),
            ("workspace service", "given/session/listening"),
            ("workspace service", "outside/workspace/listening"),
        ] {
            let placeholder = world.write(path, "");
            fs::remove_file(&placeholder).unwrap();
            listeners.listen_locally(&placeholder, name);
        }
        listeners
    }

    fn open_ip(&mut self, name: &str, address: SocketAddr) {
        match (TcpListener::bind(address), UdpSocket::bind(address)) {
            (Ok(tcp), Ok(udp)) => {
                tcp.set_nonblocking(true).unwrap();
                udp.set_nonblocking(true).unwrap();
                self.tcp.insert(name.to_owned(), (tcp.local_addr().unwrap(), tcp));
                self.udp.insert(name.to_owned(), (udp.local_addr().unwrap(), udp));
            }
            _ => self.taken.push(address.port()),
        }
    }

    /// Listens at a path that every user may connect to.
    fn listen_locally(&self, path: &Path, name: &str) {
        let listener = UnixListener::bind(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        self.add_local(name, listener);
    }

    fn add_local(&self, name: &str, listener: UnixListener) {
        listener.set_nonblocking(true).unwrap();
        self.local.borrow_mut().push((name.to_owned(), listener));
    }

    /// Returns the TCP listeners' addresses, by name.
    pub(crate) fn tcp(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.tcp.iter().map(|(name, (address, _))| (name.as_str(), *address))
    }

    /// Returns the UDP listeners' addresses, by name.
    pub(crate) fn udp(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.udp.iter().map(|(name, (address, _))| (name.as_str(), *address))
    }

    /// Returns how often each was reached since the last call; those that weren't reached are left out.
    pub(crate) fn arrivals(&self) -> BTreeMap<String, usize> {
        let mut arrived = BTreeMap::new();
        let mut count = |name: String, times: usize| {
            if times > 0 {
                *arrived.entry(name).or_default() += times;
            }
        };
        for (name, (_, listener)) in &self.tcp {
            count(format!("tcp {name}"), std::iter::from_fn(|| listener.accept().ok()).count());
        }
        let mut space = [0; 2048];
        for (name, (_, socket)) in &self.udp {
            let datagrams = std::iter::from_fn(|| socket.recv(&mut space).ok()).count();
            count(format!("udp {name}"), datagrams);
        }
        for (name, listener) in self.local.borrow().iter() {
            count(name.clone(), std::iter::from_fn(|| listener.accept().ok()).count());
        }
        for (name, socket) in &self.datagrams {
            count(name.clone(), std::iter::from_fn(|| socket.recv(&mut space).ok()).count());
        }
        arrived
    }
}

/// Returns a loopback address of the host that no other process listens at.
fn loopback_address(mark: &str) -> IpAddr {
    let digits: Vec<u8> = mark.bytes().filter(u8::is_ascii_digit).collect();
    let number = |at: usize| digits.get(at).copied().unwrap_or(b'7') - b'0' + 1;
    Ipv4Addr::new(127, 100 + number(0) * number(1), number(2) * number(3), number(4) * number(5)).into()
}

/// Returns the host's outward addresses, if it has any. Nothing is sent: connecting a datagram socket only looks up the
/// route.
fn outward_addresses() -> Vec<(&'static str, IpAddr)> {
    let ways = [
        ("outward", "0.0.0.0:0", SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), 9)),
        ("outward 6", "[::]:0", SocketAddr::new("2001:db8::1".parse().unwrap(), 9)),
    ];
    ways.into_iter()
        .filter_map(|(name, from, to)| {
            let socket = UdpSocket::bind(from).ok()?;
            socket.connect(to).ok()?;
            Some((name, socket.local_addr().ok()?.ip()))
        })
        .collect()
}
