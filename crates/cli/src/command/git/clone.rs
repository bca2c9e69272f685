//! `belljar git clone`

use super::CommonArguments;
use crate::error::CliError;
use crate::sandbox_args::given_place;
use crate::state;
use belljar_egress::upstream::names::NameSource;
use belljar_git::clone::{CloneParams, Origin, clone};
use belljar_git::{HostClone, HostEnv};
use belljar_trusted::trusted_file;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The clone has the files and their history, no remote and no settings of this host's. A second one, which no sandbox ever \
sees, is kept in the state directory: `belljar git push DIR` puts what became of DIR on top of it.")]
pub(super) struct CloneArguments {
    /// `https://…`, `ssh://…` or `user@host:path`; behind `#` a branch, tag or commit
    #[arg(value_name = "URL[#REF]")]
    url: String,
    /// Target directory; it must be empty or not exist
    directory: PathBuf,
    #[command(flatten)]
    common: CommonArguments,
}

// === impl CloneArguments ===

impl CloneArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let origin = Origin::parse(&self.url, self.common.allow_file)
            .map_err(|error| CliError::usage(error.to_string()))?;
        let rules = self.common.reach()?.rules;
        let directory = place(&self.directory)?;
        let is_new = begin(&directory)?;
        let (state, env) = (state::open(), HostEnv::of_process());
        HostClone::clear_away(state.path(), Some(&directory));
        let folder = HostClone::folder_in_state(state.path());
        let cloned = clone(&CloneParams {
            origin: &origin,
            rules: &rules,
            names: NameSource::of_system(),
            folder: &folder,
            directory: &directory,
            depth: None,
            tells_origin: false,
            branch: "sandbox/work",
            run_id: None,
            env: &env,
            state: state.path(),
            is_canceled: &|| false,
        });
        let base = cloned.inspect_err(|_| {
            // Half a clone is of no use; what can't be removed is told by the next attempt.
            let _ = std::fs::remove_dir_all(&folder);
            let _ = if is_new { std::fs::remove_dir_all(&directory) } else { Ok(()) };
        })?;
        let record = base.record();
        match self.common.json {
            true => crate::output::outln!(
                "{}",
                crate::output::json_line(&serde_json::json!({
                    "remote": record.remote,
                    "reference": record.reference,
                    "commit": record.commit,
                    "directory": base.directory(),
                }))
            ),
            false => crate::output::outln!(
                "{} of {} is in {}",
                record.commit,
                record.remote,
                crate::output::path(&self.directory)
            ),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The path without links. Git takes settings from where it lays a clone out, so no live sandbox may write there.
fn place(directory: &Path) -> Result<PathBuf, CliError> {
    let (found, missing) = given_place(directory)?;
    match trusted_file::look_at(&found.real) {
        Err(error) if error.is_of_sandbox() => Err(CliError::usage(error.to_string())),
        _ => Ok(found.beyond(&missing)),
    }
}

/// An empty directory; whether it was made.
fn begin(directory: &Path) -> Result<bool, CliError> {
    let failed = |source| CliError::read(directory, source);
    match std::fs::create_dir(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut names = std::fs::read_dir(directory).map_err(failed)?;
            match names.next() {
                None => Ok(false),
                Some(_) => Err(CliError::usage(format!("{} is not empty", crate::output::path(directory)))),
            }
        }
        Err(error) => Err(failed(error)),
    }
}
