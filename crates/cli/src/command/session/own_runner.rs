//! Our own program in the sandboxes of sessions, as the runner: by it tools work there.

use crate::state;
use belljar_sandbox::backends::chosen::{BackendChoice, BackendSite};
use belljar_sandbox::config::BackendName;
use belljar_sandbox::run::RUNNER_INSIDE;
use belljar_sandbox::session::SessionClient;
use belljar_sandbox::spec::{HostPath, LendError, Lent};
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// By this name it is the runner.
const NAME: &str = "cynode-sba";

/// How it is started there.
pub(crate) fn own_runner(client: &SessionClient) -> OsString {
    match client.backend() {
        // There it sees what the host has, where the host has it.
        BackendName::Subprocess => state::open().path().join(NAME).into(),
        _ => format!("/{RUNNER_INSIDE}").into(),
    }
}

/// Returns the mount that makes the runner available inside.
pub(super) fn lent(site: &BackendSite, backend: &BackendChoice) -> Result<Lent, LendError> {
    match backend {
        BackendChoice::Subprocess(_) => {
            // Without it no tool works there, and everything else does.
            let _ = put(&site.executable, &site.state);
            Lent::at_its_place(&reached(&site.executable, &site.state))
        }
        _ => Ok(Lent { path: HostPath::resolve(&site.executable)?, inside: RUNNER_INSIDE.to_owned() }),
    }
}

/// Returns the path of the runner that sandboxes start: `executable`, or a copy if not every user can reach it, as in root's home.
fn reached(executable: &Path, state: &Path) -> PathBuf {
    let copied = state.join(NAME);
    let is_copy =
        !is_for_everybody(executable) && copied.symlink_metadata().is_ok_and(|found| found.is_file());
    if is_copy { copied } else { executable.to_owned() }
}

/// Puts a link to that program into the state directory, in place of one that leads elsewhere; or a copy.
fn put(executable: &Path, state: &Path) -> io::Result<()> {
    let (place, part) = (state.join(NAME), state.join(format!(".{NAME}-{}", std::process::id())));
    if is_for_everybody(executable) || !rustix::process::geteuid().is_root() {
        if std::fs::read_link(&place).is_ok_and(|target| target == executable) {
            return Ok(());
        }
        symlink(executable, &part)?;
    } else {
        if is_copied(executable, &place)? {
            return Ok(());
        }
        std::fs::copy(executable, &part)?;
        std::fs::set_permissions(&part, Permissions::from_mode(0o755))?;
        File::options().write(true).open(&part)?.set_modified(executable.metadata()?.modified()?)?;
    }
    std::fs::rename(&part, &place)
}

fn is_copied(executable: &Path, place: &Path) -> io::Result<bool> {
    let (one, other) = (executable.metadata()?, place.symlink_metadata());
    Ok(other.is_ok_and(|other| {
        other.is_file() && other.len() == one.len() && other.modified().ok() == one.modified().ok()
    }))
}

/// Whether anybody may run it where it is.
fn is_for_everybody(executable: &Path) -> bool {
    let may = |path: &Path, bits: u32| path.metadata().is_ok_and(|found| found.mode() & bits == bits);
    may(executable, 0o005) && executable.ancestors().skip(1).all(|above| may(above, 0o001))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runner_in_a_private_directory_is_copied_for_other_users() {
        let (home, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let program = home.path().join("belljar");
        std::fs::write(&program, "one").unwrap();
        let close = |mode| std::fs::set_permissions(home.path(), Permissions::from_mode(mode)).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        close(0o755);
        put(&program, state.path()).unwrap();
        let link = std::fs::read_link(state.path().join(NAME)).unwrap();
        assert_eq!((link, reached(&program, state.path())), (program.clone(), program.clone()));
        if !rustix::process::geteuid().is_root() {
            return;
        }
        close(0o700);
        for content in ["one", "another"] {
            std::fs::write(&program, content).unwrap();
            put(&program, state.path()).unwrap();
            let copy = reached(&program, state.path());
            assert_eq!(std::fs::read_to_string(&copy).unwrap(), content);
            assert_eq!(copy.symlink_metadata().unwrap().mode() & 0o777, 0o755);
        }
    }
}
