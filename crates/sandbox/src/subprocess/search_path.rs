//! `PATH`, held to directories of the system. Pure: whether a directory is there is asked of the caller.

use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A directory below which programs may be looked up: absolute, without detours, and not the root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SafePrefix(PathBuf);

/// A path that is no such directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a valid program directory prefix: {why}")]
pub struct PrefixError {
    /// The path.
    pub path: String,
    /// Reason why it is refused.
    pub why: &'static str,
}

/// None of the directories in which programs could be looked up exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("none of the system's program directories exists")]
pub struct NoSafePathError;

const SAFE: [&str; 5] = ["/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/sbin"];

/// Returns the entries of a `PATH` that are safe, each in its plainest form; if none is, the system's directories that
/// exist.
///
/// # Errors
/// [`NoSafePathError`] if none of those exists either.
pub fn restrict(
    path: &OsStr,
    extra: &[SafePrefix],
    is_there: impl Fn(&Path) -> bool,
) -> Result<OsString, NoSafePathError> {
    let entries =
        path.as_bytes().split(|byte| *byte == b':').map(|entry| Path::new(OsStr::from_bytes(entry)));
    let mut safe: Vec<PathBuf> = entries.filter_map(plain).filter(|entry| is_safe(entry, extra)).collect();
    if safe.is_empty() {
        safe = SAFE.iter().map(PathBuf::from).filter(|directory| is_there(directory)).collect();
    }
    match safe.is_empty() {
        true => Err(NoSafePathError),
        false => Ok(safe.iter().map(|entry| entry.as_os_str()).collect::<Vec<_>>().join(OsStr::new(":"))),
    }
}

/// Returns true if an entry is safe. Whole names are compared: `/usr/bin-evil` is not below `/usr/bin`.
fn is_safe(entry: &Path, extra: &[SafePrefix]) -> bool {
    let below_extra = extra.iter().any(|prefix| entry.starts_with(&prefix.0));
    below_extra || SAFE.iter().any(|prefix| entry.starts_with(prefix))
}

/// Returns the path in an absolute, plain form; `None` for a path that is relative or holds a NUL.
fn plain(entry: &Path) -> Option<PathBuf> {
    if !entry.is_absolute() || entry.as_os_str().as_bytes().contains(&0) {
        return None;
    }
    let mut plain = PathBuf::new();
    for component in entry.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            component => plain.push(component),
        }
    }
    Some(plain)
}

// === impl SafePrefix ===

impl SafePrefix {
    /// The directory.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for SafePrefix {
    type Error = PrefixError;

    fn try_from(path: String) -> Result<Self, PrefixError> {
        let refuse = |why| Err(PrefixError { path: path.clone(), why });
        if path.is_empty() {
            return refuse("it is empty");
        }
        if path.contains(['\0', ':']) {
            return refuse("it contains a NUL or a colon");
        }
        if !path.starts_with('/') {
            return refuse("it is not absolute");
        }
        match plain(Path::new(&path)) {
            Some(plain) if plain == Path::new("/") => refuse("it is the root"),
            // Compared by their text: a detour, a double slash or one at the end is none of ours to guess about.
            Some(plain) if plain.as_os_str() == path.as_str() => Ok(Self(plain)),
            _ => refuse("it is not normalized"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restricted(path: &str, extra: &[&str]) -> String {
        let extra: Vec<_> =
            extra.iter().map(|path| SafePrefix::try_from((*path).to_owned()).unwrap()).collect();
        let there = |path: &Path| path != Path::new("/sbin");
        restrict(OsStr::new(path), &extra, there).unwrap().into_string().unwrap()
    }

    #[test]
    fn only_directories_of_the_system_stay_and_in_their_order() {
        assert_eq!(restricted("/home/x/bin:/usr/bin:.:/bin:/opt/tools", &[]), "/usr/bin:/bin");
        assert_eq!(restricted("/usr/local/bin/deep", &[]), "/usr/local/bin/deep");
        assert_eq!(restricted("/opt/tools/bin:/bin", &["/opt/tools"]), "/opt/tools/bin:/bin");
    }

    #[test]
    fn what_only_looks_like_one_goes() {
        for spoof in
            ["/usr/bin-evil", "/usr/binx", "/usr/bin/../../home/x", "/bin/..", "usr/bin", "/usr/bin\0/x", ""]
        {
            assert_eq!(restricted(&format!("{spoof}:/sbin"), &[]), "/sbin", "{spoof:?}");
        }
        assert_eq!(restricted("/opt/tools-evil:/sbin", &["/opt/tools"]), "/sbin");
    }

    #[test]
    fn detours_are_taken_out() {
        assert_eq!(restricted("/usr//bin/./:/home/../usr/sbin", &[]), "/usr/bin:/usr/sbin");
    }

    #[test]
    fn without_a_safe_entry_the_systems_that_are_there_are_taken_or_none() {
        assert_eq!(restricted("/home/x", &[]), "/usr/bin:/usr/local/bin:/bin:/usr/sbin");
        assert_eq!(restrict(OsStr::new("/home/x"), &[], |_| false), Err(NoSafePathError));
    }

    #[test]
    fn a_prefix_is_absolute_plain_and_not_the_root() {
        for path in [
            "",
            "relative",
            "/",
            "//",
            "/..",
            "/opt/../usr",
            "/opt/",
            "/opt//x",
            "/opt/\0",
            "/a:/b",
            "/opt/.",
        ] {
            assert!(SafePrefix::try_from(path.to_owned()).is_err(), "{path:?}");
        }
        assert!(SafePrefix::try_from("/opt/tools".to_owned()).is_ok());
    }
}
