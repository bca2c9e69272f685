//! Arguments for the workspace, bind mounts, variables and limits of a sandbox, shared by `run` and `exec`.

use crate::configuration::{self, Configuration};
use crate::error::CliError;
use crate::limits::LimitArguments;
use crate::programs::ProgramArguments;
use crate::state;
use crate::trusted_files;
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::programs::ProgramList;
use belljar_files::host_path::HostPath;
use belljar_policy::access::compiled::SandboxAccess;
use belljar_sandbox::backends::chosen::BackendChoice;
use belljar_sandbox::config::BackendName;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Lent;
use belljar_trusted::given_path::{self, CheckedPath, CheckedPathError};
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SandboxArguments {
    /// Work on this directory, read-write
    #[arg(long, value_name = "DIR", conflicts_with = "workspace_copy")]
    workspace: Option<PathBuf>,
    /// Work on a copy of this directory; the directory itself is never changed
    #[arg(long, value_name = "DIR")]
    workspace_copy: Option<PathBuf>,
    #[command(flatten)]
    allowance: AllowanceArguments,
}

/// Mounts, variables and other resources of a sandbox, independent of its workspace.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AllowanceArguments {
    /// Mount a file or directory read-only, at the same path inside or at INSIDE
    #[arg(long, value_name = "PATH[:INSIDE]")]
    ro: Vec<OsString>,
    /// Set a variable inside; without a value, the one of this environment
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]", value_parser = parse_variable)]
    env: Vec<(String, String)>,
    /// Kill everything in the sandbox after this long, such as 90, 90s, 5m, 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) programs: ProgramArguments,
    #[command(flatten)]
    limits: LimitArguments,
}

// === impl SandboxArguments ===

impl SandboxArguments {
    /// Returns the choice of the directory at `/workspace`.
    pub(crate) fn workspace(&self) -> Result<WorkspaceChoice, CliError> {
        let workspace = match (&self.workspace, &self.workspace_copy) {
            (Some(path), _) => WorkspaceChoice::Direct(directory(path)?),
            (_, Some(path)) => WorkspaceChoice::Copy(directory(path)?),
            (None, None) => WorkspaceChoice::Empty,
        };
        trusted_files::lend(&workspace)?;
        Ok(workspace)
    }

    /// Returns what the sandbox is given by the command line, besides hatches.
    pub(crate) fn provision(&self, backend: &BackendChoice) -> Result<Provision, CliError> {
        let (limits, required) = (self.limits(backend)?, self.required_of(backend)?);
        self.allowance.provision(limits, required)
    }

    /// Returns the additional read-only mounts (`--ro`).
    pub(crate) fn lent(&self) -> Result<Vec<Lent>, CliError> {
        self.allowance.lent()
    }

    /// Returns the environment variables to set in the sandbox.
    pub(crate) fn env(&self) -> BTreeMap<String, String> {
        self.allowance.env()
    }

    /// Returns the allowlist of programs; `None` if all programs can be started.
    pub(crate) fn programs(&self) -> Result<Option<ProgramList>, CliError> {
        self.allowance.programs.listed()
    }

    /// Returns the allowlist of programs for an agent with these access rules.
    pub(crate) fn programs_for(
        &self,
        access: Option<&SandboxAccess>,
    ) -> Result<Option<ProgramList>, CliError> {
        self.allowance.programs.listed_for(access)
    }

    /// Returns the resource limits of the sandbox.
    pub(crate) fn limits(&self, backend: &BackendChoice) -> Result<Limits, CliError> {
        Ok(self.allowance.limits.limits(usual(backend.name())?.0, self.workspace.is_some()))
    }

    /// Returns the isolation layers without which no sandbox is created. Limits given on the command line are required, too.
    pub(crate) fn required_of(&self, backend: &BackendChoice) -> Result<RequiredLayers, CliError> {
        self.allowance.required_of(backend)
    }

    /// Returns the maximum lifetime of the sandbox.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.allowance.timeout
    }
}

// === impl AllowanceArguments ===

impl AllowanceArguments {
    /// Returns what a sandbox with these limits is given by the command line, besides hatches.
    pub(crate) fn provision(&self, limits: Limits, required: RequiredLayers) -> Result<Provision, CliError> {
        let (lent, env, programs) = (self.lent()?, self.env(), self.programs.listed()?);
        Ok(Provision { lent, env, programs, limits, required, ..Provision::default() })
    }

    /// Returns the additional read-only mounts (`--ro`).
    pub(crate) fn lent(&self) -> Result<Vec<Lent>, CliError> {
        self.ro.iter().map(lent).collect()
    }

    /// Returns the environment variables to set in the sandbox.
    pub(crate) fn env(&self) -> BTreeMap<String, String> {
        self.env.iter().cloned().collect()
    }

    /// Returns the resource limits of a sandbox that works on a copy.
    pub(crate) fn limits(&self, backend: &BackendChoice) -> Result<Limits, CliError> {
        Ok(self.limits.limits(usual(backend.name())?.0, false))
    }

    /// Returns the resource limits with `usual` as the defaults.
    pub(crate) fn limits_over(&self, usual: Limits) -> Limits {
        self.limits.over(usual)
    }

    /// Returns the isolation layers without which no sandbox is created. Limits given on the command line are required, too.
    pub(crate) fn required_of(&self, backend: &BackendChoice) -> Result<RequiredLayers, CliError> {
        self.required_in(backend.name())
    }

    /// Returns the required isolation layers for a backend of which only the name is known.
    pub(crate) fn required_in(&self, backend: BackendName) -> Result<RequiredLayers, CliError> {
        Ok(self.limits.required_with_limits()?.and(&usual(backend)?.1))
    }

    /// Returns the maximum lifetime of the sandbox.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// Returns the configured limits and required layers of a backend, for use where the command line sets none. Without a `sandboxing`
/// section, containers and subprocesses have the defaults.
fn usual(backend: BackendName) -> Result<(Limits, RequiredLayers), CliError> {
    let says = |configured: &Configuration| configured.has_sandboxing || backend == BackendName::Native;
    let configured = configuration::current()?.filter(says);
    let of_backend = |configured: Configuration| {
        let sandboxing = configured.sandboxing.sandboxing;
        (sandboxing.limits_of(backend), sandboxing.required_of(backend))
    };
    Ok(configured.map(of_backend).unwrap_or_default())
}

/// Opens a directory of the host. Refuses the root directory.
pub(crate) fn directory(path: &Path) -> Result<HostPath, CliError> {
    if path.components().eq([Component::RootDir]) {
        return Err(CliError::usage(
            "the root directory can't be a workspace: it holds what Belljar itself runs on, and file systems that can't be lent; name the directory of a project".to_owned(),
        ));
    }
    // Resolved immediately, so that the directory mounted is the present one and not the target of a link changed later.
    let found = given(path)?;
    let path = HostPath::of_opened(found.real, &found.opened)?;
    match path.is_directory() {
        true => Ok(path),
        false => Err(CliError::usage(format!("{} is not a directory", crate::output::path(path.as_path())))),
    }
}

/// Resolves a path of the command line. Refuses a path that a sandbox may have redirected.
fn given(path: &Path) -> Result<CheckedPath, CliError> {
    state::open();
    given_path::resolve(path).map_err(|error| not_followed(path, error))
}

/// Resolves a path that is to be created: returns its existing part and the missing remainder. Refuses a path that a sandbox may have
/// redirected.
pub(crate) fn given_place(path: &Path) -> Result<(CheckedPath, PathBuf), CliError> {
    state::open();
    given_path::resolve_as_far(path).map_err(|error| not_followed(path, error))
}

/// Returns the path of a file that is to be created or replaced, with all links in its parent resolved.
pub(crate) fn given_target(path: &Path) -> Result<PathBuf, CliError> {
    let Some(name) = path.file_name() else { return Ok(path.to_owned()) };
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(given(above)?.real.join(name))
}

fn not_followed(path: &Path, error: CheckedPathError) -> CliError {
    match error {
        CheckedPathError::Look { source, .. } => CliError::read(path, source.into()),
        error => CliError::usage(error.to_string()),
    }
}

fn lent(argument: &OsString) -> Result<Lent, CliError> {
    let text = argument.to_str().ok_or_else(|| CliError::usage("--ro takes UTF-8 text".to_owned()))?;
    let (outside, inside) = match text.rsplit_once(':') {
        Some((outside, inside)) if !outside.is_empty() && inside.starts_with('/') => (outside, Some(inside)),
        _ => (text, None),
    };
    let found = given(Path::new(outside))?;
    let absolute =
        std::path::absolute(outside).map_err(|source| CliError::read(Path::new(outside), source))?;
    let inside = inside.map_or(absolute, PathBuf::from);
    let kind = found.kind().map_err(|errno| CliError::read(Path::new(outside), errno.into()))?;
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Err(CliError::usage(format!(
            "{outside} is neither a file nor a directory: it can't be lent"
        )));
    }
    Ok(Lent { path: HostPath::of_opened(found.real, &found.opened)?, inside: inside_root(&inside)? })
}

/// Returns a path relative to the sandbox's root. Refuses paths that would cover the sandbox's own mounts.
fn inside_root(inside: &Path) -> Result<String, CliError> {
    let refused =
        |why: &str| CliError::usage(format!("can't lend at {}: {why}", crate::output::path(inside)));
    let mut components = Vec::new();
    for component in inside.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                components.push(name.to_str().ok_or_else(|| refused("it is not UTF-8"))?);
            }
            Component::ParentDir | Component::Prefix(_) => return Err(refused("it contains `..`")),
        }
    }
    match components.first() {
        None => Err(refused("that is the whole root")),
        Some(&("proc" | "dev" | "job")) => Err(refused("the sandbox has its own there")),
        Some(_) => Ok(components.join("/")),
    }
}

pub(crate) fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (text, std::env::var(text).map_err(|_| format!("{text} is not set in this environment"))?),
    };
    match name.is_empty() || name.contains('\0') || value.contains('\0') {
        true => Err("expected NAME=VALUE or NAME".to_owned()),
        false => Ok((name.to_owned(), value)),
    }
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a positive number of seconds, or one with s, m or h, not {text:?}");
    let (digits, unit) = match text.char_indices().find(|(_, c)| !c.is_ascii_digit() && *c != '.') {
        Some((at, _)) => text.split_at(at),
        None => (text, "s"),
    };
    let number: f64 = digits.parse().map_err(|_| expected())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(expected()),
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero()).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_units() {
        assert_eq!(parse_duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "0", "-1", "1d", "s", "1e9h", "1 s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mount_over_a_built_in_sandbox_path_is_refused() {
        assert_eq!(inside_root(Path::new("/opt/tool")).unwrap(), "opt/tool");
        for refused in ["/", "/proc", "/dev/null", "/job/x", "/a/../etc"] {
            assert!(inside_root(Path::new(refused)).is_err(), "{refused}");
        }
    }
}
