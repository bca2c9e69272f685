//! LF3: PID 1 goes on, no matter what a program does with the descriptors that it passes to PID 1 and with the
//! processes that PID 1 starts; and no close of a socket blocks it.

use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::{PROBE, end_session};
use belljar_testkit::world::{ProgramOutput, World};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn pid_1_never_blocks_on_a_socket_named_by_a_program() {
    let tally = Tally::new("first");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        let lent = format!("{}:/lent", scene.path("lent"));
        let ran = scene.making(&["exec"], &["--timeout", "60s", "--ro", &lent], &[PROBE, "linger", "/tmp"]);
        let ran = ProgramOutput::from({ ran }.output().unwrap());
        let folder = scene.path("outside/tmp");
        let probe = scene.path("lent/belljar-probe");
        let outside = scene.world.command_of(Path::new(&probe), &["linger", &folder]).output().unwrap();
        let verdict = match (outside.stdout.starts_with(b"a close waits\n"), ran.stdout.as_str()) {
            (true, "a close doesn't wait\nanswered\n") => Verdict::Held,
            (true, "a close doesn't wait\nno answer\n") => Verdict::Escaped("PID 1 waits".to_owned()),
            (true, waits) if waits.starts_with("a close waits\n") => {
                Verdict::Escaped("a close blocks in some process".to_owned())
            }
            _ => Verdict::Invalid(format!("{ran:?}, outside {outside:?}")),
        };
        tally.count("LF3", "LF3 a lingering socket", &format!("{:?}", world.user()), verdict);
    });
    tally.close();
}

/// A process that PID 1 is starting belongs to the sandbox's user, so other programs may stop it before its `exec`.
#[test]
fn pid_1_never_blocks_on_a_stopped_program() {
    let tally = Tally::new("stopped-start");
    World::as_everyone(belljar(), |world| {
        let verdict = judge_stopped_start(&PreparedHost::lay(world));
        tally.count("LF3", "LF3 a stopped start", &format!("{:?}", world.user()), verdict);
    });
    tally.close();
}

fn judge_stopped_start(scene: &PreparedHost<'_>) -> Verdict {
    /// A start takes some milliseconds; a stopped one takes until the probe continues it.
    const STOPPED: Duration = Duration::from_secs(1);
    let lent = format!("{}:/lent", scene.path("lent"));
    let session = scene.make(&["session", "create"], &["--ro", &lent], &[]).succeeded().stdout;
    let session = session.trim();
    let mut stopping = scene.world.command(&["session", "exec", session, "--", PROBE, "stop"]);
    let mut stopping = stopping.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(stopping.stdout.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let mut longest = (Duration::ZERO, None);
    while stopping.try_wait().unwrap().is_none() {
        let begun = Instant::now();
        let start = scene.world.run(&["session", "exec", session, "--", "true"]);
        if begun.elapsed() > longest.0 {
            longest = (begun.elapsed(), Some(start.code));
        }
    }
    let mut end = String::new();
    told.read_to_string(&mut end).unwrap();
    end_session(scene, session);
    match (longest, line.trim(), end.trim()) {
        // The control: a start was stopped, and went on when it was continued.
        ((took, Some(0)), "stopping", "stopped a start\nanswered") if took > STOPPED => Verdict::Held,
        (_, "stopping", "stopped a start\nno answer") => Verdict::Escaped("PID 1 waits".to_owned()),
        _ => Verdict::Invalid(format!("{longest:?}, {line}, {end}")),
    }
}
