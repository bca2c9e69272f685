//! Hatches: sockets that listen inside and are the host's.

use crate::Case;
use crate::house::{House, run, shell};
use belljar_confine::plan;
use belljar_confine::plan::Stdio;
use belljar_sandbox::backend::{Backend, BackendError, Sandbox, Wanted};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::WorkspaceChoice;
use rustix::fd::OwnedFd;
use rustix::net::{SocketFlags, accept_with};
use std::fs::File;
use std::io::Write;

pub(crate) const OPEN: &[Case] = &[
    ("a_hatch_leads_to_the_host_which_knows_whose_it_is", a_hatch_leads_to_the_host_which_knows_whose_it_is),
    ("without_a_hatch_nobody_listens", without_a_hatch_nobody_listens),
    ("nobody_inside_takes_a_hatch_away", nobody_inside_takes_a_hatch_away),
];

pub(crate) const SHUT: &[Case] =
    &[("a_hatch_into_a_network_of_the_hosts_is_refused", a_hatch_into_a_network_of_the_hosts_is_refused)];

/// Connects to each, and prints what it is told there.
const CALL: &str = r#"exec perl -MIO::Socket::INET -MIO::Socket::UNIX -e '
for my $at (8080, 11434, $ENV{LLM_PROXY_SOCKET}) {
    my $to = $at =~ m{^/} ? IO::Socket::UNIX->new(Peer => $at)
        : IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $at);
    print $at // "nothing", " ", $to ? scalar(<$to>) : "$!\n";
}'"#;

fn with_hatches(backend: &dyn Backend) -> Result<Box<dyn Sandbox>, BackendError> {
    backend.create(Wanted { hatches: vec![Hatch::Inference], ..House::wanted(WorkspaceChoice::Empty) })
}

/// Tells everybody who comes the same.
fn serve(sockets: Vec<OwnedFd>, word: &'static str) {
    for (at, socket) in sockets.into_iter().enumerate() {
        std::thread::spawn(move || {
            while let Ok(caller) = accept_with(&socket, SocketFlags::CLOEXEC) {
                // Who is gone needn't be told.
                let _ = writeln!(File::from(caller), "{word} {at}");
            }
        });
    }
}

fn a_hatch_leads_to_the_host_which_knows_whose_it_is(house: &House) {
    let sandboxes = ["first", "second"].map(|word| {
        let mut sandbox = with_hatches(&*house.backend).unwrap();
        let sockets = sandbox.take_hatches();
        assert_eq!(sockets.len(), Hatch::Inference.sockets().len());
        assert!(sandbox.take_hatches().is_empty(), "they are given out once");
        serve(sockets, word);
        (sandbox, word)
    });
    for (sandbox, word) in &sandboxes {
        let ran = run(&**sandbox, CALL);
        let expected = format!("8080 {word} 0\n11434 {word} 1\n/llm-sock/llm.sock {word} 2\n");
        assert_eq!(ran.stdout, expected, "{ran:?}");
        assert_eq!(run(&**sandbox, "echo $OPENAI_API_BASE").stdout, "http://localhost:8080\n");
    }
}

fn without_a_hatch_nobody_listens(house: &House) {
    let mut sandbox = house.sandbox();
    assert!(sandbox.take_hatches().is_empty());
    let ran = run(&*sandbox, &format!("export LLM_PROXY_SOCKET=/llm-sock/llm.sock; {CALL}"));
    assert_eq!(
        ran.stdout,
        "8080 Connection refused\n11434 Connection refused\n/llm-sock/llm.sock No such file or directory\n"
    );
    assert_eq!(run(&*sandbox, "echo ${OPENAI_API_BASE-none}").stdout, "none\n");
}

fn nobody_inside_takes_a_hatch_away(house: &House) {
    let mut sandbox = with_hatches(&*house.backend).unwrap();
    serve(sandbox.take_hatches(), "still");
    let names: Vec<plan::Hatch> = Hatch::Inference.sockets();
    assert!(names.contains(&plan::Hatch::Local { inside: "llm-sock/llm.sock".to_owned() }));
    // Another that listens there would hear what is meant for the host.
    let take = "rm -f /llm-sock/llm.sock; mv /llm-sock/llm.sock /tmp; mv /llm-sock /tmp/elsewhere; ls /llm-sock; \
                perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr => \"127.0.0.1:8080\", Listen => 1, \
                ReuseAddr => 1, ReusePort => 1) ? \"taken\" : \"refused\"'";
    let ran = run(&*sandbox, take);
    assert_eq!(ran.stdout, "llm.sock\nrefused", "{ran:?}");
    let ran = run(&*sandbox, CALL);
    assert!(ran.stdout.contains("still 2"), "{ran:?}");
}

fn a_hatch_into_a_network_of_the_hosts_is_refused(house: &House) {
    match with_hatches(&*house.backend) {
        Err(BackendError::Unavailable { why, .. }) => assert!(why.contains("no hatches"), "{why}"),
        other => panic!("{other:?}"),
    }
    // The control.
    let sandbox = house.sandbox();
    let nothing = crate::house::nothing;
    sandbox.exec(&shell("true"), Stdio::Descriptors([nothing(), nothing(), nothing()])).unwrap();
}
