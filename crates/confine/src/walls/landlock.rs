//! Landlock: a second lock on the files, and on signals and abstract sockets, that holds even if a mount did not.

mod readable;

use super::{WallError, programs};
use crate::kernel::landlock_abi;
use crate::plan::programs::Programs;
use crate::wall;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Access that is allowed everywhere.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
/// Further access that is allowed on devices.
const DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
/// Access that is allowed nowhere: no program here needs new devices.
const NEVER: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeChar | MakeBlock});

/// The rules for a root with these writable directories, and the ABI they are written in. Nothing on a kernel
/// without Landlock, unless there is a list of programs, which nothing else holds.
pub(crate) fn rules(
    writable: &[String],
    programs: Option<&Programs>,
) -> Result<(Option<OwnedFd>, u32), WallError> {
    let offered = landlock_abi();
    let abi = ABI::from(i32::try_from(offered).unwrap_or(0));
    if abi == ABI::Unsupported {
        return match programs {
            None => Ok((None, 0)),
            Some(_) => Err(WallError { subject: "a list of programs".to_owned(), errno: Errno::NOSYS }),
        };
    }
    let mut rules = create(abi).map_err(|error| fault("ruleset", &error))?;
    let written = match programs {
        None => everything(abi),
        Some(_) => everything(abi) & !AccessFs::Execute,
    };
    let places = match programs {
        None => vec![("/".to_owned(), READ)],
        Some(programs) => {
            rules = allow_listed(rules, programs, writable)?;
            vec![("/".to_owned(), AccessFs::ReadDir.into())]
        }
    };
    let own = ["dev/shm"].into_iter().chain(writable.iter().map(String::as_str));
    let own = own.map(|path| (format!("/{path}"), written));
    for (path, access) in places.into_iter().chain([("/dev".to_owned(), DEVICE)]).chain(own) {
        let place = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| WallError { subject: path.clone(), errno })?;
        let rule = PathBeneath::new(place, access & AccessFs::from_all(abi));
        rules = rules.add_rule(rule).map_err(|error| fault(&path, &error))?;
    }
    Ok((rules.into(), offered))
}

/// Allows running the listed programs, and reading everything outside of the directories of programs. A loader, which is a
/// program itself, would start any program that it may read.
fn allow_listed(
    mut rules: RulesetCreated,
    listed: &Programs,
    writable: &[String],
) -> Result<RulesetCreated, WallError> {
    let closed = wall!(ClosedPrograms: programs::directories(listed), else Vec::new());
    for (path, place) in readable::all_but(&closed)? {
        let rule = PathBeneath::new(place, AccessFs::ReadFile);
        rules = rules.add_rule(rule).map_err(|error| fault(&path.display().to_string(), &error))?;
    }
    for (path, program) in programs::find(listed, writable)?.into_opened() {
        let access = make_bitflags!(AccessFs::{Execute | ReadFile});
        let rule = PathBeneath::new(program, access);
        rules = rules.add_rule(rule).map_err(|error| fault(&path.display().to_string(), &error))?;
    }
    Ok(rules)
}

/// Returns the rules for a sandbox without a root of its own: only the listed files of the host, and no networks. Without a
/// list, all files may be used as far as their permissions go.
pub(crate) fn rules_among_the_hosts(
    places: Option<&[PathRule<'_>]>,
) -> Result<(Option<OwnedFd>, u32), WallError> {
    let offered = landlock_abi();
    let abi = ABI::from(i32::try_from(offered).unwrap_or(0));
    // Without files there is nothing else that the first three could refuse.
    if abi == ABI::Unsupported || (places.is_none() && offered < 4) {
        return Ok((None, 0));
    }
    let create = || -> Result<RulesetCreated, RulesetError> {
        let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        if places.is_some() {
            rules = rules.handle_access(AccessFs::from_all(abi))?;
        }
        if offered >= 4 {
            rules = rules.handle_access(AccessNet::from_all(abi))?;
        }
        match Scope::from_all(abi) {
            scopes if scopes.is_empty() => rules.create(),
            scopes => rules.scope(scopes)?.create(),
        }
    };
    let mut rules = create().map_err(|error| fault("ruleset", &error))?;
    for place in places.unwrap_or_default() {
        let mut access = match place.allowed {
            AccessKind::Read => READ,
            AccessKind::Device => READ | DEVICE,
            AccessKind::Everything => everything(abi),
        } & AccessFs::from_all(abi);
        if !place.is_directory {
            access &= AccessFs::from_file(abi);
        }
        let rule = PathBeneath::new(place.descriptor, access);
        rules = rules.add_rule(rule).map_err(|error| fault("a place", &error))?;
    }
    Ok((rules.into(), offered))
}

/// A file or directory of the host, and what may be done with it and below it.
pub(crate) struct PathRule<'a> {
    pub(crate) descriptor: BorrowedFd<'a>,
    pub(crate) is_directory: bool,
    pub(crate) allowed: AccessKind,
}

/// Kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessKind {
    /// Read and run.
    Read,
    /// Read and written, as devices are.
    Device,
    /// Everything except making devices.
    Everything,
}

fn everything(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(abi) & !NEVER
}

/// Makes a ruleset that refuses everything that this ABI can refuse. An access right that the kernel claims and doesn't
/// enforce is an error.
fn create(abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    match wall!(LandlockScopes: Scope::from_all(abi), else BitFlags::EMPTY) {
        scopes if scopes.is_empty() => rules.create(),
        scopes => rules.scope(scopes)?.create(),
    }
}

fn fault(subject: &str, error: &RulesetError) -> WallError {
    let errno = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .and_then(Errno::from_io_error)
        .unwrap_or(Errno::INVAL);
    WallError { subject: format!("{subject}: {error}"), errno }
}
