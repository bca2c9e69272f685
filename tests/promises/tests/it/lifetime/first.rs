//! LF3: PID 1 goes on, whatever a program makes of the descriptors that it names to it, and no close of a socket waits.

use crate::belljar::belljar;
use crate::scene::Scene;
use crate::tally::{Tally, Verdict};
use crate::way::PROBE;
use belljar_testkit::world::{Ran, World};
use std::path::Path;

#[test]
fn pid_1_never_waits_for_a_socket_that_a_program_named_to_it() {
    let tally = Tally::new("first");
    World::as_everyone(belljar(), |world| {
        let scene = Scene::lay(world);
        let lent = format!("{}:/lent", scene.path("lent"));
        let ran = scene.making(&["exec"], &["--timeout", "60s", "--ro", &lent], &[PROBE, "linger", "/tmp"]);
        let ran = Ran::from({ ran }.output().unwrap());
        let folder = scene.path("outside/tmp");
        let probe = scene.path("lent/belljar-probe");
        let outside = scene.world.command_of(Path::new(&probe), &["linger", &folder]).output().unwrap();
        let verdict = match (outside.stdout.starts_with(b"a close waits\n"), ran.stdout.as_str()) {
            (true, "a close doesn't wait\nanswered\n") => Verdict::Held,
            (true, "a close doesn't wait\nno answer\n") => Verdict::Escaped("PID 1 waits".to_owned()),
            (true, waits) if waits.starts_with("a close waits\n") => {
                Verdict::Escaped("a close waits, in whatever process".to_owned())
            }
            _ => Verdict::Invalid(format!("{ran:?}, outside {outside:?}")),
        };
        tally.count("LF3", "LF3 a lingering socket", &format!("{:?}", world.user()), verdict);
    });
    tally.close();
}
