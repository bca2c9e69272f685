//! The parts of a measurement that processes of this program play.

use super::house::ProxyPart;
use super::listener::StreamListener;
use super::load::LoadPart;
use super::source::StreamSource;
use super::upstream::Upstream;
use super::visitors::ReadingClients;
use crate::tools::counter::Counter;
use crate::web::far_end::FarEnd;
use crate::web::gate::WebProxyPart;
use crate::web::knock::DeniedRequests;
use crate::web::pull::TunnelDownloads;
use crate::web::stay::IdleTunnels;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::process::ExitCode;

/// A part, with its parameters.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    Counter(Counter),
    FarEnd(FarEnd),
    Gate(WebProxyPart),
    House(ProxyPart),
    Knock(DeniedRequests),
    Listener(StreamListener),
    Load(LoadPart),
    Pull(TunnelDownloads),
    Source(StreamSource),
    Stay(IdleTunnels),
    Upstream(Upstream),
    Visitors(ReadingClients),
}

/// The option that precedes a part.
pub(super) const PLAYS: &str = "--play";

/// Plays a part, if these arguments request it; `None` if they don't.
pub(crate) fn play(arguments: &[String]) -> Option<ExitCode> {
    let [plays, part] = arguments else { return None };
    if plays != PLAYS {
        return None;
    }
    raise_open_files();
    match serde_json::from_str(part).expect("a part") {
        Part::Counter(part) => part.play(),
        Part::FarEnd(part) => part.play(),
        Part::Gate(part) => part.play(),
        Part::House(part) => part.play(),
        Part::Knock(part) => say(&part.play()),
        Part::Listener(part) => say(&part.play()),
        Part::Load(part) => say(&part.play()),
        Part::Pull(part) => say(&part.play()),
        Part::Source(part) => part.play(),
        Part::Stay(part) => part.play(),
        Part::Upstream(part) => part.play(),
        Part::Visitors(part) => part.play(),
    }
    Some(ExitCode::SUCCESS)
}

/// Prints a value as a line for the parent process.
pub(crate) fn say(what: &impl Serialize) {
    println!("{}", serde_json::to_string(what).expect("plain figures"));
}

/// Returns when the parent process wants this one to end, or has ended.
pub(crate) fn wait_for_end() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Exits this process at that time.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        wait_for_end();
        std::process::exit(0);
    });
}

/// Raises the limit of open files: a thousand streams need two thousand descriptors.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("a limit that may be raised");
}
