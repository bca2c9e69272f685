//! `belljar changes push`: `belljar git push` for the kept changes of an agent on a clone.

use super::look_for_leftovers;
use crate::command::git::push::{self, UnpushedChanges};
use crate::error::CliError;
use crate::kept::not_pushed_kept_as;
use belljar_policy::untrusted;
use belljar_sandbox::kept::{self, KeptError};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct PushKeptArguments {
    #[command(flatten)]
    push: push::PushArguments,
}

// === impl PushKeptArguments ===

impl PushKeptArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let state = look_for_leftovers();
        let name = untrusted::name(self.push.place());
        let id = {
            let kept = kept::find(&state, &name)?;
            if !kept.has_clone() {
                let id = kept.id();
                let message =
                    format!("{id} has no clone to push from: `belljar changes apply {id}` applies it");
                return Err(CliError::usage(message));
            }
            kept.id().clone()
        };
        let (code, left) = self.push.run_for(id.as_str())?;
        if left == UnpushedChanges::Everything {
            return Ok(code);
        }
        match (kept::find(&state, id.as_str()), left) {
            (Err(KeptError::NoSuch { .. }), _) => {}
            (kept, UnpushedChanges::Others) => crate::output::err!("{}", not_pushed_kept_as(&kept?)),
            (kept, _) => kept?.remove()?,
        }
        Ok(code)
    }
}
