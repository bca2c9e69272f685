//! The `belljar` command.
#![forbid(unsafe_code)]
use belljar_confine::plan::Stdio;
use belljar_sandbox::spec::*;
use std::collections::BTreeMap;
fn main() {
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    let ws = match std::env::var_os("WS") {
        Some(p) => Workspace::Direct(belljar_confine::plan::HostPath::resolve(p).unwrap()),
        None => Workspace::Empty,
    };
    let spec = SandboxSpec { workspace: ws, job: None, lent: vec![], env: BTreeMap::new() };
    let dup = |n: std::os::fd::BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(n, 3).unwrap();
    use rustix::stdio::*;
    let stdio = Stdio::Descriptors([dup(stdin()), dup(stdout()), dup(stderr())]);
    let mut r =
        belljar_sandbox::native::start(&spec, &Program { argv, directory: "/workspace".into() }, stdio)
            .map_err(|e| {
                let mut s: &dyn std::error::Error = &e;
                loop {
                    eprintln!("{s}");
                    match s.source() {
                        Some(n) => s = n,
                        None => break,
                    }
                }
            })
            .unwrap();
    let e = r.launched.sealed.wait().unwrap();
    if std::env::var_os("T").is_some() {
        for (s, d) in r.launched.timings.iter() {
            eprintln!("{s} {d:?}");
        }
        eprintln!("{e:?}");
    }
    std::process::exit(e.outcome.exit_code().into());
}
