//! Which files a list of programs means in a sandbox's root: the programs, and what the kernel starts them by, which is the
//! loader of each and, for a script, its interpreter.
//!
//! Looked up by PID 1 before anything else runs. Files are opened here, so that a rule means this file and no other that
//! gets its name.

use super::{ErrorContext, WallError};
use crate::plan::programs::Programs;
use elf::interpreter;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, StatVfsMountFlags, fstat, fstatvfs, openat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

mod elf;

/// Files and directories that may be run and read.
#[derive(Debug, Default)]
pub(crate) struct ProgramFiles {
    files: BTreeMap<PathBuf, OwnedFd>,
}

/// A script may be interpreted by a script, and so on, as often as the kernel goes along.
const INTERPRETERS: usize = 5;

/// Number of bytes at the beginning of a script that name its interpreter.
const FIRST_LINE_BYTES: usize = 256;

/// Finds the programs that may be run; nothing below `writable`, whatever leads there.
pub(crate) fn find(programs: &Programs, writable: &[String]) -> Result<ProgramFiles, WallError> {
    let writable: Vec<PathBuf> = writable.iter().map(|place| Path::new("/").join(place)).collect();
    let mut found = ProgramFiles::default();
    for directory in &programs.directories {
        for name in &programs.names {
            found.add(&Path::new("/").join(directory).join(name), &writable)?;
        }
    }
    for file in &programs.besides {
        found.add(&Path::new("/").join(file), &writable)?;
    }
    for part in &programs.parts {
        found.add_directory(&Path::new("/").join(part), &writable)?;
    }
    Ok(found)
}

/// Returns the directories of programs, without links: each once.
pub(crate) fn directories(programs: &Programs) -> Vec<PathBuf> {
    let all = programs.directories.iter().chain(&programs.closed);
    let mut real: Vec<PathBuf> =
        all.filter_map(|directory| Path::new("/").join(directory).canonicalize().ok()).collect();
    real.sort();
    real.dedup();
    real
}

// === impl ProgramFiles ===

impl ProgramFiles {
    /// Returns the files found, opened.
    pub(crate) fn into_opened(self) -> impl Iterator<Item = (PathBuf, OwnedFd)> {
        self.files.into_iter()
    }

    /// A program with all that the kernel takes to start it.
    fn add(&mut self, path: &Path, writable: &[PathBuf]) -> Result<(), WallError> {
        let mut next = Some(path.to_owned());
        for _ in 0..=INTERPRETERS {
            let Some(path) = next.take() else { break };
            let Some((real, file)) = open(&path, writable)? else { break };
            if FileType::from_raw_mode(fstat(&file).about(&shown(&real))?.st_mode) != FileType::RegularFile {
                break;
            }
            next = started_by(&file).about(&shown(&real))?;
            self.files.insert(real, file);
        }
        Ok(())
    }

    fn add_directory(&mut self, path: &Path, writable: &[PathBuf]) -> Result<(), WallError> {
        if let Some((real, directory)) = open(path, writable)? {
            self.files.insert(real, directory);
        }
        Ok(())
    }
}

/// Opens the target of a path; `None` where nothing is that could be a program.
fn open(path: &Path, writable: &[PathBuf]) -> Result<Option<(PathBuf, OwnedFd)>, WallError> {
    let Ok(real) = path.canonicalize() else { return Ok(None) };
    if writable.iter().any(|place| real.starts_with(place)) {
        return Ok(None);
    }
    // Neither waits for the other end of a pipe nor takes a terminal.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(CWD, &real, flags, Mode::empty()) {
        Ok(opened) => opened,
        // If the program can't be read, its interpreter is unknown.
        Err(Errno::ACCESS | Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno).about(&shown(&real)),
    };
    let flags = fstatvfs(&opened).about(&shown(&real))?.f_flag;
    let is_without_programs = flags.contains(StatVfsMountFlags::NOEXEC);
    Ok((!is_without_programs).then_some((real, opened)))
}

/// Returns the interpreter by which the kernel starts a file, if it is not the file alone.
fn started_by(file: &OwnedFd) -> Result<Option<PathBuf>, Errno> {
    let mut first = [0; FIRST_LINE_BYTES];
    let read = rustix::io::pread(file, &mut first, 0)?;
    let first = first.get(..read).unwrap_or_default();
    let path = match first.strip_prefix(b"#!") {
        Some(line) => Some(interpreter_of_script(line).to_vec()),
        None => interpreter(file)?,
    };
    // A relative one would depend on who starts it.
    let path = path.map(|path| PathBuf::from(OsStr::from_bytes(&path)));
    Ok(path.filter(|path| path.is_absolute()))
}

/// The first word of the line.
fn interpreter_of_script(line: &[u8]) -> &[u8] {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    line.split(is_space).find(|word| !word.is_empty()).unwrap_or_default()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Looks names up in one directory, and returns what is found by them.
    fn found(directory: &Path, names: &[&str], writable: &[&Path]) -> Vec<PathBuf> {
        let relative = |path: &Path| path.to_str().unwrap().trim_start_matches('/').to_owned();
        let programs = Programs {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            directories: vec![relative(directory)],
            ..Programs::default()
        };
        let writable: Vec<String> = writable.iter().map(|path| relative(path)).collect();
        find(&programs, &writable).unwrap().into_opened().map(|(path, _)| path).collect()
    }

    #[test]
    fn program_adds_its_loader_and_script_adds_its_interpreter_only() {
        let folder = std::env::temp_dir().join(format!("belljar-programs-{}", std::process::id()));
        let (bin, open) = (folder.join("bin"), folder.join("open"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&open).unwrap();
        let folder = folder.canonicalize().unwrap();
        let (bin, open) = (folder.join("bin"), folder.join("open"));
        fs::write(bin.join("script"), "#! /bin/sh -e\ntrue\n").unwrap();
        fs::write(bin.join("relative"), "#!sh\n").unwrap();
        fs::write(open.join("written"), "#!/bin/sh\n").unwrap();
        symlink("script", bin.join("link")).unwrap();
        symlink(open.join("written"), bin.join("leads-out")).unwrap();
        symlink("loop", bin.join("loop")).unwrap();
        let sh = Path::new("/bin/sh").canonicalize().unwrap();

        let by_link = found(&bin, &["link"], &[&open]);
        assert!(by_link.contains(&bin.join("script")) && by_link.contains(&sh), "{by_link:?}");
        let loader = by_link.iter().any(|path| path.to_str().unwrap().contains("/ld-"));
        assert!(loader, "no loader among {by_link:?}");
        assert_eq!(by_link.len(), 3, "{by_link:?}");
        assert_eq!(found(&bin, &["relative"], &[]), [bin.join("relative")]);
        assert!(found(&bin, &["missing", "loop"], &[]).is_empty());
        assert!(found(&bin, &["leads-out"], &[&open]).is_empty());
        assert!(found(&bin, &["leads-out"], &[]).contains(&open.join("written")), "the control");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn script_interpreter_is_the_first_word_after_the_shebang() {
        for (line, interpreter) in [
            (" /bin/sh -e\nexit", "/bin/sh"),
            ("\t/usr/bin/env python3", "/usr/bin/env"),
            ("/bin/sh\n", "/bin/sh"),
            ("\n/bin/sh", ""),
        ] {
            assert_eq!(interpreter_of_script(line.as_bytes()), interpreter.as_bytes(), "{line:?}");
        }
    }
}
