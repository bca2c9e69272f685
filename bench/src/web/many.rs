//! Memory of each proxy with two thousand open tunnels. Ours has them in two runs, because the limit of a run is 1,024.

use super::stay::IdleTunnels;
use super::{OURS, SQUID, TINYPROXY, WebParts};
use crate::Programs;
use crate::contest::missing;
use crate::models::part::Part;
use crate::models::process::Process;
use crate::models::socket::ListenerAddress;
use crate::rounds::{Goal, judge};

const COUNT: usize = 2_000;
/// The lane of our proxy for the second run.
const OTHER_RUN: usize = 4;

pub(crate) fn run(_: &Programs) -> bool {
    if let Some(peer) = super::peers::missing() {
        return missing(peer);
    }
    let folder = tempfile::tempdir_in(".").expect("a temporary folder");
    let field = WebParts::start(folder.path());
    println!("\n## tunnels: memory (PSS) with {COUNT} of them open\n");
    println!("| | with none, KiB | KiB | each, KiB |\n| --- | --- | --- | --- |");
    let mut figures = Vec::new();
    for who in [OURS, SQUID, TINYPROXY] {
        let (name, target) = &field.lanes[who];
        let process = field.between()[who];
        let before = process.pss_kib();
        let after = match who {
            OURS => opened(&field, &[(target, COUNT / 2), (&field.lanes[OTHER_RUN].1, COUNT / 2)], process),
            _ => opened(&field, &[(target, COUNT)], process),
        };
        println!("| {name} | {before} | {after} | {:.1} |", (after - before) as f64 / COUNT as f64);
        figures.push(after as f64);
    }
    judge("MiB of belljar", figures[0] / 1024.0, Goal::AtMost(150.0))
}

/// Returns the memory of the process while all are open.
fn opened(field: &WebParts, of: &[(&ListenerAddress, usize)], process: &Process) -> usize {
    let mut clients: Vec<Process> = of
        .iter()
        .map(|(target, tunnels)| {
            let (target, authority) = ((*target).clone(), field.authority());
            Process::play(&Part::Stay(IdleTunnels { target, authority, tunnels: *tunnels }))
        })
        .collect();
    let open: usize = clients.iter_mut().map(Process::hear::<usize>).sum();
    assert_eq!(open, COUNT, "tunnels are missing");
    let pss = process.pss_kib();
    clients.into_iter().for_each(Process::end);
    pss
}
