//! A kernel other than the host's: Debian's kernel for virtual machines, without installing it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A kernel and its modules.
#[derive(Debug)]
pub struct Kernel {
    folder: PathBuf,
}

/// The reason why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The folder for kernels can't be used.
    #[error("can't use {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A program failed.
    #[error("{program}: {complaint}")]
    Program {
        /// The program.
        program: &'static str,
        /// The last line of its output.
        complaint: String,
    },
    /// A package lacks a file.
    #[error("there is no {what} in the package")]
    Missing {
        /// The missing file.
        what: String,
    },
}

/// The package that always depends on the newest of these kernels.
const NEWEST: &str = "linux-image-cloud-amd64";

// === impl Kernel ===

impl Kernel {
    /// Returns the newest kernel in this system's package lists, which is downloaded once per checkout.
    ///
    /// # Errors
    /// [`KernelError`], for instance without network.
    pub fn of_debian() -> Result<Self, KernelError> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kernels");
        let at = |source| KernelError::Folder { path: folder.clone(), source };
        std::fs::create_dir_all(&folder).map_err(at)?;
        let lock = File::create(folder.join("lock")).map_err(at)?;
        lock.lock().map_err(at)?;
        let kernel = folder.join("debian");
        if !kernel.exists() {
            let partial = folder.join("partial");
            let _ = std::fs::remove_dir_all(&partial);
            std::fs::create_dir(&partial).map_err(at)?;
            download(&partial)?;
            std::fs::rename(&partial, &kernel).map_err(at)?;
        }
        Ok(Self { folder: kernel })
    }

    /// Returns the kernel image.
    ///
    /// # Errors
    /// [`KernelError`] if the package has none.
    pub fn image(&self) -> Result<PathBuf, KernelError> {
        let is_image = |path: &Path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vmlinuz-"))
        };
        self.find(&self.folder.join("boot"), &is_image).ok_or_else(|| missing("kernel"))
    }

    /// Returns these modules, each after its dependencies.
    ///
    /// # Errors
    /// [`KernelError`] for a missing module.
    pub fn modules(&self, names: &[&str]) -> Result<Vec<PathBuf>, KernelError> {
        let mut ordered = Vec::new();
        for name in names {
            self.add_module(name, &mut ordered)?;
        }
        Ok(ordered)
    }

    fn add_module(&self, name: &str, ordered: &mut Vec<PathBuf>) -> Result<(), KernelError> {
        let file = format!("{name}.ko");
        let is_module = |path: &Path| path.file_name().is_some_and(|name| name == file.as_str());
        let path = self.find(&self.folder.join("lib/modules"), &is_module).ok_or_else(|| missing(&file))?;
        if ordered.contains(&path) {
            return Ok(());
        }
        let module =
            std::fs::read(&path).map_err(|source| KernelError::Folder { path: path.clone(), source })?;
        for needed in needs(&module) {
            self.add_module(&needed, ordered)?;
        }
        ordered.push(path);
        Ok(())
    }

    fn find(&self, below: &Path, is_it: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
        let listed = std::fs::read_dir(below).ok()?.filter_map(Result::ok).map(|entry| entry.path());
        let (directories, files): (Vec<PathBuf>, Vec<PathBuf>) =
            listed.filter(|path| !path.is_symlink()).partition(|path| path.is_dir());
        let found = files.into_iter().find(|path| is_it(path));
        found.or_else(|| directories.iter().find_map(|directory| self.find(directory, is_it)))
    }
}

/// Returns the dependencies that a module declares. Only an installed kernel has a table of them.
fn needs(module: &[u8]) -> Vec<String> {
    const FIELD: &[u8] = b"\0depends=";
    let Some(at) = module.windows(FIELD.len()).position(|window| window == FIELD) else { return Vec::new() };
    let value = module[at + FIELD.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let value = String::from_utf8_lossy(value);
    value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn download(folder: &Path) -> Result<(), KernelError> {
    let shown = run("apt-cache", Command::new("apt-cache").args(["show", "--no-all-versions", NEWEST]))?;
    let package = shown.lines().find_map(|line| line.strip_prefix("Depends: "));
    let package = package.and_then(|depends| depends.split([' ', ',']).next());
    let package = package.ok_or_else(|| missing("package that it stands for"))?;
    run("apt-get", Command::new("apt-get").args(["download", package]).current_dir(folder))?;
    let archives = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut archives =
        archives.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "deb"));
    let archive = archives.next().ok_or_else(|| missing("archive"))?;
    run("dpkg-deb", Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
    std::fs::remove_file(&archive).map_err(|source| KernelError::Folder { path: archive, source })
}

fn run(program: &'static str, command: &mut Command) -> Result<String, KernelError> {
    let failed = |complaint: String| KernelError::Program { program, complaint };
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(failed(said.lines().last().unwrap_or("failed in silence").to_owned()))
        }
    }
}

fn missing(what: &str) -> KernelError {
    KernelError::Missing { what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_module_lists_its_dependencies() {
        assert_eq!(needs(b"\x7fELF\0license=GPL\0depends=a,b_c\0name=x\0"), ["a", "b_c"]);
        assert!(needs(b"\x7fELF\0depends=\0name=x\0").is_empty());
        assert!(needs(b"\x7fELF").is_empty());
    }
}
