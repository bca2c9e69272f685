//! Sandboxes of a session for agents' tools that need a workspace. Each tool runs in a sandbox of the backend configured for its
//! category; all sandboxes share the same files. This module performs no I/O on sandboxes.
//!
//! ```text
//! sandboxing.overrides ──► categories with the same backend, network and runtime ──► one quarter each, the one for commands first
//! ```

use crate::error::CliError;
use crate::sandbox_args::AllowanceArguments;
use belljar_contract::access::CodeIsolation;
use belljar_contract::category::Category;
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::programs::ProgramList;
use belljar_policy::constraint::ExecutionLocation;
use belljar_sandbox::backends::chosen::BackendChoice;
use belljar_sandbox::config::{BackendName, DockerConfig, LifecycleConfig, MountMode, Network, Sandboxing};
use belljar_sandbox::limits::Limits;
use belljar_sandbox::session::{SandboxGroup, Session};
use belljar_tools::workbench::LONGEST_RUN;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Sandboxes of each session of an agent; never empty.
#[derive(Debug, Clone)]
pub(crate) struct SessionSandboxes {
    quarters: Vec<SandboxSettings>,
    /// Assignment of tool categories to the sandboxes; empty if there is only one sandbox.
    divisions: Vec<SandboxGroup>,
    /// Replacement of each sandbox, for a backend that can't enforce an agent's restrictions.
    substitutes: Vec<NativeReplacement>,
    /// Messages for the user: which categories moved to native sandboxes, and why.
    moved: Vec<String>,
}

/// Native sandbox that replaces one whose backend can't enforce an agent's restrictions.
#[derive(Debug, Clone)]
struct NativeReplacement {
    /// The sandbox, or the reason why there can be none.
    quarter: Result<SandboxSettings, String>,
    /// Categories that the configuration assigns to it.
    categories: BTreeSet<Category>,
}

/// Settings of one sandbox of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SandboxSettings {
    /// Backend that creates it.
    pub(crate) backend: BackendChoice,
    /// Resource limits.
    pub(crate) limits: Limits,
    /// Isolation layers without which it must not be created.
    pub(crate) required: RequiredLayers,
    /// True if it has the session's web hatch, where the session has one.
    pub(crate) has_web: bool,
    /// True if the workspace is read-only in it.
    pub(crate) is_seen: bool,
    /// How long it is kept between commands, if the session has several sandboxes.
    pub(crate) lifecycle: LifecycleConfig,
    /// Maximum run time of a tool call in it.
    pub(crate) longest_call: Duration,
}

/// Categories whose tools need a workspace. The first is also the category of users' commands.
const OF_WORKSPACES: [Category; 4] =
    [Category::Terminal, Category::CodeExecution, Category::FileSystem, Category::VersionControl];

/// Returns true if tools of that category run in a sandbox of a session. All others run on the host, regardless of overrides.
pub(crate) fn has_sandbox(category: Category) -> bool {
    OF_WORKSPACES.contains(&category)
}

/// Properties that categories must share to use one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SandboxKey {
    backend: BackendName,
    network: Network,
    runtime: Option<String>,
}

// === impl SandboxSettings ===

impl SandboxSettings {
    /// Returns default settings for the only sandbox of a session.
    pub(crate) fn of(backend: BackendChoice) -> Self {
        let lifecycle = LifecycleConfig { max_idle: None, ..LifecycleConfig::default() };
        Self {
            backend,
            limits: Limits::default(),
            required: RequiredLayers::default(),
            has_web: true,
            is_seen: false,
            lifecycle,
            longest_call: LONGEST_RUN,
        }
    }
}

// === impl SessionSandboxes ===

impl SessionSandboxes {
    /// Returns one sandbox for all categories.
    pub(crate) fn of_one(backend: BackendChoice, allowance: &AllowanceArguments) -> Result<Self, CliError> {
        let (limits, required) = (allowance.limits(&backend)?, allowance.required_of(&backend)?);
        let name = backend.name();
        let quarter = SandboxSettings { limits, required, ..SandboxSettings::of(backend) };
        // A backend named on the command line is not replaced.
        let substitute = match name {
            BackendName::Native => Ok(quarter.clone()),
            name => Err(format!(
                "--backend {name}: a list of programs (--programs, or a level of access) holds in native sandboxes alone; leave --backend out, or say --backend native"
            )),
        };
        let substitutes = vec![NativeReplacement { quarter: substitute, categories: BTreeSet::new() }];
        Ok(Self { quarters: vec![quarter], divisions: Vec::new(), substitutes, moved: Vec::new() })
    }

    /// Returns the sandboxes that the configuration selects. Limits and layers of the command line apply to all of them.
    pub(crate) fn configured(
        sandboxing: &Sandboxing,
        socket: &Path,
        allowance: &AllowanceArguments,
    ) -> Result<Self, CliError> {
        let mut kinds: Vec<(SandboxKey, BTreeSet<Category>)> = Vec::new();
        for category in OF_WORKSPACES {
            let kind = SandboxKey::of(sandboxing, category);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, categories)) => drop(categories.insert(category)),
                None => kinds.push((kind, BTreeSet::from([category]))),
            }
        }
        let quarter = |(kind, _): &(SandboxKey, _)| quarter((sandboxing, socket), kind, allowance);
        let quarters = kinds.iter().map(quarter).collect::<Result<Vec<_>, _>>()?;
        let substitutes = kinds.iter().zip(&quarters).map(|((kind, categories), quarter)| {
            let quarter = substitute((sandboxing, kind), quarter, allowance)?;
            Ok::<_, CliError>(NativeReplacement { quarter, categories: categories.clone() })
        });
        let substitutes = substitutes.collect::<Result<Vec<_>, _>>()?;
        let is_alone = quarters.len() == 1;
        let division = |(SandboxKey { backend, .. }, categories)| SandboxGroup { backend, categories };
        let divisions = kinds.into_iter().map(division).filter(|_| !is_alone).collect();
        Ok(Self { quarters, divisions, substitutes, moved: Vec::new() })
    }

    /// Returns true if that backend creates one of the sandboxes.
    pub(crate) fn have(&self, backend: BackendName) -> bool {
        self.quarters.iter().any(|quarter| quarter.backend.name() == backend)
    }

    /// Returns the settings of each sandbox and the assignment of tool categories, for a session.
    pub(crate) fn all(&self) -> (Vec<SandboxSettings>, Vec<SandboxGroup>) {
        (self.quarters.clone(), self.divisions.clone())
    }

    /// Returns sandboxes that enforce the program list, if there is one, and contain code, if `isolation` requires that. A backend that
    /// can't do so is replaced by a native sandbox.
    ///
    /// # Errors
    /// Usage error if no native sandbox can replace the configured one.
    pub(crate) fn holding(
        &self,
        programs: Option<&ProgramList>,
        isolation: Option<CodeIsolation>,
    ) -> Result<Self, CliError> {
        // Earlier replacements have been reported already.
        let mut held = Self { moved: Vec::new(), ..self.clone() };
        for (number, NativeReplacement { quarter, categories }) in self.substitutes.iter().enumerate() {
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

    /// Returns a message that lists the categories moved from their configured backend to a native sandbox, and why; `None` if none was.
    pub(crate) fn notice(&self) -> Option<String> {
        let moved = self.moved.join("; ");
        (!moved.is_empty())
            .then(|| format!("tools work in other sandboxes than the configuration says: {moved}"))
    }

    /// Returns for each category whether its tools run in a plain process or in a container.
    pub(crate) fn works_in(&self) -> BTreeMap<Category, ExecutionLocation> {
        works_in(|category| {
            self.quarter_for(category).map_or(BackendName::Native, |quarter| quarter.backend.name())
        })
    }

    /// Returns the maximum run time of a tool call of that category.
    pub(crate) fn longest_call(&self, category: Category) -> Duration {
        self.quarter_for(category).map_or(LONGEST_RUN, |quarter| quarter.longest_call)
    }

    fn quarter_for(&self, category: Category) -> Option<&SandboxSettings> {
        self.quarters.get(SandboxGroup::number_for(&self.divisions, category))
    }
}

/// Returns for each category where its tools run in an existing session.
pub(crate) fn works_in_session(session: &Session) -> BTreeMap<Category, ExecutionLocation> {
    works_in(|category| session.backend_for(Some(category)))
}

/// Returns for each category where its tools run. Tools without a workspace run outside of sandboxes, through hatches that enforce the
/// rules; they count as contained.
fn works_in(backend_for: impl Fn(Category) -> BackendName) -> BTreeMap<Category, ExecutionLocation> {
    let works_in = |category| match OF_WORKSPACES.contains(&category).then(|| backend_for(category)) {
        Some(BackendName::Subprocess) => ExecutionLocation::Process,
        _ => ExecutionLocation::Container,
    };
    Category::ALL.into_iter().map(|category| (category, works_in(category))).collect()
}

fn quarter(
    (sandboxing, socket): (&Sandboxing, &Path),
    kind: &SandboxKey,
    allowance: &AllowanceArguments,
) -> Result<SandboxSettings, CliError> {
    let docker = &sandboxing.docker;
    let quarter = match kind.backend {
        BackendName::Native => {
            let (lifecycle, longest_call) = (sandboxing.native.lifecycle, sandboxing.native.timeout);
            SandboxSettings { lifecycle, longest_call, ..SandboxSettings::of(BackendChoice::Native) }
        }
        BackendName::Subprocess => {
            let chosen = BackendChoice::Subprocess(Box::new(sandboxing.subprocess.clone()));
            let longest_call = sandboxing.subprocess.timeout;
            SandboxSettings { has_web: false, longest_call, ..SandboxSettings::of(chosen) }
        }
        BackendName::Docker => SandboxSettings {
            has_web: kind.network == Network::Bridge,
            is_seen: docker.mount_mode == MountMode::ReadOnly,
            lifecycle: docker.lifecycle,
            longest_call: docker.timeout,
            ..SandboxSettings::of(container(docker, socket, kind))
        },
    };
    let limits = allowance.limits_over(sandboxing.limits_of(kind.backend));
    let required = allowance.required_of(&quarter.backend)?.and(&sandboxing.required_of(kind.backend));
    Ok(SandboxSettings { limits, required, ..quarter })
}

/// Returns a native sandbox that replaces `quarter`. It keeps the limits of a container, else it has the configured limits of native
/// sandboxes; it requires the layers of both. The inner error says why there can be no replacement.
fn substitute(
    (sandboxing, kind): (&Sandboxing, &SandboxKey),
    quarter: &SandboxSettings,
    allowance: &AllowanceArguments,
) -> Result<Result<SandboxSettings, String>, CliError> {
    if let Some(runtime) = &kind.runtime {
        return Ok(Err(format!(
            "a list of programs (--programs, or a level of access) holds in native sandboxes alone, and sandboxing.docker asks for the runtime {runtime}"
        )));
    }
    // Limits of a backend that enforces none are no basis for a native sandbox, so the configured native limits apply.
    let limits = match kind.backend {
        BackendName::Docker => quarter.limits,
        _ => allowance.limits_over(sandboxing.native.limits),
    };
    let required = quarter.required.clone().and(&sandboxing.required_of(BackendName::Native));
    let required = required.and(&allowance.required_of(&BackendChoice::Native)?);
    Ok(Ok(SandboxSettings { backend: BackendChoice::Native, limits, required, ..quarter.clone() }))
}

fn container(docker: &DockerConfig, socket: &Path, kind: &SandboxKey) -> BackendChoice {
    let config = DockerConfig { runtime: kind.runtime.clone(), ..docker.clone() };
    BackendChoice::Docker { config: Box::new(config), socket: socket.to_owned() }
}

fn in_words(categories: &BTreeSet<Category>) -> String {
    categories.iter().map(|category| category.as_str()).collect::<Vec<_>>().join(", ")
}

// === impl SandboxKey ===

impl SandboxKey {
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
