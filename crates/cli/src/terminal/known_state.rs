//! Puts the person's terminal back into a known state after a program in a sandbox wrote to it.
//!
//! Output is relayed as it is, so a program can leave the alternate screen, a scroll region, invisible colors, another character set or
//! painted text behind. What Belljar then shows for approval would be hidden or mixed with that. Therefore:
//!
//! ```text
//! relay ends ─► restore(): all modes as a terminal begins with; the cursor stays where it is as far as terminals allow
//! review     ─► begin_review(): the same, then an empty screen; text goes to the scrollback, images over the text are deleted
//! ```
//! Neither uses a full reset (RIS), which deletes the scrollback, nor a sequence that a terminal answers.

use super::turn::TerminalLock;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::stdio::{stderr, stdout};
use rustix::termios::{isatty, tcgetwinsize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The sequences that restore all modes, in this order: what ends another state of the terminal's parser comes first, then what moves the
/// cursor, then the rest. A terminal ignores what it doesn't know.
const RESTORE: &[&str] = &[
    // CAN and ST end a sequence or a string (OSC, DCS, APC) that was begun. Then out of the mode of a VT52, and into UTF-8.
    "\x18\x1b\\\x1b<\x1b%G",
    // Output is shown at once (synchronized output off), and goes neither to a printer nor to a status line.
    "\x1b[?2026l\x1b[4i\x1b[?4i\x1b[0$}\x1b[0$~",
    // The main screen. Only the last of the three moves the cursor, also where the main screen is shown already.
    "\x1b[?47l\x1b[?1047l\x1b7\x1b[?1049l",
    // No left and right margins and no scroll region. That moves the cursor, which is put back.
    "\x1b[?69l\x1b[r\x1b8",
    // A soft reset (DECSTR). Only this ends origin mode without moving the cursor; without a scroll region it makes no difference.
    "\x1b[!p",
    // Character sets: G0 to G3 ASCII, G0 in use, no national ones.
    "\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?42l",
    // Autowrap on and reverse wrap off; no insert mode, no locked keyboard, a line feed is one; screen not reversed, cursor visible.
    "\x1b[?7h\x1b[?45l\x1b[4l\x1b[2l\x1b[20l\x1b[?5l\x1b[?25h",
    // Tab stops at every eighth column (DECST8C).
    "\x1b[?5W",
    // Cursor keys, keypad and the other keys as usual.
    "\x1b[?1l\x1b>\x1b[?66l\x1b[=0u\x1b[>4;0m",
    // No reports of the mouse and the focus, no bracketed paste.
    "\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l",
    // The palette, special colors, and those of text, background, cursor, pointer and highlight. No link is open.
    "\x1b]104\x1b\\\x1b]105\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b]113\x1b\\\x1b]114\x1b\\\x1b]117\x1b\\\x1b]119\x1b\\",
    // The Linux console's palette, where OSC has no number.
    "\x1b]R\x1b\\\x1b]8;;\x1b\\",
    // Default colors and font.
    "\x1b[0;10m",
];

/// Deletes the images that lie on the screen by kitty's graphics protocol: they cover text, and one may be higher than the screen, so that
/// it doesn't scroll away whole. Images of other protocols (sixel, iTerm2) are part of the lines and scroll with them. For the main screen,
/// each screen has its own. tmux takes the string for a title, so the title is kept meanwhile.
const DELETE_IMAGES: &str = "\x1b[22;2t\x1b_Ga=d,d=A,q=2\x1b\\\x1b[23;2t";

/// To the last line, whatever restored the cursor. Line feeds from there move what was on the screen into the scrollback.
const TO_LAST_LINE: &str = "\x1b[?6l\x1b[999;1H";

/// The upper left corner, and nothing below it.
const EMPTY: &str = "\x1b[H\x1b[J";

/// The number of lines of a terminal that doesn't know its size.
const LINES: u16 = 24;

/// Whether this process shows a review on an empty screen, and has relayed nothing since.
static IS_BEGUN: AtomicBool = AtomicBool::new(false);

/// The turns on the terminals where this process shows a review: other commands relay nothing to them meanwhile.
static TURNS: Mutex<Vec<TerminalLock>> = Mutex::new(Vec::new());

/// Ends a review: this process relays a program's output next.
pub(super) fn end_review() {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    IS_BEGUN.store(false, Ordering::Relaxed);
}

/// Restores the modes of the terminal after a relay. The next review begins on an empty screen.
pub(super) fn restore() {
    IS_BEGUN.store(false, Ordering::Relaxed);
    // Where standard output leads elsewhere, a program that reads it may use the terminal at this moment (`| less`).
    let restore = || write(stdout(), RESTORE.concat().as_bytes());
    match TerminalLock::at(stdout()) {
        // A command that shows a review there has restored the modes.
        Some(turn) => turn.write(restore).unwrap_or_default(),
        None if isatty(stdout()) => restore(),
        None => {}
    }
}

/// Begins a review, or a question without one, on an empty screen with all modes restored: if this process has not done so since its last
/// relay, and there is a terminal. To be called before anything is printed that a person approves.
pub(crate) fn begin_review() {
    if IS_BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    TURNS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    for terminal in terminals() {
        take_turn(terminal);
        let lines = tcgetwinsize(terminal).map_or(0, |size| size.ws_row);
        write(terminal, page(if lines == 0 { LINES } else { lines }).as_bytes());
    }
}

fn take_turn(terminal: BorrowedFd<'_>) {
    let Some(turn) = TerminalLock::at(terminal) else { return };
    if !turn.take() {
        crate::output::errln!(
            "belljar: another command shows a review on this terminal; waiting for it to end"
        );
        turn.wait();
    }
    TURNS.lock().unwrap_or_else(PoisonError::into_inner).push(turn);
}

/// Returns the control sequences that begin an empty screen of that many lines.
fn page(lines: u16) -> String {
    let restore = RESTORE.concat();
    format!("{restore}{DELETE_IMAGES}{TO_LAST_LINE}{}{EMPTY}", "\n".repeat(lines.into()))
}

/// The terminals that Belljar prints on, each once.
fn terminals() -> impl Iterator<Item = BorrowedFd<'static>> {
    let device = |stream: BorrowedFd<'_>| rustix::fs::fstat(stream).ok().map(|stat| stat.st_rdev);
    let is_second = !isatty(stderr()) || device(stderr()) != device(stdout());
    [stderr(), stdout()]
        .into_iter()
        .filter(move |stream| isatty(stream) && (stream.as_raw_fd() == stderr().as_raw_fd() || is_second))
}

/// Writes all of it. A terminal that is gone shows nothing that could be approved.
fn write(terminal: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for_room(terminal),
            Err(_) => return,
        }
    }
}

fn wait_for_room(terminal: BorrowedFd<'_>) {
    use rustix::event::{PollFd, PollFlags, poll};
    let _ = poll(&mut [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)], None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_reset_ends_open_strings_and_alternate_screen_first() {
        let page = page(3);
        let at = |sequence: &str| page.find(sequence).unwrap_or_else(|| panic!("{sequence:?} is missing"));
        assert!(page.starts_with("\x18\x1b\\"), "an open string swallows what follows");
        // The main screen brings back the attributes that were saved with its cursor.
        for restored_with_cursor in ["\x1b(B", "\x1b[0;10m", "\x1b[?7h", "\x1b[!p", "\x1b[999;1H"] {
            assert!(at("\x1b[?1049l") < at(restored_with_cursor) && at("\x1b8") < at(restored_with_cursor));
        }
        assert!(page.ends_with("\x1b[?6l\x1b[999;1H\n\n\n\x1b[H\x1b[J"), "{page:?}");
        // Each screen has images of its own. Those that are higher than the screen don't scroll away.
        assert!(at("\x1b[?1049l") < at("\x1b_Ga=d,d=A") && at("\x1b_Ga=d,d=A") < at("\x1b[999;1H"));
        assert!(!RESTORE.concat().contains("\x1b_G"), "a program's images stay where nothing is reviewed");
        for never in ["\x1bc", "\x1b[3J", "\x1b[6n", "\x1b[c"] {
            assert!(!page.contains(never), "{never:?} deletes the scrollback, or is answered");
        }
    }
}
