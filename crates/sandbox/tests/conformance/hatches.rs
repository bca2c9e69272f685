//! Hatches: sockets that listen inside and are the host's.

use crate::BackendCase;
use crate::hostile::put_program;
use crate::house::{BackendFixture, run, shell};
use belljar_confine::plan::{self, Stdio};
use belljar_sandbox::backend::{Backend, BackendError, Sandbox};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use rustix::fd::OwnedFd;
use rustix::net::{SocketFlags, accept_with};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

pub(crate) const OPEN: &[BackendCase] = &[
    ("a_hatch_leads_to_the_host_which_knows_whose_it_is", a_hatch_leads_to_the_host_which_knows_whose_it_is),
    ("without_a_hatch_nobody_listens", without_a_hatch_nobody_listens),
    ("nobody_inside_takes_a_hatch_away", nobody_inside_takes_a_hatch_away),
];

pub(crate) const SHUT: &[BackendCase] =
    &[("a_hatch_into_a_network_of_the_hosts_is_refused", a_hatch_into_a_network_of_the_hosts_is_refused)];

/// The name under which this file calls from inside. There need be no other program that can.
pub(crate) const CALLER: &str = "belljar-test-caller";

const CALL: &str = "./belljar-test-caller 8080 11434 /llm-sock/llm.sock";

/// Connects to each place, a port or a path, and prints the answer there. `take` before a port makes it listen there.
pub(crate) fn call(places: impl Iterator<Item = OsString>) -> ExitCode {
    let mut takes = false;
    for place in places.map(|place| place.to_string_lossy().into_owned()) {
        let port = place.parse::<u16>();
        let told = match &port {
            _ if place == "take" => {
                takes = true;
                continue;
            }
            Ok(port) if takes => TcpListener::bind(("127.0.0.1", *port)).map(|_| "taken".to_owned()),
            Ok(port) => TcpStream::connect(("127.0.0.1", *port)).and_then(std::io::read_to_string),
            Err(_) => UnixStream::connect(&place).and_then(std::io::read_to_string),
        };
        let told = told.unwrap_or_else(|error| error.kind().to_string());
        let _ = writeln!(std::io::stdout(), "{place} {}", told.trim());
    }
    ExitCode::SUCCESS
}

fn put_caller(sandbox: &dyn Sandbox) {
    put_program(sandbox, CALLER, &std::fs::read(std::env::current_exe().unwrap()).unwrap());
}

fn with_hatches(backend: &dyn Backend) -> Result<Box<dyn Sandbox>, BackendError> {
    backend.create(BackendFixture::wanted_with(
        WorkspaceChoice::Empty,
        Provision { hatches: vec![Hatch::Inference], ..Provision::default() },
    ))
}

/// Sends the same text to every client.
fn serve(sockets: Vec<OwnedFd>, word: &'static str) {
    for (at, socket) in sockets.into_iter().enumerate() {
        std::thread::spawn(move || {
            while let Ok(caller) = accept_with(&socket, SocketFlags::CLOEXEC) {
                // A client that is gone needs no answer.
                let _ = writeln!(File::from(caller), "{word} {at}");
            }
        });
    }
}

fn a_hatch_leads_to_the_host_which_knows_whose_it_is(house: &BackendFixture) {
    let sandboxes = ["first", "second"].map(|word| {
        let mut sandbox = with_hatches(&*house.backend).unwrap();
        let sockets = sandbox.take_hatches();
        assert_eq!(sockets.len(), Hatch::Inference.sockets().len());
        assert!(sandbox.take_hatches().is_empty(), "they are given out once");
        serve(sockets, word);
        (sandbox, word)
    });
    for (sandbox, word) in &sandboxes {
        put_caller(&**sandbox);
        let ran = run(&**sandbox, CALL);
        let expected = format!("8080 {word} 0\n11434 {word} 1\n/llm-sock/llm.sock {word} 2\n");
        assert_eq!(ran.stdout, expected, "{ran:?}");
        assert_eq!(run(&**sandbox, "echo $OPENAI_API_BASE").stdout, "http://localhost:8080\n");
    }
}

fn without_a_hatch_nobody_listens(house: &BackendFixture) {
    let mut sandbox = house.sandbox();
    assert!(sandbox.take_hatches().is_empty());
    put_caller(&*sandbox);
    let ran = run(&*sandbox, CALL);
    let expected = "8080 connection refused\n11434 connection refused\n/llm-sock/llm.sock entity not found\n";
    assert_eq!(ran.stdout, expected, "{ran:?}");
    assert_eq!(run(&*sandbox, "echo ${OPENAI_API_BASE-none}").stdout, "none\n");
}

fn nobody_inside_takes_a_hatch_away(house: &BackendFixture) {
    let mut sandbox = with_hatches(&*house.backend).unwrap();
    serve(sandbox.take_hatches(), "still");
    let names: Vec<plan::Hatch> = Hatch::Inference.sockets();
    assert!(names.contains(&plan::Hatch::Local { inside: "llm-sock/llm.sock".to_owned() }));
    // Another program that listens there would receive what is meant for the host.
    put_caller(&*sandbox);
    let take = "rm -f /llm-sock/llm.sock; mv /llm-sock/llm.sock /tmp; mv /llm-sock /tmp/elsewhere; ls /llm-sock; \
                ./belljar-test-caller take 8080";
    let ran = run(&*sandbox, take);
    assert_eq!(ran.stdout, "llm.sock\n8080 address in use\n", "{ran:?}");
    let ran = run(&*sandbox, CALL);
    assert!(ran.stdout.contains("still 2"), "{ran:?}");
}

fn a_hatch_into_a_network_of_the_hosts_is_refused(house: &BackendFixture) {
    match with_hatches(&*house.backend) {
        Err(BackendError::Unavailable { why, .. }) => assert!(why.contains("no hatches"), "{why}"),
        other => panic!("{other:?}"),
    }
    // The control.
    let sandbox = house.sandbox();
    let nothing = crate::house::nothing;
    sandbox.exec(&shell("true"), Stdio::Descriptors([nothing(), nothing(), nothing()])).unwrap();
}
