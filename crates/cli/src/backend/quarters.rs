//! Where the tools of agents work that need a workspace: in a sandbox of the backend that a configuration has for their category, all
//! on the same files. Pure.
//!
//! ```text
//! sandboxing.overrides ──► categories with the same backend, network and runtime ──► one quarter each, the one for commands first
//! ```

use crate::error::CliError;
use crate::lending::AllowanceArguments;
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
        let quarter = Quarter { limits, required, ..Quarter::of(backend) };
        Ok(Self { quarters: vec![quarter], divisions: Vec::new() })
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
        let quarter =
            |(kind, categories): &(Kind, _)| quarter((sandboxing, socket), (kind, categories), allowance);
        let quarters = kinds.iter().map(quarter).collect::<Result<Vec<_>, _>>()?;
        let is_alone = quarters.len() == 1;
        let division = |(Kind { backend, .. }, categories)| Division { backend, categories };
        let divisions = kinds.into_iter().map(division).filter(|_| !is_alone).collect();
        Ok(Self { quarters, divisions })
    }

    /// Whether that backend makes one of them.
    pub(crate) fn have(&self, backend: BackendName) -> bool {
        self.quarters.iter().any(|quarter| quarter.backend.name() == backend)
    }

    /// For a session: what each is made by and has, and which tools work in which.
    pub(crate) fn all(&self) -> (Vec<Quarter>, Vec<Division>) {
        (self.quarters.clone(), self.divisions.clone())
    }

    /// A list of programs must hold wherever tools work.
    ///
    /// # Errors
    /// Usage, with those in which it would not.
    pub(crate) fn hold(&self, programs: Option<&ProgramList>) -> Result<(), CliError> {
        let holds = |division: &&Division| division.backend == BackendName::Native;
        match (programs, self.divisions.iter().find(|division| !holds(division))) {
            (Some(_), Some(Division { backend, categories })) => Err(CliError::usage(format!(
                "a list of programs holds in the native backend alone, and the configuration has {} in {backend} (sandboxing.default_backend, .overrides)",
                in_words(categories)
            ))),
            _ => Ok(()),
        }
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
    (kind, categories): (&Kind, &BTreeSet<Category>),
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
            ..Quarter::of(container((docker, socket), (kind, categories))?)
        },
        BackendName::Kubernetes => {
            return Err(CliError::usage(format!(
                "the configuration has {} in k8s, and this version makes no pods (sandboxing.default_backend, .overrides); --backend says what makes the sandbox instead",
                in_words(categories)
            )));
        }
    };
    let limits = allowance.limits_over(sandboxing.limits_of(kind.backend).unwrap_or_default());
    let required = allowance.required_of(&quarter.backend)?.and(&sandboxing.required_of(kind.backend));
    Ok(Quarter { limits, required, ..quarter })
}

fn container(
    (docker, socket): (&DockerConfig, &Path),
    (kind, categories): (&Kind, &BTreeSet<Category>),
) -> Result<Chosen, CliError> {
    if kind.network == Network::Bridge && !docker.allowed_hosts.is_empty() {
        return Err(CliError::usage(format!(
            "sandboxing.docker.allowed_hosts: what runs in a container reaches the web by rules alone (--egress), and never a host and port past them; the containers for {} would",
            in_words(categories)
        )));
    }
    let config = DockerConfig { runtime: kind.runtime.clone(), ..docker.clone() };
    Ok(Chosen::Docker { config: Box::new(config), socket: socket.to_owned() })
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
