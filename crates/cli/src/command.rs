//! The subcommands, one a file.

mod completions;
mod doctor;
mod exec;
mod man;
mod run;
mod validate;

use crate::error::CliError;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Runs AI agents and their jobs sealed and in plain view.
///
/// Inside a sandbox there is no network, no secret, and nothing of the host but its programs, read-only.
#[derive(Debug, Parser)]
#[command(name = "belljar", version, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArguments),
    Exec(exec::ExecArguments),
    Doctor(doctor::DoctorArguments),
    Validate(validate::ValidateArguments),
    Completions(completions::CompletionsArguments),
    Man(man::ManArguments),
}

const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the job failed; its result says why
  2    the job is malformed; nothing of it ran
  124  out of time
  125  belljar itself could not do its part, or the command line is wrong
  126  exec: the program can't be run
  127  exec: there is no such program
  Otherwise exec gives the program's own exit code, or 128 and the signal that ended it.";

/// Parses the command line and does what it says.
pub(crate) fn run() -> Result<ExitCode, CliError> {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_help = !error.use_stderr();
            let _ = error.print();
            return Ok(if is_help { ExitCode::SUCCESS } else { ExitCode::from(crate::error::OWN_FAILURE) });
        }
    };
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Exec(arguments) => exec::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

fn definition() -> clap::Command {
    Arguments::command()
}
