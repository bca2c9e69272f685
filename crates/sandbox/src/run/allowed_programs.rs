//! The programs that a job allows itself (`constraints.allowed_commands`), as a list that the kernel holds for its whole sandbox.
//!
//! The runner compares what a step names. Without a list for the sandbox, a program that the job allows could start any other.

use super::RunError;
use crate::backend::BackendError;
use crate::enclosure::EnclosureError;
use crate::native::StartError;
use belljar_contract::job::Job;
use belljar_contract::programs::{ParseProgramsError, ProgramList};

/// Why a job's list can't be held.
#[derive(Debug, thiserror::Error)]
pub(super) enum AllowedProgramsError {
    /// A program by a path: programs are held by name, in the directories of programs.
    #[error(
        "constraints.allowed_commands: {command:?} is a path outside of the program directories; name a program in {}, \
         such as \"sh\", and give it the file as an argument",
        DIRECTORIES.join(", ")
    )]
    Path {
        /// The command as the job has it.
        command: String,
    },
    /// A name that is no program's.
    #[error("constraints.allowed_commands")]
    Name(#[from] ParseProgramsError),
}

/// Directories of programs, as steps may name them in full.
const DIRECTORIES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The only programs that can be started in the sandbox of a job: those that its caller lists, and of them those that the job
/// lists. `None` where neither does.
pub(super) fn of_job(
    given: Option<ProgramList>,
    job: &Job,
) -> Result<Option<ProgramList>, AllowedProgramsError> {
    let Some(allowed) = &job.constraints.allowed_commands else { return Ok(given) };
    let names = allowed.iter().map(|command| name(command)).collect::<Result<Vec<_>, _>>()?;
    let of_job = ProgramList::new(names)?;
    Ok(Some(given.map_or(of_job.clone(), |given| given.and(&of_job))))
}

fn name(command: &str) -> Result<String, AllowedProgramsError> {
    let name = match command.rsplit_once('/') {
        None => Some(command),
        Some((directory, name)) if DIRECTORIES.contains(&directory) => Some(name),
        Some(_) => None,
    };
    name.map(str::to_owned).ok_or_else(|| AllowedProgramsError::Path { command: command.to_owned() })
}

/// Returns true if a sandbox was not made because it can't enforce a list of programs.
pub(super) fn cannot_be_held(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Sandbox(
            EnclosureError::Start(StartError::NoLandlock)
                | EnclosureError::Container(BackendError::Programs { .. })
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(allowed: &str, given: Option<&[&str]>) -> Result<Option<Vec<String>>, AllowedProgramsError> {
        let job = format!(
            r#"{{"protocol_version": "1.0",
                "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
                "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
                "constraints": {{"max_runtime_seconds": 10, "max_output_bytes": 1000 {allowed}}},
                "steps": []}}"#
        );
        let given = given.map(|names| ProgramList::new(names.iter().map(|&name| name.to_owned())).unwrap());
        let list = of_job(given, &Job::parse(job.as_bytes()).unwrap())?;
        Ok(list.map(|list| list.names().map(str::to_owned).collect()))
    }

    #[test]
    fn job_lists_programs_by_name_or_by_their_place_and_never_more_than_its_caller() {
        let sh_and_ls = r#", "allowed_commands": ["sh", "/usr/bin/ls"]"#;
        assert_eq!(listed(sh_and_ls, None).unwrap().unwrap(), ["ls", "sh"]);
        assert_eq!(listed(sh_and_ls, Some(&["sh", "cat"])).unwrap().unwrap(), ["sh"]);
        assert_eq!(listed(r#", "allowed_commands": []"#, None).unwrap().unwrap(), [""; 0]);
        assert_eq!(listed("", Some(&["sh"])).unwrap().unwrap(), ["sh"]);
        assert_eq!(listed("", None).unwrap(), None);
    }

    #[test]
    fn program_of_the_workspace_is_refused_with_what_would_do() {
        for command in ["./run.sh", "target/x", "/workspace/x", "/"] {
            let refused = listed(&format!(r#", "allowed_commands": ["{command}"]"#), None).unwrap_err();
            let text = refused.to_string();
            assert!(text.contains(command) || matches!(refused, AllowedProgramsError::Name(_)), "{text}");
        }
    }
}
