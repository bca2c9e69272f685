//! The command line of `cynode-sba`.

use crate::workbench::tree::TransferDirection;
use belljar_contract::workbench;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Request of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// Run a job.
    Run(Options),
    /// Perform the request on stdin, for a tool.
    Workbench,
    /// Transfer a tree into the workspace or out of it, for a tool.
    Tree { way: TransferDirection, directory: String },
    /// Print the usage.
    Help,
    /// Print the version.
    Version,
}

/// Options: the job's source and the outcome's destination.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Transport of the job and the result.
    pub(crate) transport: Transport,
    /// The directory that steps work in.
    pub(crate) workspace: PathBuf,
    /// The directory whose files are kept.
    pub(crate) artifacts: PathBuf,
    /// Log the output of running commands.
    pub(crate) progress: bool,
    /// Allow root to run the job.
    pub(crate) allow_root: bool,
}

/// Transport of the job and the result (`docs/contracts/job.md#j2`).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Both are files; the log goes to stdout.
    Files {
        /// The job.
        job: PathBuf,
        /// The result.
        result: PathBuf,
    },
    /// The job is read from stdin, the result goes to stdout, the log to stderr.
    Stdio,
}

/// A command line that can't be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvocationError {
    #[error("unknown argument {}", argument.display())]
    Unknown { argument: OsString },
    #[error("{flag} needs a value")]
    NoValue { flag: &'static str },
    #[error("{flag} takes no value")]
    UnwantedValue { flag: String },
    #[error("{flag} is given twice")]
    Repeated { flag: &'static str },
    #[error("{flag} cannot be combined with --stdin")]
    BesideStdin { flag: &'static str },
}

/// Text of `--help`.
pub(crate) const USAGE: &str = "\
Runs one job and writes its result.

Usage: cynode-sba [OPTIONS]

  --job FILE        job document [default: /job/job.json]
  --result FILE     path of the result [default: /job/result.json]
  --workspace DIR   working directory of the steps [default: /workspace]
  --artifacts DIR   directory whose files are kept as artifacts [default: /job/artifacts]
  --stdin           read the job from stdin, write the result to stdout and the log to stderr
  --progress        log the last output line of a running command, a few times a second
  --allow-root      allow running as root; for tests only
  --version         print the version
  --help            print this help

Exit codes: 0 success, 1 failure, 2 malformed job, 124 timeout.
";

/// The paths as they are given, in the order of [`PATH_FLAGS`].
#[derive(Default)]
struct ParsedArguments {
    paths: [Option<PathBuf>; PATH_FLAGS.len()],
    stdin: bool,
    progress: bool,
    allow_root: bool,
}

/// Options without a value.
const FLAGS: [&str; 5] = ["--stdin", "--progress", "--allow-root", "--help", "--version"];

const PATH_FLAGS: [&str; 4] = ["--job", "--result", "--workspace", "--artifacts"];

// === impl Invocation ===

impl Invocation {
    /// Reads the arguments that follow the program's name.
    pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, InvocationError> {
        let mut given = ParsedArguments::default();
        let mut arguments = arguments.peekable();
        if arguments.peek().is_some_and(|first| first == workbench::SUBCOMMAND) {
            arguments.next();
            return match arguments.next() {
                Some(argument) => Err(InvocationError::Unknown { argument }),
                None => Ok(Self::Workbench),
            };
        }
        let ways =
            [(workbench::PUT_TREE, TransferDirection::Put), (workbench::TAKE_TREE, TransferDirection::Take)];
        let way = arguments.peek().and_then(|first| ways.into_iter().find(|(name, _)| first == *name));
        if let Some((flag, way)) = way {
            return Self::tree((flag, way), arguments.skip(1));
        }
        while let Some(argument) = arguments.next() {
            let (flag, value) = split(&argument);
            if let Some(place) = PATH_FLAGS.iter().position(|known| OsStr::new(known) == flag) {
                let value = value.map(OsStr::to_owned).or_else(|| arguments.next());
                given.take_path(place, value)?;
                continue;
            }
            let is_known = flag.to_str().is_some_and(|flag| FLAGS.contains(&flag));
            if is_known && value.is_some() {
                return Err(InvocationError::UnwantedValue { flag: flag.display().to_string() });
            }
            match flag.to_str() {
                Some("--stdin") => given.stdin = true,
                Some("--progress") => given.progress = true,
                Some("--allow-root") => given.allow_root = true,
                Some("--help" | "-h") => return Ok(Self::Help),
                Some("--version" | "-V") => return Ok(Self::Version),
                _ => return Err(InvocationError::Unknown { argument }),
            }
        }
        given.into_options().map(Self::Run)
    }

    fn tree(
        (flag, way): (&'static str, TransferDirection),
        mut arguments: impl Iterator<Item = OsString>,
    ) -> Result<Self, InvocationError> {
        let directory = arguments.next().and_then(|directory| directory.into_string().ok());
        let directory = directory.ok_or(InvocationError::NoValue { flag })?;
        match arguments.next() {
            Some(argument) => Err(InvocationError::Unknown { argument }),
            None => Ok(Self::Tree { way, directory }),
        }
    }
}

/// `--flag=value` in its two parts.
fn split(argument: &OsStr) -> (&OsStr, Option<&OsStr>) {
    use std::os::unix::ffi::OsStrExt;
    let bytes = argument.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(at) if bytes.starts_with(b"--") => {
            (OsStr::from_bytes(&bytes[..at]), Some(OsStr::from_bytes(&bytes[at + 1..])))
        }
        _ => (argument, None),
    }
}

// === impl ParsedArguments ===

impl ParsedArguments {
    fn take_path(&mut self, place: usize, value: Option<OsString>) -> Result<(), InvocationError> {
        let flag = PATH_FLAGS[place];
        let value = value.filter(|value| !value.is_empty()).ok_or(InvocationError::NoValue { flag })?;
        match self.paths[place].replace(PathBuf::from(value)) {
            None => Ok(()),
            Some(_) => Err(InvocationError::Repeated { flag }),
        }
    }

    fn into_options(self) -> Result<Options, InvocationError> {
        let [job, result, workspace, artifacts] = self.paths;
        let or = |path: Option<PathBuf>, default: &str| path.unwrap_or_else(|| Path::new(default).to_owned());
        let transport = match (self.stdin, &job, &result) {
            (true, Some(_), _) => return Err(InvocationError::BesideStdin { flag: "--job" }),
            (true, _, Some(_)) => return Err(InvocationError::BesideStdin { flag: "--result" }),
            (true, None, None) => Transport::Stdio,
            (false, ..) => {
                Transport::Files { job: or(job, "/job/job.json"), result: or(result, "/job/result.json") }
            }
        };
        Ok(Options {
            transport,
            workspace: or(workspace, belljar_contract::path::WORKSPACE),
            artifacts: or(artifacts, "/job/artifacts"),
            progress: self.progress,
            allow_root: self.allow_root,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Invocation, InvocationError> {
        Invocation::parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn command_line_without_arguments_uses_the_default_paths() {
        let expected = Options {
            transport: Transport::Files { job: "/job/job.json".into(), result: "/job/result.json".into() },
            workspace: "/workspace".into(),
            artifacts: "/job/artifacts".into(),
            progress: false,
            allow_root: false,
        };
        assert_eq!(parse(&[]), Ok(Invocation::Run(expected)));
    }

    #[test]
    fn option_value_follows_its_flag_or_an_equals_sign() {
        let apart = parse(&["--workspace", "/w", "--job", "j=1"]);
        assert_eq!(apart, parse(&["--workspace=/w", "--job=j=1"]));
        assert!(matches!(apart, Ok(Invocation::Run(options)) if options.workspace == Path::new("/w")));
    }

    #[test]
    fn invalid_command_line_is_refused_with_the_reason() {
        for (arguments, message) in [
            (&["--jbo"][..], "unknown argument --jbo"),
            (&["workbench", "--job"], "unknown argument --job"),
            (&["--stdin", "workbench"], "unknown argument workbench"),
            (&["job.json"], "unknown argument job.json"),
            (&["--job"], "--job needs a value"),
            (&["--job="], "--job needs a value"),
            (&["--stdin=yes"], "--stdin takes no value"),
            (&["--job", "a", "--job", "b"], "--job is given twice"),
            (&["--stdin", "--result", "r"], "--result cannot be combined with --stdin"),
        ] {
            assert_eq!(parse(arguments).unwrap_err().to_string(), message);
        }
    }
}
