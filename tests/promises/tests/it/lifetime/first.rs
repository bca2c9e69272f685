//! LF3: PID 1 goes on, whatever a program makes of the descriptors that it names to it.

use crate::belljar::belljar;
use crate::scene::Scene;
use crate::tally::{Tally, Verdict};
use crate::way::PROBE;
use belljar_testkit::world::{Ran, World};

#[test]
fn pid_1_never_waits_for_a_socket_that_a_program_named_to_it() {
    let tally = Tally::new("first");
    World::as_everyone(belljar(), |world| {
        let scene = Scene::lay(world);
        let lent = format!("{}:/lent", scene.path("lent"));
        let ran = scene.making(&["exec"], &["--timeout", "60s", "--ro", &lent], &[PROBE, "linger", "/tmp"]);
        let ran = Ran::from({ ran }.output().unwrap());
        let verdict = match ran.stdout.as_str() {
            "a close waits\nanswered\n" => Verdict::Held,
            "a close waits\nno answer\n" => Verdict::Escaped("PID 1 waits".to_owned()),
            _ => Verdict::Invalid(format!("{ran:?}")),
        };
        tally.count("LF3", "LF3 a lingering socket", &format!("{:?}", world.user()), verdict);
    });
    tally.close();
}
