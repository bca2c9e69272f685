//! Makes attempts one after another, each in a process of its own.

use super::kernel;
use super::machine::carry_out;
use belljar_promises::attempt::{Attempt, AttemptResult};
use std::io::{BufRead, BufReader, PipeReader, Read, Write};

/// Time limit of an attempt, in seconds. A longer one is killed.
const LONGEST_SECONDS: u64 = 20;

/// Makes the attempts of a file, and writes one line of JSON for each.
pub(super) fn run(file: &str) -> Result<(), String> {
    let attempts = read(file)?;
    for attempt in attempts {
        println!("{}", line(&apart(&attempt)?)?);
    }
    Ok(())
}

/// Makes the attempts of a file in this process and prints their results. Keeps everything that they opened until
/// standard input ends.
pub(super) fn hold(file: &str) -> Result<(), String> {
    for attempt in read(file)? {
        println!("{}", line(&carry_out(&attempt))?);
    }
    println!("holding");
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(|error| error.to_string())
}

fn read(file: &str) -> Result<Vec<Attempt>, String> {
    let text = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("{file}: {error}"))
}

fn line(answer: &AttemptResult) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}

/// Makes an attempt in a child process, and returns an answer even if the child is killed.
fn apart(attempt: &Attempt) -> Result<AttemptResult, String> {
    let (answers, to_parent) = std::io::pipe().map_err(|error| error.to_string())?;
    // Keep the low descriptor numbers free, because attempts use fixed ones.
    let mut to_parent = std::fs::File::from(kernel::move_up(to_parent.into()));
    match kernel::fork().map_err(|errno| format!("fork: {errno:?}"))? {
        None => {
            drop(answers);
            let _ = kernel::call_named(libc::SYS_setpgid, [0; 6]);
            let _ = kernel::call_named(libc::SYS_alarm, [LONGEST_SECONDS, 0, 0, 0, 0, 0]);
            let answer = line(&carry_out(attempt)).unwrap_or_default() + "\n";
            // An attempt may have closed every descriptor; then the parent reports that there is no answer.
            let _ = to_parent.write_all(answer.as_bytes());
            kernel::end(0)
        }
        Some(child) => {
            drop(to_parent);
            let answer = first_line(answers);
            let status = kernel::wait_for(child).map_err(|errno| format!("wait: {errno:?}"))?;
            Ok(serde_json::from_str(&answer).unwrap_or_else(|_| without_answer(attempt, status)))
        }
    }
}

fn first_line(answers: PipeReader) -> String {
    let mut line = String::new();
    let _ = BufReader::new(answers).read_line(&mut line);
    line
}

fn without_answer(attempt: &Attempt, status: i32) -> AttemptResult {
    AttemptResult {
        case: attempt.case.clone(),
        ret: -1,
        errno: 0,
        signal: status & 0x7f,
        step: 0,
        ms: 0.0,
        bytes: String::new(),
    }
}
