//! The runner, for tests whose own binary is provided to sandboxes as the program inside.

use std::ffi::OsString;
use std::process::ExitCode;

/// Is the runner, if this process was started by its name. To be called before anything else.
pub fn if_started_as_it() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let is_it = std::path::Path::new(&name).file_name() == Some(&OsString::from("cynode-sba"));
    is_it.then(|| belljar_runner::main_with(arguments))
}
