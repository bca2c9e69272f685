//! Finds an agent's program on the host, and the host files that a sandbox must see so that the program starts.
//!
//! System programs are visible in every sandbox. For others exactly these files are mounted, at the same path: the file
//! itself, or all of `node_modules` if it is in one; the whole virtual environment if it is in one of Python's; and the
//! interpreter that its first line names. Other files of an installation must be requested explicitly.

use belljar_sandbox::native::{SEARCH_PATH, shows};
use belljar_sandbox::spec::{LendError, Lent};
use belljar_trusted::command::trusted_search_path;
use belljar_trusted::given_path::{self, CheckedPathError, TreeKind};
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that can be started in a sandbox.
#[derive(Debug, Clone)]
pub struct InstalledProgram {
    /// Command that starts it, with its interpreters' arguments.
    pub command: Vec<OsString>,
    /// Host files that must be mounted for it.
    pub lent: Vec<Lent>,
    /// Value of `PATH` inside.
    pub search_path: String,
}

/// Reasons why a program can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// No directory of `PATH` has the program.
    #[error("there is no program {} on this host's PATH", name.display())]
    NotFound {
        /// Its name.
        name: OsString,
    },
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Its files can't be mounted.
    #[error(transparent)]
    Lend(#[from] LendError),
    /// A sandbox or another user can write the program, and so could choose which host files are mounted.
    #[error("can't start {} in a sandbox", name.display())]
    Untrusted {
        /// Its name.
        name: OsString,
        /// The cause.
        #[source]
        source: UntrustedFileError,
    },
    /// A link to it may be a sandbox's.
    #[error("can't start {} in a sandbox", name.display())]
    Link {
        /// Its name.
        name: OsString,
        /// The cause.
        #[source]
        source: Box<CheckedPathError>,
    },
    /// The program is in a directory that a sandbox has written, so it must not choose an interpreter to be mounted.
    #[error(
        "{} lies in {}, which a sandbox has written, and is interpreted by {}, which is not lent to it; keep the program elsewhere",
        program.display(),
        workspace.display(),
        interpreter.display()
    )]
    Interpreter {
        /// The program.
        program: PathBuf,
        /// The directory that a sandbox has written.
        workspace: PathBuf,
        /// The interpreter in its first line.
        interpreter: PathBuf,
    },
    /// The chain of interpreters is too long.
    #[error("{} is interpreted by too many programs", path.display())]
    TooDeep {
        /// The path.
        path: PathBuf,
    },
}

/// Files collected while a program is resolved.
#[derive(Debug, Default)]
struct CollectedFiles {
    lent: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

const MOST_INTERPRETERS: usize = 3;

/// Maximum length of a first line that a kernel reads, in bytes.
const LONGEST_LINE: u64 = 256;

// === impl InstalledProgram ===

impl InstalledProgram {
    /// Looks for a program in this `PATH`.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn find(name: &OsStr, search_path: &OsStr) -> Result<Self, ProgramError> {
        let mut gathered = CollectedFiles::default();
        let command = gathered.resolve(name, search_path, 0)?;
        let lent = gathered.lent.iter().map(|path| Lent::at_its_place(path)).collect::<Result<_, _>>()?;
        let folders = gathered.folders.iter().filter_map(|folder| folder.to_str());
        let folders = folders.filter(|folder| !folder.contains(':')).chain([SEARCH_PATH]);
        Ok(Self { command, lent, search_path: folders.collect::<Vec<_>>().join(":") })
    }

    /// Returns a program in an image: it is looked up at its start, and no files are mounted.
    pub fn in_image(name: OsString) -> Self {
        Self { command: vec![name], lent: Vec::new(), search_path: SEARCH_PATH.to_owned() }
    }
}

/// Returns a program's path, as a shell with this `PATH` would find it. Directories in which a sandbox or another user can
/// put programs are skipped.
pub fn located(name: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if name.is_empty() {
        return None;
    }
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_absolute() && is_program(path));
    }
    // Relative directories are skipped, too: their meaning depends on the working directory.
    trusted_search_path(search_path).into_iter().map(|folder| folder.join(name)).find(is_program)
}

// === impl UntrustedProgram ===

impl UntrustedProgram {
    fn about(self, name: &OsStr) -> ProgramError {
        let name = name.to_owned();
        match self {
            Self::File(source) => ProgramError::Untrusted { name, source },
            Self::Link(source) => ProgramError::Link { name, source: Box::new(source) },
        }
    }
}

// === impl CollectedFiles ===

impl CollectedFiles {
    fn resolve(
        &mut self,
        name: &OsStr,
        search_path: &OsStr,
        depth: usize,
    ) -> Result<Vec<OsString>, ProgramError> {
        let found =
            located(name, search_path).ok_or_else(|| ProgramError::NotFound { name: name.to_owned() })?;
        let read = |source| ProgramError::Read { path: found.clone(), source };
        let real = found.canonicalize().map_err(read)?;
        check(&found, &real).map_err(|untrusted| untrusted.about(name))?;
        let environment = venv(&found);
        // A program in a virtual environment is started by its link, from which it finds the environment.
        let program = if environment.is_some() { found.clone() } else { real.clone() };
        for path in [environment, Some(real.clone())].into_iter().flatten().filter(|path| !shows(path)) {
            self.lend(installation(&path));
        }
        if !shows(&program) {
            self.folders.extend(program.parent().map(Path::to_owned));
        }
        let Some(interpreted) = interpreter(&real).map_err(read)? else { return Ok(vec![program.into()]) };
        if depth == MOST_INTERPRETERS {
            return Err(ProgramError::TooDeep { path: real });
        }
        check_interpreter(&real, located(&interpreted.program, search_path))?;
        let mut command = self.resolve(&interpreted.program, search_path, depth + 1)?;
        command.extend(interpreted.arguments);
        command.push(program.into());
        Ok(command)
    }

    fn lend(&mut self, path: PathBuf) {
        if !self.lent.iter().any(|lent| path.starts_with(lent)) {
            self.lent.push(path);
        }
    }
}

/// Reasons why a program is not trusted.
enum UntrustedProgram {
    File(UntrustedFileError),
    Link(CheckedPathError),
}

/// Checks that no sandbox can replace a program, a link to it or a directory on the way, and that no link of an ended sandbox
/// leads to files that would be mounted. Links out of a work tree are accepted: a virtual environment of Python usually has them.
fn check(found: &Path, real: &Path) -> Result<(), UntrustedProgram> {
    trusted_file::look_at(found).map_err(UntrustedProgram::File)?;
    match given_path::resolve(found) {
        Err(CheckedPathError::Planted { kind: TreeKind::WorkTree, .. }) => Ok(()),
        Err(CheckedPathError::Planted { .. }) if shows(real) => Ok(()),
        Err(error) => Err(UntrustedProgram::Link(error)),
        Ok(_) => Ok(()),
    }
}

/// Checks that a program which a sandbox may have written names only an interpreter that is visible anyway, or is in the same
/// directory.
fn check_interpreter(program: &Path, interpreter: Option<PathBuf>) -> Result<(), ProgramError> {
    let Some(interpreter) = interpreter.and_then(|found| found.canonicalize().ok()) else { return Ok(()) };
    if shows(&interpreter) {
        return Ok(());
    }
    let name = || program.as_os_str().to_owned();
    let above = given_path::workspaces_above(program);
    let above = above.map_err(|source| ProgramError::Link { name: name(), source: Box::new(source) })?;
    match above.into_iter().find(|workspace| !interpreter.starts_with(workspace)) {
        None => Ok(()),
        Some(workspace) => {
            Err(ProgramError::Interpreter { program: program.to_owned(), workspace, interpreter })
        }
    }
}

/// Returns the virtual environment of Python that a program is in.
fn venv(program: &Path) -> Option<PathBuf> {
    let folder = program.parent().filter(|folder| folder.ends_with("bin"))?.parent()?;
    folder.join("pyvenv.cfg").is_file().then(|| folder.to_owned())
}

/// Returns the outermost `node_modules` that a file is in; otherwise the file itself.
fn installation(path: &Path) -> PathBuf {
    let modules = path.ancestors().filter(|above| above.file_name() == Some(OsStr::new("node_modules")));
    modules.last().unwrap_or(path).to_owned()
}

struct InterpreterLine {
    program: OsString,
    arguments: Vec<OsString>,
}

/// Returns the interpreter in a file's first line, if it names one.
fn interpreter(path: &Path) -> std::io::Result<Option<InterpreterLine>> {
    let mut head = Vec::new();
    File::open(path)?.take(LONGEST_LINE).read_to_end(&mut head)?;
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = || words.next().map(|word| OsStr::from_bytes(word).to_owned());
    let Some(program) = word() else { return Ok(None) };
    if Path::new(&program).file_name() != Some(OsStr::new("env")) {
        return Ok(Some(InterpreterLine { program, arguments: word().into_iter().collect() }));
    }
    let first = match word() {
        Some(option) if option == "-S" => word(),
        first => first,
    };
    Ok(first.map(|program| InterpreterLine { program, arguments: std::iter::from_fn(word).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct FakeHost(tempfile::TempDir);

    impl FakeHost {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.at(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            let path = self.at(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }

        /// Returns the command and the mounted files, with `~` for the host's folder.
        fn find(&self, name: &str) -> Result<(Vec<String>, Vec<String>), ProgramError> {
            let search_path = format!("relative:{}:/usr/bin:/bin", self.at("bin").display());
            let found = InstalledProgram::find(OsStr::new(name), OsStr::new(&search_path))?;
            let short = |text: String| text.replace(&self.at("").display().to_string(), "~/");
            let command =
                found.command.iter().map(|word| short(word.to_string_lossy().into_owned())).collect();
            let lent =
                found.lent.iter().map(|lent| short(lent.path.as_path().display().to_string())).collect();
            Ok((command, lent))
        }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn system_program_needs_no_mounts() {
        let (command, lent) = FakeHost::new().find("true").unwrap();
        assert!(command[0].starts_with("/usr/bin/") || command[0].starts_with("/bin/"), "{command:?}");
        assert_eq!(lent, texts(&[]));
    }

    #[test]
    fn single_file_program_is_mounted_without_its_directory() {
        let host = FakeHost::new();
        host.write("share/tool/1.2/tool", "\x7fELF");
        host.write("share/tool/1.2/secret", "");
        host.link("bin/tool", "../share/tool/1.2/tool");
        let file = texts(&["~/share/tool/1.2/tool"]);
        assert_eq!(host.find("tool").unwrap(), (file.clone(), file));
    }

    #[test]
    fn npm_program_is_mounted_with_its_packages_and_node() {
        let host = FakeHost::new();
        host.write("lib/node_modules/tool/cli.js", "#!/usr/bin/env -S node --no-warnings\n");
        host.write("lib/node_modules/tool/node_modules/inner/x.js", "");
        host.link("bin/tool", "../lib/node_modules/tool/cli.js");
        host.write("versions/24/bin/node", "\x7fELF");
        host.link("bin/node", "../versions/24/bin/node");
        let (command, lent) = host.find("tool").unwrap();
        let node = "~/versions/24/bin/node";
        assert_eq!(command, texts(&[node, "--no-warnings", "~/lib/node_modules/tool/cli.js"]));
        assert_eq!(lent, texts(&["~/lib/node_modules", node]));
    }

    #[test]
    fn python_venv_is_mounted_whole_and_keeps_its_interpreter_path() {
        let host = FakeHost::new();
        let script = format!("#!{}\n", host.at("venv/bin/python").display());
        host.write("venv/pyvenv.cfg", "");
        host.write("venv/bin/tool", &script);
        host.link("venv/bin/python", "/usr/bin/env");
        host.link("bin/tool", "../venv/bin/tool");
        let (command, lent) = host.find("tool").unwrap();
        assert_eq!(command, texts(&["~/venv/bin/python", "~/venv/bin/tool"]));
        assert_eq!(lent, texts(&["~/venv/bin/tool", "~/venv"]));
    }

    #[test]
    fn non_executables_and_interpreter_loops_are_rejected() {
        let host = FakeHost::new();
        host.write("bin/tool", "");
        std::fs::set_permissions(host.at("bin/tool"), PermissionsExt::from_mode(0o644)).unwrap();
        host.write("bin/folder/x", "");
        host.write("bin/round", &format!("#!{}\n", host.at("bin/round").display()));
        for name in ["tool", "folder", "none", "", "./tool", "bin/tool"] {
            assert!(matches!(host.find(name), Err(ProgramError::NotFound { .. })), "{name}");
        }
        assert!(matches!(host.find("round"), Err(ProgramError::TooDeep { .. })));
    }
}
