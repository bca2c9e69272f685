//! The permissions of one sandbox, by its agent's trust level, and their check against a request.

use super::order::AccessRequest;
use crate::images::Image;
use belljar_contract::programs::{ParseProgramsError, ProgramList};
use belljar_gateway::access::AccessStanding;
use belljar_policy::access::UnknownAgentError;
use belljar_policy::access::compiled::{
    GitOperations, ProgramAccess, SandboxAccess, WebAccess, WorkspaceAccess,
};
use belljar_tools::caller::Identity;
use std::fmt;
use std::path::Path;

/// Permissions of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct SandboxPermissions {
    whose: RequestSubject,
    compiled: SandboxAccess,
    programs: Option<ProgramList>,
}

/// The identity that a sandbox is for, and the kind of the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestSubject(Identity, &'static str);

/// A request exceeds the agent's permissions. Each message has the JSON path and an accepted value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PermissionExceeded {
    #[error(transparent)]
    Unknown(#[from] UnknownAgentError),
    #[error("{place}: {whose} reaches nothing of the web (`network: none`): {right}")]
    Web { place: &'static str, whose: RequestSubject, right: &'static str },
    #[error(
        "{place}: {image}, and {whose} may start listed programs alone (`terminal`), which only the node's own sandboxes \
         hold: `native`"
    )]
    Image { place: &'static str, image: String, whose: RequestSubject },
    #[error(
        "{place}: {program:?} is none of the programs that {whose} may start (`terminal`, `commands`): {listed}"
    )]
    Program { place: String, program: String, whose: RequestSubject, listed: String },
    #[error("the programs that {whose} may start are no list of programs")]
    Listed {
        whose: RequestSubject,
        #[source]
        source: ParseProgramsError,
    },
}

/// Maximum number of program names in an error message.
const SHOWN: usize = 12;

// === impl SandboxPermissions ===

impl SandboxPermissions {
    /// Returns the terms of an identity with that standing.
    pub(super) fn of(
        identity: Identity,
        stood: &AccessStanding,
        order: &AccessRequest<'_>,
    ) -> Result<Self, PermissionExceeded> {
        let whose = RequestSubject(identity, order.what);
        let compiled = of_node(SandboxAccess::of_agent(&stood.agent.permissions), order.web.is_some());
        let programs = match &compiled.programs {
            ProgramAccess::All => None,
            ProgramAccess::Only { names } => {
                let listed = ProgramList::new(names.iter().cloned());
                Some(listed.map_err(|source| PermissionExceeded::Listed { whose: whose.clone(), source })?)
            }
        };
        Ok(Self { whose, compiled, programs })
    }

    /// Returns the identity that the sandbox is for.
    pub(super) fn identity(&self) -> &Identity {
        &self.whose.0
    }

    /// Returns the permissions of the sandbox.
    pub(crate) fn compiled(&self) -> &SandboxAccess {
        &self.compiled
    }

    /// Returns the allowlist of programs; `None` if all may be started.
    pub(crate) fn programs(&self) -> Option<&ProgramList> {
        self.programs.as_ref()
    }

    /// Checks that the request doesn't exceed the permissions. Its workspace is empty, has no host files and its own root
    /// file system; no level permits less than that.
    pub(super) fn admit(&self, order: &AccessRequest<'_>) -> Result<(), PermissionExceeded> {
        if let Some((place, right)) = order.web
            && self.compiled.web == WebAccess::None
        {
            return Err(PermissionExceeded::Web { place, whose: self.whose.clone(), right });
        }
        let (place, image) = order.image;
        if self.programs.is_some() && *image != Image::Native {
            return Err(PermissionExceeded::Image { place, image: image.name(), whose: self.whose.clone() });
        }
        order.programs.iter().try_for_each(|(place, program)| self.admit_program(place, program))
    }

    /// Checks that a program may be started in it; `place` is its JSON path.
    ///
    /// # Errors
    /// [`PermissionExceeded::Program`]
    pub(crate) fn admit_program(&self, place: &str, program: &str) -> Result<(), PermissionExceeded> {
        let Some(listed) = self.programs.as_ref().filter(|listed| !listed.has(name(program))) else {
            return Ok(());
        };
        let (place, program, whose) = (place.to_owned(), program.to_owned(), self.whose.clone());
        Err(PermissionExceeded::Program { place, program, whose, listed: shown(listed) })
    }
}

/// Restricts a level's permissions to those that a sandbox of a node can have: its workspace is empty, and git is available
/// only with the web.
fn of_node(level: SandboxAccess, wants_web: bool) -> SandboxAccess {
    let level = SandboxAccess { workspace: WorkspaceAccess::Empty, is_lent_to: false, ..level };
    match wants_web {
        true => level,
        false => SandboxAccess {
            web: WebAccess::None,
            git: GitOperations { fetches: false, pushes: false },
            ..level
        },
    }
}

fn name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}

fn shown(listed: &ProgramList) -> String {
    let (names, count): (Vec<&str>, _) = (listed.names().take(SHOWN).collect(), listed.names().count());
    match (names.join(", "), count.saturating_sub(SHOWN)) {
        (_, _) if names.is_empty() => "none".to_owned(),
        (names, 0) => names,
        (names, more) => format!("{names} and {more} more"),
    }
}

// === impl RequestSubject ===

impl fmt::Display for RequestSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Identity::Agent(agent) => write!(f, "the agent {agent}"),
            Identity::Level(level) => write!(f, "{} without `agent_id`, at the level {level},", self.1),
        }
    }
}
