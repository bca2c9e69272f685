//! Resolution of a program's name to a file.

use rustix::fs::{Access, FileType};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A name that means no program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("program not found: {program} (PATH={})", path.display())]
    AbsentFromPath { program: String, path: OsString },
    #[error("program not found: {program}")]
    Absent { program: String },
    #[error("program is not executable: {program}")]
    NotExecutable { program: String },
}

/// Search path for programs if none is set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Finds the program that `name` means with that `PATH`. Relative names are those of the current directory.
pub(super) fn find(name: &str, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    if name.contains('/') {
        let program = PathBuf::from(name);
        return match look_at(&program) {
            ProgramLookup::Program => Ok(program),
            ProgramLookup::NotExecutable => Err(ProgramError::NotExecutable { program: name.to_owned() }),
            ProgramLookup::Nothing => Err(ProgramError::Absent { program: name.to_owned() }),
        };
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut refused = false;
    for directory in path.as_bytes().split(|&byte| byte == b':') {
        // By convention, an empty entry of `PATH` means the current directory.
        let directory = if directory.is_empty() { b"." } else { directory };
        let candidate = Path::new(OsStr::from_bytes(directory)).join(name);
        match look_at(&candidate) {
            ProgramLookup::Program => return Ok(candidate),
            ProgramLookup::NotExecutable => refused = true,
            ProgramLookup::Nothing => {}
        }
    }
    match refused {
        true => Err(ProgramError::NotExecutable { program: name.to_owned() }),
        false => Err(ProgramError::AbsentFromPath { program: name.to_owned(), path: path.to_owned() }),
    }
}

enum ProgramLookup {
    Program,
    NotExecutable,
    Nothing,
}

fn look_at(candidate: &Path) -> ProgramLookup {
    match rustix::fs::stat(candidate) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
            ProgramLookup::NotExecutable
        }
        Ok(_) if rustix::fs::access(candidate, Access::EXEC_OK).is_ok() => ProgramLookup::Program,
        Ok(_) => ProgramLookup::NotExecutable,
        Err(_) => ProgramLookup::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn first_executable_in_path_is_used_and_non_executables_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| root.path().join(name));
        for (directory, mode) in [(&first, 0o644), (&second, 0o755)] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("tool"), "").unwrap();
            std::fs::set_permissions(directory.join("tool"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(first.join("folder")).unwrap();
        let path = |directories: &[&PathBuf]| std::env::join_paths(directories).unwrap();
        let both = path(&[&first, &second]);
        assert_eq!(find("tool", Some(&both)), Ok(second.join("tool")));
        let refused = |name: &str| Err(ProgramError::NotExecutable { program: name.to_owned() });
        assert_eq!(find("tool", Some(&path(&[&first]))), refused("tool"));
        assert_eq!(find("folder", Some(&both)), refused("folder"));
        let missing = find("no-such-tool", Some(&both)).unwrap_err();
        assert_eq!(missing.to_string(), format!("program not found: no-such-tool (PATH={})", both.display()));
    }
}
