//! NT6: no connection from outside reaches a listener inside, whatever its address.

use crate::belljar::belljar;
use crate::case::{Script, args, internet, local, local_length, numbers};
use crate::holding::HoldingProbe;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use belljar_promises::attempt::Attempt;
use belljar_testkit::world::World;
use libc::{AF_INET, AF_UNIX, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net;
use std::time::Duration;

#[test]
fn listeners_inside_are_unreachable_from_outside() {
    let tally = Tally::new("inbound");
    World::as_everyone(belljar(), |world| judge(&PreparedHost::lay(world), &tally));
    tally.close();
}

/// Listens in every sandbox of a scene, and tries to connect from outside.
pub(crate) fn judge(scene: &PreparedHost<'_>, tally: &Tally) {
    let free_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let attempt = Attempt { case: "listen".to_owned(), steps: listen(free_port, &scene.mark).into_steps() };
    let addresses =
        scene.listeners.tcp().filter(|(name, _)| name.starts_with("outward") || *name == "loopback");
    let addresses: Vec<SocketAddr> = addresses
        .map(|(_, address)| SocketAddr::new(address.ip(), free_port))
        .filter(SocketAddr::is_ipv4)
        .collect();
    let control = reached(&HoldingProbe::outside(scene, &attempt), &addresses, &scene.mark);
    for way in scene.ways.iter().filter(|way| way.is_exec()) {
        let inside = reached(&HoldingProbe::inside(scene, *way, &attempt), &addresses, &scene.mark);
        for ((what, is_reached), (_, is_reached_outside)) in inside.into_iter().zip(&control) {
            let verdict = match (is_reached, is_reached_outside) {
                (true, _) => Verdict::Escaped("it took the connection".to_owned()),
                (false, true) => Verdict::Held,
                (false, false) => Verdict::Invalid("outside, nothing receives it, either".to_owned()),
            };
            let place = format!("{way:?} {:?}", scene.world.user());
            tally.count("NT6", &format!("NT6 {what}"), &place, verdict);
        }
    }
}

fn listen(port: u16, mark: &str) -> Script {
    let mut s = Script::default();
    let (any, length) = internet(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
    let listener = s.call("socket", args![AF_INET, SOCK_STREAM, 0]);
    s.call("setsockopt", args![listener, SOL_SOCKET, SO_REUSEADDR, numbers(&[1]), 4]);
    s.call("bind", args![listener, any, length]);
    s.call("listen", args![listener, 8]);
    let name = format!("@{mark}-inside");
    let hidden = s.call("socket", args![AF_UNIX, SOCK_STREAM, 0]);
    s.call("bind", args![hidden, local(&name), local_length(&name)]);
    s.call("listen", args![hidden, 8]);
    s
}

/// Returns each address with whether it reaches the held listeners.
fn reached(_held: &HoldingProbe, addresses: &[SocketAddr], mark: &str) -> Vec<(String, bool)> {
    let connects = |address: &SocketAddr| TcpStream::connect_timeout(address, Duration::from_secs(2)).is_ok();
    let mut reached: Vec<(String, bool)> =
        addresses.iter().map(|address| (format!("TCP to {}", address.ip()), connects(address))).collect();
    let hidden = net::SocketAddr::from_abstract_name(format!("{mark}-inside")).unwrap();
    reached.push(("an abstract name".to_owned(), net::UnixStream::connect_addr(&hidden).is_ok()));
    reached
}
