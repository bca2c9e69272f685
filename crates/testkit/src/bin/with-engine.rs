//! `with-engine COMMAND...`: runs tests that share one Docker engine. Where there can be none, they say so themselves.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stderr,
    reason = "that is how a program that only wraps another says what it can't do"
)]

use belljar_testkit::foreign_root::{Docker, SHARED_ENGINE};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("with-engine: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<u8, std::io::Error> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or_else(|| std::io::Error::other("no command"))?;
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    let mut child = command.args(arguments).env(SHARED_ENGINE, folder.path()).spawn()?;
    // The tests that need none begin meanwhile.
    let engine = Docker::start_shared(folder.path());
    let status = child.wait()?;
    drop(engine);
    // One that was killed has no code.
    Ok(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
}
