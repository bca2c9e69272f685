//! Cache of slowly made folders: each is made once for a checkout, kept in its target folder, and made anew when its
//! recipe changes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// Time for which a failure is cached: without a network, every attempt is slow.
const RETRIED_AFTER: Duration = Duration::from_secs(600);

/// Returns a folder that was made by this recipe. One process makes it, the others wait.
pub(crate) fn kept(
    name: &str,
    recipe: &str,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kept-for-tests");
    std::fs::create_dir_all(&store).map_err(|error| error.to_string())?;
    let store = store.canonicalize().map_err(|error| error.to_string())?;
    made_in(&store, name, recipe, make)
}

fn made_in(
    store: &Path,
    name: &str,
    recipe: &str,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = store.join(name);
    let (made, failed) = (folder.join(".made-by"), folder.with_extension("failure"));
    let is_made = || std::fs::read_to_string(&made).is_ok_and(|by| by == recipe);
    let lock = File::create(folder.with_extension("lock")).map_err(|error| error.to_string())?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
    if is_made() {
        return Ok(folder);
    }
    if let Some(why) = recent(&failed) {
        return Err(why);
    }
    let _ = std::fs::remove_dir_all(&folder);
    let result =
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string()).and_then(|()| make(&folder));
    match result {
        // An incomplete folder has no such file, and is made anew.
        Ok(()) => std::fs::write(&made, recipe).map_err(|error| error.to_string()).map(|()| folder),
        Err(why) => {
            let _ = std::fs::write(&failed, &why);
            Err(why)
        }
    }
}

fn recent(failure: &Path) -> Option<String> {
    let modified = failure.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let age = SystemTime::now().duration_since(modified).unwrap_or_default();
    std::fs::read_to_string(failure).ok().filter(|_| age < RETRIED_AFTER)
}

/// Runs a program to its end; returns its output, or the last line of its error output.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{program}: {}", said.lines().last().unwrap_or("failed without output")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_folder_is_built_once_and_again_after_a_recipe_change() {
        let store = tempfile::tempdir().unwrap();
        let made = |recipe: &str, content: &str| {
            made_in(store.path(), "a", recipe, |folder| {
                assert!(std::fs::read_dir(folder).unwrap().next().is_none(), "it begins empty");
                std::fs::write(folder.join("content"), content).map_err(|error| error.to_string())
            })
            .map(|folder| std::fs::read_to_string(folder.join("content")).unwrap())
        };
        assert_eq!(made("1", "a").as_deref(), Ok("a"));
        assert_eq!(made("1", "b").as_deref(), Ok("a"));
        assert_eq!(made("2", "b").as_deref(), Ok("b"));
    }

    #[test]
    fn failed_build_is_not_retried_immediately() {
        let store = tempfile::tempdir().unwrap();
        let failing = made_in(store.path(), "a", "1", |_| Err("no network".to_owned()));
        assert_eq!(failing, Err("no network".to_owned()));
        let again = made_in(store.path(), "a", "1", |_| panic!("tried again"));
        assert_eq!(again, Err("no network".to_owned()));
    }
}
