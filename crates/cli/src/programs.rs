//! Allowlist of programs that can be started in a sandbox, from the command line and the access level.

use crate::error::CliError;
use belljar_contract::programs::ProgramList;
use belljar_policy::access::compiled::{ProgramAccess, SandboxAccess};
use rustix::io::Errno;
use std::path::Path;

/// The list.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ProgramArguments {
    /// Allow only these programs, by name; the kernel refuses to start any other. An empty NAME allows none
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    programs: Vec<String>,
}

// === impl ProgramArguments ===

impl ProgramArguments {
    /// Returns the allowlist of programs; `None` if all programs can be started.
    pub(crate) fn listed(&self) -> Result<Option<ProgramList>, CliError> {
        if self.programs.is_empty() {
            return Ok(None);
        }
        let names = self.programs.iter().filter(|name| !name.is_empty()).cloned();
        list("--programs", names).map(Some)
    }

    /// Returns the allowlist for an agent with these access rules: the programs that `--programs` and the rules both permit.
    pub(crate) fn listed_for(&self, access: Option<&SandboxAccess>) -> Result<Option<ProgramList>, CliError> {
        let of_access = match access.map(|access| &access.programs) {
            None | Some(ProgramAccess::All) => None,
            Some(ProgramAccess::Only { names }) => Some(list("tool_access", names.iter().cloned())?),
        };
        Ok(match (self.listed()?, of_access) {
            (Some(asked), Some(allowed)) => Some(asked.and(&allowed)),
            (asked, allowed) => asked.or(allowed),
        })
    }

    /// Returns the list for this access, with the programs that tools run themselves.
    pub(crate) fn listed_with(
        &self,
        own: &[&str],
        access: Option<&SandboxAccess>,
    ) -> Result<Option<ProgramList>, CliError> {
        let listed = self.listed_for(access)?;
        let with_own = |listed: ProgramList| {
            let own = own.iter().map(|&name| name.to_owned());
            list("--programs", listed.names().map(str::to_owned).chain(own))
        };
        listed.map(with_own).transpose()
    }
}

fn list(origin: &str, names: impl Iterator<Item = String>) -> Result<ProgramList, CliError> {
    ProgramList::new(names).map_err(|error| CliError::usage(format!("{origin}: {error}")))
}

/// Returns a hint if a list of programs may be the reason why a program can't be run.
pub(crate) fn hint(program: &str, source: Errno, listed: Option<&ProgramList>) -> Option<String> {
    const SHOWN: usize = 12;
    let listed = listed.filter(|_| source == Errno::ACCESS)?;
    let name = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
    if name.is_some_and(|name| listed.has(&name)) {
        let hint = "a list of programs (--programs) means the files of the directories of programs, not those that were \
                    written or lent";
        return Some(hint.to_owned());
    }
    let (names, count): (Vec<&str>, _) = (listed.names().take(SHOWN).collect(), listed.names().count());
    let shown = match (names.join(", "), count.saturating_sub(SHOWN)) {
        (_, _) if names.is_empty() => "none".to_owned(),
        (names, 0) => names,
        (names, more) => format!("{names} and {more} more"),
    };
    Some(format!("it is not on this sandbox's list of programs (--programs, or a level of access): {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> ProgramList {
        list("--programs", names.iter().map(|&name| name.to_owned())).unwrap()
    }

    #[test]
    fn program_refused_by_the_allowlist_gets_a_hint() {
        let list = listed(&["sh", "ls"]);
        assert_eq!(
            hint("/usr/bin/cat", Errno::ACCESS, Some(&list)).unwrap(),
            "it is not on this sandbox's list of programs (--programs, or a level of access): ls, sh"
        );
        let written = hint("/workspace/sh", Errno::ACCESS, Some(&list)).unwrap();
        assert!(written.starts_with("a list of programs"), "{written}");
        assert!(hint("cat", Errno::ACCESS, Some(&listed(&[]))).unwrap().ends_with(": none"));
        assert_eq!(hint("cat", Errno::NOENT, Some(&list)), None);
        assert_eq!(hint("cat", Errno::ACCESS, None), None);
    }

    #[test]
    fn program_list_from_arguments_is_parsed() {
        let of = |names: &[&str]| ProgramArguments {
            programs: names.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(of(&[]).listed_for(None).unwrap(), None);
        assert_eq!(of(&[""]).listed_for(None).unwrap(), Some(listed(&[])));
        assert_eq!(of(&["sh", "ls"]).listed_for(None).unwrap(), Some(listed(&["ls", "sh"])));
        assert!(
            of(&["/bin/sh"])
                .listed_for(None)
                .unwrap_err()
                .to_string()
                .contains("--programs: invalid program name \"/bin/sh\"")
        );
    }
}
