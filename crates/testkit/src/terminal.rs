//! A person at a terminal, which `script` gives to a command.

use crate::world::{ProgramOutput, World};
use std::io::{Read, Write};
use std::process::{ChildStdin, Stdio};

/// Ends of Belljar's questions.
const QUESTIONS: [&str; 3] = ["/n] ", "/d] ", "without an answer -- "];

/// Runs a command line at a terminal, and types one of the lines at each question. At the question after the last line the input ends.
///
/// # Panics
/// Where there is no `script`.
pub fn at_a_terminal(world: &World, line: &str, typed: &str) -> ProgramOutput {
    let script = ["--quiet", "--return", "--command", line, "/dev/null"];
    let mut command = world.command_of("script".as_ref(), &script);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is `script`");
    let (mut input, mut output) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
    let mut lines = typed.split_inclusive('\n');
    let (mut shown, mut piece, mut answered) = (Vec::new(), [0; 4096], 0);
    loop {
        let read = output.read(&mut piece).expect("it can be read");
        if read == 0 {
            break;
        }
        shown.extend_from_slice(piece.get(..read).unwrap_or_default());
        let text = String::from_utf8_lossy(&shown);
        let asked: usize = QUESTIONS.iter().map(|question| text.matches(question).count()).sum();
        while answered < asked {
            answered += 1;
            answer(&mut input, lines.next());
        }
    }
    let code = child.wait().expect("it ends").code().unwrap_or(-1);
    ProgramOutput { code, stdout: String::from_utf8_lossy(&shown).into_owned(), stderr: String::new() }
}

fn answer(input: &mut Option<ChildStdin>, line: Option<&str>) {
    match (input.as_mut(), line) {
        (Some(input), Some(line)) => input.write_all(line.as_bytes()).expect("it reads"),
        _ => drop(input.take()),
    }
}
