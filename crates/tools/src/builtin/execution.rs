//! `code_runner`, `shell_command`: run a caller's programs in its sandbox (`docs/contracts/tools.md#t1.3`,
//! `docs/contracts/tools.md#t1.7`).

mod code;
mod shell;

pub use code::{Language, Languages};

use super::Tools;
use crate::answer::{Failure, Success};
use crate::definition::{Definition, Effect};
use crate::typed::{schema_of, tool};
use crate::workbench::{FinishedProgram, LONGEST_RUN, Workbench};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::tool::CostTier;
use belljar_contract::workbench::ProgramExit;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Additional time limit of a call, for making a sandbox and for ending leftover processes.
const BESIDES: Duration = Duration::from_secs(60);

/// Default time limit of a program, in seconds.
const USUAL_SECONDS: f64 = 30.0;

/// Maximum length of a program, an argument or a variable, in bytes: the kernel accepts 128 KiB with the terminating zero.
const LONGEST_ARGUMENT_BYTES: usize = (128 << 10) - 1;

/// Returns the tools, for sandboxes with these languages. Without any there is no `code_runner`.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(workbench: &Arc<dyn Workbench>, languages: &Languages) -> Tools {
    let define = |name, category, summary, input, description: String| {
        let definition = Definition::named(name, category, summary, input)?;
        Ok(Definition {
            action: ActionType::from(BuiltInAction::CodeWrite),
            effect: Effect::Destructive,
            cost: CostTier::Moderate,
            within: LONGEST_RUN + BESIDES,
            description,
            ..definition
        })
    };
    let command = define(
        "shell_command",
        Category::Terminal,
        "Runs a shell command.",
        schema_of::<shell::Arguments>(),
        shell::DESCRIPTION.to_owned(),
    )?;
    let mut tools = vec![tool(command, shell::ShellTool(Arc::clone(workbench)))];
    if !languages.is_empty() {
        let mut input = schema_of::<code::Arguments>();
        input["properties"]["language"]["enum"] = json!(languages.names());
        let summary = "Runs code.";
        let definition =
            define("code_runner", Category::CodeExecution, summary, input, code::description(languages))?;
        tools.push(tool(definition, code::CodeTool(Arc::clone(workbench))));
    }
    Ok(tools)
}

/// Returns the requested time limit, within its bounds.
fn within(seconds: Option<f64>) -> Duration {
    let asked = seconds.unwrap_or(USUAL_SECONDS).clamp(1.0, LONGEST_RUN.as_secs_f64());
    Duration::try_from_secs_f64(asked).unwrap_or(LONGEST_RUN)
}

/// Returns the answer about a program.
fn told(ended: &FinishedProgram) -> Success {
    let mut told = json!({
        "stdout": ended.stdout.text(),
        "stderr": ended.stderr.text(),
        "exit_code": ended.exit_code(),
        "timed_out": ended.by == ProgramExit::OutOfTime,
        "truncated": ended.stdout.left_out_bytes + ended.stderr.left_out_bytes > 0,
        "duration_ms": u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX),
    });
    match ended.by {
        ProgramExit::Killed(signal) => told["signal"] = json!(signal),
        ProgramExit::OutOfTime => {
            let took = ended.took.as_secs_f64();
            let said = format!(
                "killed after {took:.1} s (time limit), with all processes that it had \
    started"
            );
            told["notice"] = json!(said);
        }
        ProgramExit::Exited(_) => {}
    }
    Success::of(told)
}

/// Checks that a text can be an argument of a program.
fn check_argument(name: &str, text: &str) -> Result<(), Failure> {
    if text.contains('\0') {
        return Err(Failure::argument(format!(
            "/{name}: the character U+0000 is not allowed in program \
    arguments"
        )));
    }
    match text.len() > LONGEST_ARGUMENT_BYTES {
        true => Err(Failure::argument(format!(
            "/{name}: longer than {LONGEST_ARGUMENT_BYTES} bytes; write it into a file and run that"
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limit_is_clamped_to_bounds() {
        for (asked, given) in [(None, 30.0), (Some(0.0), 1.0), (Some(1.5), 1.5), (Some(1e300), 600.0)] {
            assert_eq!(within(asked), Duration::from_secs_f64(given), "{asked:?}");
        }
        assert_eq!(within(Some(f64::NAN)), LONGEST_RUN);
    }
}
