//! The throughput of tunnels.

use super::pull::TunnelDownloads;
use super::{OURS, SQUID, TINYPROXY, WebParts};
use crate::Programs;
use crate::contest::missing;
use crate::models::part::Part;
use crate::models::process::Process;
use crate::models::socket::ListenerAddress;
use crate::rounds::{self, Goal, judge, median, ratio};

const ROUNDS: usize = 7;
const MIB: u64 = 1 << 20;

pub(crate) fn run(_: &Programs) -> bool {
    if let Some(peer) = super::peers::missing() {
        return missing(peer);
    }
    let folder = tempfile::tempdir_in(".").expect("a temporary folder");
    let field = WebParts::start(folder.path());
    let mut met = true;
    for (tunnels, bytes) in [(1, 1024 * MIB), (16, 64 * MIB)] {
        let lanes = field.between().len();
        let before: Vec<_> = field.between().iter().map(|process| process.processor_time()).collect();
        let figures = rounds::hold(ROUNDS, lanes + 1, |who| -> f64 {
            let (target, authority) = match field.lanes.get(who).filter(|_| who < lanes) {
                Some((_, target)) => (target.clone(), Some(field.authority())),
                None => (ListenerAddress::Tcp(field.address), None),
            };
            Process::result(&Part::Pull(TunnelDownloads { target, authority, tunnels, bytes }))
        });
        println!("\n## passed: {tunnels} tunnels at once, {} MiB through each\n", bytes / MIB);
        println!("| | MiB a second | processor s a GiB |\n| --- | --- | --- |");
        let gib = (bytes * tunnels as u64 * ROUNDS as u64) as f64 / f64::from(1 << 30);
        for (who, figures) in figures.iter().enumerate() {
            let (name, busy) = match field.between().get(who) {
                Some(process) => {
                    (field.lanes[who].0, (process.processor_time() - before[who]).as_secs_f64() / gib)
                }
                None => ("direct", 0.0),
            };
            println!("| {name} | {:.0} | {busy:.2} |", median(figures.iter().copied()));
        }
        let theirs = |who: usize| ratio(&figures[OURS], &figures[who]);
        println!("\nbelljar / tinyproxy = {:.2}, belljar / direct = {:.2}", theirs(TINYPROXY), theirs(lanes));
        met &= judge("MiB a second, belljar / squid", theirs(SQUID), Goal::AtLeast(1.0));
    }
    met
}
