//! The time until a tunnel is open, and until a request is denied.

use super::knock::{DenialTimes, DeniedRequests};
use super::{ELSEWHERE, OURS, SQUID, TINYPROXY, UNRECORDED, WebParts};
use crate::Programs;
use crate::contest::missing;
use crate::models::part::Part;
use crate::models::process::Process;
use crate::rounds::{self, Goal, judge, median, ratio};

const ROUNDS: usize = 7;
const TIMES: usize = 1_000;
const DENIED_TIMES: usize = 300;

pub(crate) fn run(_: &Programs) -> bool {
    if let Some(peer) = super::peers::missing() {
        return missing(peer);
    }
    // In the current directory, which is on a disk: files in memory aren't durable.
    let folder = tempfile::tempdir_in(".").expect("a temporary folder");
    let field = WebParts::start(folder.path());
    let opened = hold(&field, &field.authority(), ("200", TIMES));
    let p50: Vec<_> = opened.iter().map(|of| of.iter().map(|one| one.p50_us).collect::<Vec<_>>()).collect();
    tell("opened: from the head of a CONNECT to the answer's, one after the other", &field, &opened);
    let denied = hold(&field, ELSEWHERE, ("403", DENIED_TIMES));
    tell("denied: the same, for a host that no rule allows", &field, &denied);
    let theirs = |who: usize| ratio(&p50[OURS], &p50[who]);
    println!(
        "\nbelljar / squid = {:.2}, belljar / tinyproxy = {:.2}, with the audit",
        theirs(SQUID),
        theirs(TINYPROXY)
    );
    let mut met =
        judge("p50 ms of ours, without the audit", median(p50[UNRECORDED].clone()) / 1e3, Goal::AtMost(0.2));
    met &= judge("p50 ms of ours, on the disk", median(p50[OURS].clone()) / 1e3, Goal::AtMost(0.2));
    met &= judge(
        "without the audit: p50, belljar / squid",
        ratio(&p50[UNRECORDED], &p50[SQUID]),
        Goal::AtMost(1.0),
    );
    let slowest = denied[OURS].iter().map(|one| one.p99_us / 1e3).fold(0.0, f64::max);
    met & judge("p99 ms of a denial, the slowest round", slowest, Goal::AtMost(100.0))
}

fn hold(field: &WebParts, authority: &str, (status, times): (&str, usize)) -> Vec<Vec<DenialTimes>> {
    rounds::hold(ROUNDS, field.between().len(), |who| {
        let (authority, status) = (authority.to_owned(), status.to_owned());
        let target = field.lanes[who].1.clone();
        Process::result(&Part::Knock(DeniedRequests { target, authority, status, times }))
    })
}

fn tell(title: &str, field: &WebParts, figures: &[Vec<DenialTimes>]) {
    println!("\n## {title}\n\n| | p50 µs | p99 µs |\n| --- | --- | --- |");
    for ((name, _), figures) in field.lanes.iter().zip(figures) {
        let p50 = median(figures.iter().map(|one| one.p50_us));
        println!("| {name} | {p50:.1} | {:.1} |", median(figures.iter().map(|one| one.p99_us)));
    }
}
