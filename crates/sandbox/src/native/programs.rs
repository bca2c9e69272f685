//! A list of programs, as what PID 1 looks up: in which directories, and what goes with a few of them.

use super::StartError;
use crate::run::RUNNER_INSIDE;
use crate::spec::SandboxSpec;
use belljar_confine::plan::programs::Programs;
use belljar_contract::programs::ProgramList;

/// Directories in which programs are looked up: those of [`super::SEARCH_PATH`], relative to the root.
const DIRECTORIES: [&str; 6] = ["usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"];

/// Further directories in which there are programs and nothing that others read.
const CLOSED: [&str; 4] = ["usr/games", "usr/local/games", "usr/libexec", "usr/local/libexec"];

/// Programs that are made of several, and where the others are, in each of [`INSTALLED_IN`].
const PARTS: [(&str, &[&str]); 6] = [
    ("cc", COMPILER),
    ("c++", COMPILER),
    ("gcc", COMPILER),
    ("g++", COMPILER),
    ("git", &["lib/git-core", "libexec/git-core"]),
    ("go", &["lib/go/pkg/tool"]),
];

const COMPILER: &[&str] = &["lib/gcc", "libexec/gcc"];

/// Prefixes in which whole packages are installed: by the system, and by users that build them.
const INSTALLED_IN: [&str; 2] = ["usr", "usr/local"];

/// Why a list of programs can't be held here.
pub(super) const NO_LANDLOCK: &str = "this kernel has no Landlock (Linux 5.13 and newer, named in the boot parameter lsm=); run `belljar doctor` for details";

/// Returns the programs that may be started in that sandbox.
///
/// # Errors
/// [`StartError::NoLandlock`] where nothing would hold it.
pub(super) fn of(listed: &ProgramList, spec: &SandboxSpec) -> Result<Programs, StartError> {
    if belljar_confine::landlock_abi() == 0 {
        return Err(StartError::NoLandlock);
    }
    let owned = |places: &[&str]| places.iter().map(|&place| place.to_owned()).collect();
    let parts = PARTS.iter().filter(|(name, _)| listed.has(name)).flat_map(|(_, parts)| *parts);
    let installed = |part: &&str| INSTALLED_IN.map(|place| format!("{place}/{part}"));
    let runner = spec.provision.lent.iter().filter(|lent| lent.inside == RUNNER_INSIDE);
    Ok(Programs {
        names: listed.names().map(str::to_owned).collect(),
        directories: owned(&DIRECTORIES),
        closed: owned(&CLOSED),
        parts: parts.flat_map(installed).collect(),
        besides: runner.map(|lent| lent.inside.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{HostUser, SEARCH_PATH};
    use crate::provision::Provision;
    use crate::spec::Lent;
    use crate::state::StateDirectory;
    use belljar_files::host_path::HostPath;

    fn compiled(names: &[&str], lent: Vec<Lent>) -> Programs {
        let listed = ProgramList::new(names.iter().map(|&name| name.to_owned())).unwrap();
        let provision = Provision { lent, ..Provision::default() };
        let spec =
            SandboxSpec { provision, ..SandboxSpec::new(StateDirectory::new_id(), HostUser::choose()) };
        of(&listed, &spec).unwrap()
    }

    #[test]
    fn programs_are_looked_up_where_a_sandbox_looks_for_them() {
        let directories: Vec<String> = DIRECTORIES.iter().map(|place| format!("/{place}")).collect();
        assert_eq!(directories.join(":"), SEARCH_PATH);
    }

    #[test]
    fn only_a_program_that_is_on_the_list_brings_its_parts() {
        let of_git = ["usr/lib", "usr/local/lib", "usr/libexec", "usr/local/libexec"];
        let of_git = of_git.map(|place| format!("{place}/git-core"));
        assert_eq!(compiled(&["git", "sh"], Vec::new()).parts, of_git);
        assert_eq!(compiled(&["sh"], Vec::new()).parts, [""; 0]);
    }

    #[test]
    fn of_what_is_lent_the_runner_alone_can_be_started() {
        let at = |inside: &str| Lent {
            path: HostPath::resolve("/usr/bin/env").unwrap(),
            inside: inside.to_owned(),
        };
        let programs = compiled(&[], vec![at("opt/tool"), at(RUNNER_INSIDE)]);
        assert_eq!(programs.besides, [RUNNER_INSIDE]);
        assert!(compiled(&[], vec![at("opt/tool")]).besides.is_empty());
    }
}
