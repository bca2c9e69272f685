//! Checks of the repository: `cargo xtask tidy`, and `cargo xtask generate` for generated files.

#![forbid(unsafe_code)]

mod effects;
mod generate;
mod promises;
mod reach;
mod rooms;
mod source;
mod tidy;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy | generate";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy::run(root),
        ["generate"] => generate::write(root),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do about an error stream that is closed.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}
