//! Our own program in the sandboxes of sessions, as the runner: by it tools work there.

use crate::state;
use belljar_sandbox::backends::chosen::{Chosen, Site};
use belljar_sandbox::config::BackendName;
use belljar_sandbox::run::RUNNER_INSIDE;
use belljar_sandbox::session::Session;
use belljar_sandbox::spec::{HostPath, LendError, Lent};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// By this name it is the runner.
const NAME: &str = "cynode-sba";

/// How it is started there.
pub(crate) fn own_runner(session: &Session) -> OsString {
    match session.backend {
        // There it sees what the host has, where the host has it.
        BackendName::Subprocess => state::open().path().join(NAME).into(),
        _ => format!("/{RUNNER_INSIDE}").into(),
    }
}

/// What it takes that it is there.
pub(super) fn lent(site: &Site, backend: &Chosen) -> Result<Lent, LendError> {
    match backend {
        Chosen::Subprocess => {
            // Without the link no tool works there, and everything else does.
            let _ = link(&site.executable, &site.state);
            Lent::at_its_place(&site.executable)
        }
        _ => Ok(Lent { path: HostPath::resolve(&site.executable)?, inside: RUNNER_INSIDE.to_owned() }),
    }
}

/// Puts a link to that program into the state directory, in place of one that leads elsewhere.
fn link(executable: &Path, state: &Path) -> io::Result<()> {
    let link = state.join(NAME);
    if std::fs::read_link(&link).is_ok_and(|target| target == executable) {
        return Ok(());
    }
    let part = state.join(format!(".{NAME}-{}", std::process::id()));
    symlink(executable, &part)?;
    std::fs::rename(&part, &link)
}
