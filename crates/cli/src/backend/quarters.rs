//! Where the tools of agents work that need a workspace: in a sandbox of the backend that a configuration has for their category, all
//! on the same files. Pure.
//!
//! ```text
//! sandboxing.overrides ──► categories with the same backend, network and runtime ──► one quarter each, the one for commands first
//! ```

use crate::error::CliError;
use crate::lending::AllowanceArguments;
use belljar_contract::access::CodeIsolation;
use belljar_contract::category::Category;
use belljar_contract::isolation::Required;
use belljar_contract::programs::ProgramList;
use belljar_policy::constraint::WorksIn;
use belljar_sandbox::backends::chosen::Chosen;
use belljar_sandbox::config::{BackendName, DockerConfig, LifecycleConfig, MountMode, Network, Sandboxing};
use belljar_sandbox::limits::Limits;
use belljar_sandbox::session::{Division, Session};
use belljar_tools::workbench::LONGEST_RUN;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// The sandboxes of each session of an agent, never none.
#[derive(Debug, Clone)]
pub(crate) struct Quarters {
    quarters: Vec<Quarter>,
    /// Which tools work in which, if there are several.
    divisions: Vec<Division>,
    /// For each of them, the one that takes its place where its backend can't hold what an agent is held to.
    substitutes: Vec<Substitute>,
    /// What was moved to native sandboxes, and why, for people.
    moved: Vec<String>,
}

/// A native sandbox in the place of one whose backend can't hold what an agent is held to.
#[derive(Debug, Clone)]
struct Substitute {
    /// It, or why there is none.
    quarter: Result<Quarter, String>,
    /// The tools of which categories work in it, if the configuration says so.
    categories: BTreeSet<Category>,
}

/// What one of a session's sandboxes is made by, and has for itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Quarter {
    /// What makes it.
    pub(crate) backend: Chosen,
    /// What it may use.
    pub(crate) limits: Limits,
    /// The layers without which there shall be none.
    pub(crate) required: Required,
    /// Whether it has a way out to the web, where the session has one.
    pub(crate) has_web: bool,
    /// Whether what the session works on can only be looked at in it.
    pub(crate) is_seen: bool,
    /// How long it is kept between commands, if the session has several.
    pub(crate) lifecycle: LifecycleConfig,
    /// For how long a call of a tool may run something in it.
    pub(crate) longest_call: Duration,
}

/// What tools in a workspace are of. The first is what people's commands are of, too.
const OF_WORKSPACES: [Category; 4] =
    [Category::Terminal, Category::CodeExecution, Category::FileSystem, Category::VersionControl];

/// Returns true if tools of that category work in a sandbox of a session. All others are the host's own, whatever an override says.
pub(crate) fn has_sandbox(category: Category) -> bool {
    OF_WORKSPACES.contains(&category)
}

/// What two categories must have in common to work in one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    backend: BackendName,
    network: Network,
    runtime: Option<String>,
}

// === impl Quarter ===

impl Quarter {
    /// The only one of its session, with all that is usual.
    pub(crate) fn of(backend: Chosen) -> Self {
        let lifecycle = LifecycleConfig { max_idle: None, ..LifecycleConfig::default() };
        Self {
            backend,
            limits: Limits::default(),
            required: Required::default(),
            has_web: true,
            is_seen: false,
            lifecycle,
            longest_call: LONGEST_RUN,
        }
    }
}

// === impl Quarters ===

impl Quarters {
    /// One, for all categories.
    pub(crate) fn of_one(backend: Chosen, allowance: &AllowanceArguments) -> Result<Self, CliError> {
        let (limits, required) = (allowance.limits(&backend)?, allowance.required_of(&backend)?);
        let name = backend.name();
        let quarter = Quarter { limits, required, ..Quarter::of(backend) };
        // What was asked for by name is not replaced.
        let substitute = match name {
            BackendName::Native => Ok(quarter.clone()),
            name => Err(format!(
                "--backend {name}: a list of programs (--programs, or a level of access) holds in native sandboxes alone; leave --backend out, or say --backend native"
            )),
        };
        let substitutes = vec![Substitute { quarter: substitute, categories: BTreeSet::new() }];
        Ok(Self { quarters: vec![quarter], divisions: Vec::new(), substitutes, moved: Vec::new() })
    }

    /// Those that a configuration names. What was said on the command line of limits and layers counts for all of them.
    pub(crate) fn configured(
        sandboxing: &Sandboxing,
        socket: &Path,
        allowance: &AllowanceArguments,
    ) -> Result<Self, CliError> {
        let mut kinds: Vec<(Kind, BTreeSet<Category>)> = Vec::new();
        for category in OF_WORKSPACES {
            let kind = Kind::of(sandboxing, category);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, categories)) => drop(categories.insert(category)),
                None => kinds.push((kind, BTreeSet::from([category]))),
            }
        }
        let quarter = |(kind, _): &(Kind, _)| quarter((sandboxing, socket), kind, allowance);
        let quarters = kinds.iter().map(quarter).collect::<Result<Vec<_>, _>>()?;
        let substitutes = kinds.iter().zip(&quarters).map(|((kind, categories), quarter)| {
            let quarter = substitute((sandboxing, kind), quarter, allowance)?;
            Ok::<_, CliError>(Substitute { quarter, categories: categories.clone() })
        });
        let substitutes = substitutes.collect::<Result<Vec<_>, _>>()?;
        let is_alone = quarters.len() == 1;
        let division = |(Kind { backend, .. }, categories)| Division { backend, categories };
        let divisions = kinds.into_iter().map(division).filter(|_| !is_alone).collect();
        Ok(Self { quarters, divisions, substitutes, moved: Vec::new() })
    }

    /// Whether that backend makes one of them.
    pub(crate) fn have(&self, backend: BackendName) -> bool {
        self.quarters.iter().any(|quarter| quarter.backend.name() == backend)
    }

    /// For a session: what each is made by and has, and which tools work in which.
    pub(crate) fn all(&self) -> (Vec<Quarter>, Vec<Division>) {
        (self.quarters.clone(), self.divisions.clone())
    }

    /// Those that can hold a list of programs, if there is one, and in which code runs contained, if it has to: a native sandbox, with the
    /// limits of the one that it replaces, wherever the configuration has a backend that can't do that.
    ///
    /// # Errors
    /// Usage, where there can be no native sandbox instead.
    pub(crate) fn holding(
        &self,
        programs: Option<&ProgramList>,
        isolation: Option<CodeIsolation>,
    ) -> Result<Self, CliError> {
        // What was replaced before was reported then.
        let mut held = Self { moved: Vec::new(), ..self.clone() };
        for (number, Substitute { quarter, categories }) in self.substitutes.iter().enumerate() {
            let Some(place) = held.quarters.get_mut(number) else { continue };
            let was = place.backend.name();
            let runs_code =
                [Category::Terminal, Category::CodeExecution].iter().any(|code| categories.contains(code));
            let why = match was {
                BackendName::Native => continue,
                _ if programs.is_some() => "can't hold a list of programs (--programs, or a level of access)",
                BackendName::Subprocess if isolation == Some(CodeIsolation::Containerized) && runs_code => {
                    "doesn't contain the code that runs there (code_execution: containerized)"
                }
                BackendName::Docker | BackendName::Subprocess => continue,
            };
            *place = quarter.clone().map_err(CliError::usage)?;
            if let Some(division) = held.divisions.get_mut(number) {
                division.backend = BackendName::Native;
            }
            held.moved.push(format!("{} in native, because {was} {why}", in_words(categories)));
        }
        Ok(held)
    }

    /// Which categories work in native sandboxes though the configuration has another backend for them, and why; nothing if none does.
    pub(crate) fn notice(&self) -> Option<String> {
        let moved = self.moved.join("; ");
        (!moved.is_empty())
            .then(|| format!("tools work in other sandboxes than the configuration says: {moved}"))
    }

    /// Where tools of each category work.
    pub(crate) fn works_in(&self) -> BTreeMap<Category, WorksIn> {
        works_in(|category| {
            self.quarter_for(category).map_or(BackendName::Native, |quarter| quarter.backend.name())
        })
    }

    /// For how long a call of a tool of that category may run something.
    pub(crate) fn longest_call(&self, category: Category) -> Duration {
        self.quarter_for(category).map_or(LONGEST_RUN, |quarter| quarter.longest_call)
    }

    fn quarter_for(&self, category: Category) -> Option<&Quarter> {
        self.quarters.get(Division::number_for(&self.divisions, category))
    }
}

/// Where tools work in a session that was there before.
pub(crate) fn works_in_session(session: &Session) -> BTreeMap<Category, WorksIn> {
    works_in(|category| session.backend_for(Some(category)))
}

/// What needs no workspace is done outside of sandboxes, by ways that let through what rules say.
fn works_in(backend_for: impl Fn(Category) -> BackendName) -> BTreeMap<Category, WorksIn> {
    let works_in = |category| match OF_WORKSPACES.contains(&category).then(|| backend_for(category)) {
        Some(BackendName::Subprocess) => WorksIn::Process,
        _ => WorksIn::Container,
    };
    Category::ALL.into_iter().map(|category| (category, works_in(category))).collect()
}

fn quarter(
    (sandboxing, socket): (&Sandboxing, &Path),
    kind: &Kind,
    allowance: &AllowanceArguments,
) -> Result<Quarter, CliError> {
    let docker = &sandboxing.docker;
    let quarter = match kind.backend {
        BackendName::Native => {
            let (lifecycle, longest_call) = (sandboxing.native.lifecycle, sandboxing.native.timeout);
            Quarter { lifecycle, longest_call, ..Quarter::of(Chosen::Native) }
        }
        BackendName::Subprocess => {
            let chosen = Chosen::Subprocess(Box::new(sandboxing.subprocess.clone()));
            let longest_call = sandboxing.subprocess.timeout;
            Quarter { has_web: false, longest_call, ..Quarter::of(chosen) }
        }
        BackendName::Docker => Quarter {
            has_web: kind.network == Network::Bridge,
            is_seen: docker.mount_mode == MountMode::ReadOnly,
            lifecycle: docker.lifecycle,
            longest_call: docker.timeout,
            ..Quarter::of(container(docker, socket, kind))
        },
    };
    let limits = allowance.limits_over(sandboxing.limits_of(kind.backend));
    let required = allowance.required_of(&quarter.backend)?.and(&sandboxing.required_of(kind.backend));
    Ok(Quarter { limits, required, ..quarter })
}

/// A native sandbox instead of that one, with its limits and layers as far as it has any, and with what the house requires of native ones.
fn substitute(
    (sandboxing, kind): (&Sandboxing, &Kind),
    quarter: &Quarter,
    allowance: &AllowanceArguments,
) -> Result<Result<Quarter, String>, CliError> {
    if let Some(runtime) = &kind.runtime {
        return Ok(Err(format!(
            "a list of programs (--programs, or a level of access) holds in native sandboxes alone, and sandboxing.docker asks for the runtime {runtime}"
        )));
    }
    // A backend without limits of its own says nothing about what a sandbox with limits may have.
    let limits = match kind.backend {
        BackendName::Docker => quarter.limits,
        _ => allowance.limits_over(sandboxing.native.limits),
    };
    let required = quarter.required.clone().and(&sandboxing.required_of(BackendName::Native));
    let required = required.and(&allowance.required_of(&Chosen::Native)?);
    Ok(Ok(Quarter { backend: Chosen::Native, limits, required, ..quarter.clone() }))
}

fn container(docker: &DockerConfig, socket: &Path, kind: &Kind) -> Chosen {
    let config = DockerConfig { runtime: kind.runtime.clone(), ..docker.clone() };
    Chosen::Docker { config: Box::new(config), socket: socket.to_owned() }
}

fn in_words(categories: &BTreeSet<Category>) -> String {
    categories.iter().map(|category| category.as_str()).collect::<Vec<_>>().join(", ")
}

// === impl Kind ===

impl Kind {
    fn of(sandboxing: &Sandboxing, category: Category) -> Self {
        let (backend, docker) = (sandboxing.backend_for(category), &sandboxing.docker);
        match backend {
            BackendName::Docker => Self {
                backend,
                network: docker.network_for(category),
                runtime: docker.runtime_for(category).map(str::to_owned),
            },
            _ => Self { backend, network: Network::None, runtime: None },
        }
    }
}

#[cfg(test)]
mod tests;
