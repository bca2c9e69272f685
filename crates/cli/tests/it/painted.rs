//! Terminal state that a program leaves behind: the review after it is visible anyway. The terminal is `tmux`.

use crate::BELLJAR;
use crate::session::{SessionCleanup, create, exec};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A harmless review, with which a program hides the lines after it.
const PAINTED: &str = r"\033[2J\033[H  1 file changed in the copy:\n  M README.md\n+harmless\n";

/// Ways to hide the following output. Each leaves the painted review on the screen.
const HIDING: [&str; 5] = [
    // Two lines of the alternate screen scroll; the rest stays.
    r"\033[?1049hPAINTED\033[10;11r\033[11;1H",
    // All output goes to the last column, without a line feed.
    r"PAINTED\033[?7l\033[?69h\033[1;2s\033[29;30r\033[?6h\033[30;1H",
    // Line drawing instead of letters.
    r"PAINTED\033(0\033)0\016",
    // Concealed.
    r"PAINTED\033[8m",
    // An unterminated control string.
    r"PAINTED\033]0;title",
];

/// A `tmux` terminal that runs a command line.
struct Tmux<'a> {
    world: &'a World,
    socket: String,
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

impl<'a> Tmux<'a> {
    fn run(world: &'a World, line: &str) -> Self {
        // A server that is exiting may still be there.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let socket = format!("terminal-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let tmux = Self { world, socket };
        let line = format!("{line}; echo ended-$?; sleep 600");
        tmux.succeed(&["new-session", "-d", "-x", "100", "-y", "30", &line]);
        tmux
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let all = [&["-u", "-S", &self.socket, "-f", "/dev/null"], arguments].concat();
        self.world.command_of("tmux".as_ref(), &all)
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let ran = self.command(arguments).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }

    /// Returns the content of the screen.
    fn screen(&self) -> String {
        self.succeed(&["capture-pane", "-p"])
    }

    /// Returns the screen once it contains this text.
    fn screen_with(&self, text: &str) -> String {
        until(|| self.screen().contains(text));
        self.screen()
    }

    fn answer(&self, typed: &str) {
        self.succeed(&["send-keys", typed, "Enter"]);
    }
}

/// Writes a program that changes two files and then hides the following output.
fn hide(world: &World, hiding: &str) {
    let text = hiding.replace("PAINTED", PAINTED);
    world.write("source/README.md", "before\n");
    world.write("source/hide.sh", format!("echo evil >app.py; echo x >>README.md; printf '{text}'"));
}

fn is_review(screen: &str) -> bool {
    let rows = ["  2 files changed", "  M README.md", "  A app.py", "+evil"];
    rows.iter().all(|row| screen.contains(row)) && !screen.contains("harmless")
}

#[test]
fn review_is_visible_after_a_program_that_hides_later_output() {
    for hiding in HIDING {
        let world = World::new(BELLJAR);
        hide(&world, hiding);
        let line = format!("{BELLJAR} exec --workspace-copy source -- sh hide.sh");
        let tmux = Tmux::run(&world, &line);
        let screen = tmux.screen_with("[a/k/d]");
        assert!(is_review(&screen), "{hiding}\n{screen}");
        tmux.answer("d");
        tmux.screen_with("ended-0");
    }
}

/// The control of the other tests: without a reset the lines aren't visible.
#[test]
fn lines_after_a_program_that_hides_them_are_invisible_without_a_reset() {
    for hiding in HIDING {
        let world = World::new(BELLJAR);
        hide(&world, hiding);
        world.write("review", "  2 files changed in the copy:\n  M README.md\n  A app.py\n+evil\n");
        let tmux = Tmux::run(&world, "cd source; sh hide.sh; cat ../review; touch ../shown");
        until(|| world.path().join("shown").exists());
        let screen = tmux.screen();
        assert!(!is_review(&screen), "{hiding}\n{screen}");
    }
}

#[test]
fn commit_review_is_visible_after_a_session_program_that_hides_later_output() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    hide(&world, HIDING[0]);
    create(&world, &["--workspace-copy", "source", "--name", "s"]);
    let line = format!("{BELLJAR} session exec s -- sh hide.sh; {BELLJAR} session commit s");
    let tmux = Tmux::run(&world, &line);
    let screen = tmux.screen_with("Write these changes? [y/n]");
    assert!(is_review(&screen), "{screen}");
    tmux.answer("n");
    tmux.screen_with("ended-3");
    assert!(!world.path().join("source/app.py").exists());
}

#[test]
fn tabs_are_visible_as_blanks_after_a_program_cleared_the_tab_stops() {
    let world = World::new(BELLJAR);
    world.write("source/a.txt", "true\n");
    world.write("source/clear.sh", r"printf 'echo\t;\t.\tx\n' >a.txt; printf '\033[3g'");
    let line = format!("{BELLJAR} exec --workspace-copy source -- sh clear.sh");
    let tmux = Tmux::run(&world, &line);
    let seen = "+echo   ;       .       x";
    let screen = tmux.screen_with("[a/k/d]");
    assert!(screen.contains(seen), "{screen}");
    tmux.answer("d");
    tmux.screen_with("ended-0");
    drop(tmux);
    // The control: the same line, unescaped.
    let tmux = Tmux::run(&world, r"printf '\033[3g+echo\t;\t.\tx\n'");
    let screen = tmux.screen_with("ended-0");
    assert!(!screen.contains(seen), "{screen}");
}

#[test]
fn background_program_cannot_paint_over_a_review() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/README.md", "before\n");
    let paint =
        format!("echo evil >app.py; while :; do printf '{PAINTED}'; echo x >>/tmp/count; sleep 0.1; done");
    world.write("source/paint.sh", paint);
    create(&world, &["--workspace-copy", "source", "--name", "s"]);
    // The control: without a review, its painting is visible.
    let line = format!("{BELLJAR} session exec s -- sh paint.sh & read line; {BELLJAR} session commit s");
    let tmux = Tmux::run(&world, &line);
    tmux.screen_with("harmless");
    tmux.answer("");
    let is_shown = |screen: &str| {
        screen.contains("  A app.py") && screen.contains("+evil") && !screen.contains("harmless")
    };
    let screen = tmux.screen_with("Write these changes? [y/n]");
    assert!(is_shown(&screen), "{screen}");
    // It goes on painting, and waits.
    let painted = || exec(&world, "s", "wc -l </tmp/count").succeeded().stdout;
    let before = painted();
    until(|| painted() != before);
    let screen = tmux.screen();
    assert!(is_shown(&screen), "{screen}");
    tmux.answer("n");
    tmux.screen_with("ended-3");
}

#[test]
fn terminal_state_is_restored_after_a_program_without_a_review() {
    for hiding in HIDING {
        let world = World::new(BELLJAR);
        hide(&world, hiding);
        let line = format!("{BELLJAR} exec --workspace source -- sh hide.sh; printf '\\r\\nplain\\r\\n'");
        let tmux = Tmux::run(&world, &line);
        let screen = tmux.screen_with("ended-0");
        assert!(screen.contains("\nplain\n"), "{hiding}\n{screen}");
        let state = tmux.succeed(&[
            "display-message",
            "-p",
            "#{alternate_on} #{scroll_region_upper} #{scroll_region_lower} #{insert_flag} #{wrap_flag}",
        ]);
        assert_eq!(state, "0 0 29 0 1\n", "{hiding}");
    }
}
