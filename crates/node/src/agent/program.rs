//! Where an agent's program is on the host, and what of the host a sandbox must see so that it starts there.
//!
//! A program of the system is seen anyway. Of others exactly this is lent, at the same place: the file itself; all of
//! `node_modules` if it is in one; the whole environment if it is in one of Python's; and what its first line says it is
//! interpreted by. What an installation needs besides has to be lent by whoever asks for it.

use belljar_sandbox::native::{SEARCH_PATH, shows};
use belljar_sandbox::spec::{LendError, Lent};
use belljar_trusted::command::trusted_search_path;
use belljar_trusted::given_path::{self, GivenPathError, Tree};
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that can be started in a sandbox.
#[derive(Debug, Clone)]
pub struct Installed {
    /// What is started, with what stands before its arguments.
    pub command: Vec<OsString>,
    /// What has to be lent for that.
    pub lent: Vec<Lent>,
    /// Where programs are looked for inside.
    pub search_path: String,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error("there is no program {} on this host's PATH", name.display())]
    NotFound {
        /// Its name.
        name: OsString,
    },
    /// What is there can't be looked at.
    #[error("can't read {}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It can't be lent.
    #[error(transparent)]
    Lend(#[from] LendError),
    /// A sandbox or another user decides what it is, and so what of the host is lent.
    #[error("can't start {} in a sandbox", name.display())]
    Untrusted {
        /// Its name.
        name: OsString,
        /// Why.
        #[source]
        source: UntrustedFileError,
    },
    /// A link to it may be a sandbox's.
    #[error("can't start {} in a sandbox", name.display())]
    Link {
        /// Its name.
        name: OsString,
        /// Why.
        #[source]
        source: Box<GivenPathError>,
    },
    /// A program that a sandbox can have written would choose what else of the host is lent.
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
        /// What its first line names.
        interpreter: PathBuf,
    },
    /// One interprets the other without end.
    #[error("{} is interpreted by too many programs", path.display())]
    TooDeep {
        /// The path.
        path: PathBuf,
    },
}

/// What is gathered on the way.
#[derive(Debug, Default)]
struct Gathered {
    lent: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

const MOST_INTERPRETERS: usize = 3;

/// The longest first line that a kernel reads.
const LONGEST_LINE: u64 = 256;

// === impl Installed ===

impl Installed {
    /// Looks for a program as a shell with this `PATH` would.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn find(name: &OsStr, search_path: &OsStr) -> Result<Self, ProgramError> {
        let mut gathered = Gathered::default();
        let command = gathered.resolve(name, search_path, 0)?;
        let lent = gathered.lent.iter().map(|path| Lent::at_its_place(path)).collect::<Result<_, _>>()?;
        let folders = gathered.folders.iter().filter_map(|folder| folder.to_str());
        let folders = folders.filter(|folder| !folder.contains(':')).chain([SEARCH_PATH]);
        Ok(Self { command, lent, search_path: folders.collect::<Vec<_>>().join(":") })
    }

    /// One of an image: it is looked for when it is started, and nothing has to be lent.
    pub fn in_image(name: OsString) -> Self {
        Self { command: vec![name], lent: Vec::new(), search_path: SEARCH_PATH.to_owned() }
    }
}

/// Where a program is, as a shell with this `PATH` would find it. Directories are passed over in which a sandbox or another user can put
/// programs.
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
    // A relative folder would mean another one in another place.
    trusted_search_path(search_path).into_iter().map(|folder| folder.join(name)).find(is_program)
}

// === impl Untrusted ===

impl Untrusted {
    fn about(self, name: &OsStr) -> ProgramError {
        let name = name.to_owned();
        match self {
            Self::File(source) => ProgramError::Untrusted { name, source },
            Self::Link(source) => ProgramError::Link { name, source: Box::new(source) },
        }
    }
}

// === impl Gathered ===

impl Gathered {
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
        // The link in such an environment is what tells it that it is in one.
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

/// Why a program decides nothing.
enum Untrusted {
    File(UntrustedFileError),
    Link(GivenPathError),
}

/// Checks that no sandbox can replace a program, a link to it or a directory on the way, and that no link of one that has ended leads to
/// what is to be lent. A link in an environment of Python leads out of a work tree as a rule.
fn check(found: &Path, real: &Path) -> Result<(), Untrusted> {
    trusted_file::look_at(found).map_err(Untrusted::File)?;
    match given_path::resolve(found) {
        Err(GivenPathError::Planted { kind: Tree::WorkTree, .. }) => Ok(()),
        Err(GivenPathError::Planted { .. }) if shows(real) => Ok(()),
        Err(error) => Err(Untrusted::Link(error)),
        Ok(_) => Ok(()),
    }
}

/// Checks that a program which a sandbox can have written has nothing lent by its first line but what is in the same directory.
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

/// The environment of Python that a program is in.
fn venv(program: &Path) -> Option<PathBuf> {
    let folder = program.parent().filter(|folder| folder.ends_with("bin"))?.parent()?;
    folder.join("pyvenv.cfg").is_file().then(|| folder.to_owned())
}

/// What of the host a file is installed with.
fn installation(path: &Path) -> PathBuf {
    let modules = path.ancestors().filter(|above| above.file_name() == Some(OsStr::new("node_modules")));
    modules.last().unwrap_or(path).to_owned()
}

struct Interpreted {
    program: OsString,
    arguments: Vec<OsString>,
}

/// Who interprets a file, if its first line says so.
fn interpreter(path: &Path) -> std::io::Result<Option<Interpreted>> {
    let mut head = Vec::new();
    File::open(path)?.take(LONGEST_LINE).read_to_end(&mut head)?;
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = || words.next().map(|word| OsStr::from_bytes(word).to_owned());
    let Some(program) = word() else { return Ok(None) };
    if Path::new(&program).file_name() != Some(OsStr::new("env")) {
        return Ok(Some(Interpreted { program, arguments: word().into_iter().collect() }));
    }
    let first = match word() {
        Some(option) if option == "-S" => word(),
        first => first,
    };
    Ok(first.map(|program| Interpreted { program, arguments: std::iter::from_fn(word).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Host(tempfile::TempDir);

    impl Host {
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

        /// The command, and what is lent, with the host's folder as `~`.
        fn find(&self, name: &str) -> Result<(Vec<String>, Vec<String>), ProgramError> {
            let search_path = format!("relative:{}:/usr/bin:/bin", self.at("bin").display());
            let found = Installed::find(OsStr::new(name), OsStr::new(&search_path))?;
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
    fn a_program_of_the_system_is_there_already() {
        let (command, lent) = Host::new().find("true").unwrap();
        assert!(command[0].starts_with("/usr/bin/") || command[0].starts_with("/bin/"), "{command:?}");
        assert_eq!(lent, texts(&[]));
    }

    #[test]
    fn a_program_alone_is_lent_alone() {
        let host = Host::new();
        host.write("share/tool/1.2/tool", "\x7fELF");
        host.write("share/tool/1.2/secret", "");
        host.link("bin/tool", "../share/tool/1.2/tool");
        let file = texts(&["~/share/tool/1.2/tool"]);
        assert_eq!(host.find("tool").unwrap(), (file.clone(), file));
    }

    #[test]
    fn a_package_of_npm_comes_with_all_that_is_installed_beside_it_and_with_node() {
        let host = Host::new();
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
    fn an_environment_of_python_is_lent_whole_and_started_by_its_own_name() {
        let host = Host::new();
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
    fn what_is_no_program_is_not_found() {
        let host = Host::new();
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
