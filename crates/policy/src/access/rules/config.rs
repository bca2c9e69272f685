//! `tool_access` and `autonomy` in the configuration file.
//!
//! ```yaml
//! tool_access:
//!   default_level: standard
//!   action_types: [{name: 'acme:rotate', risk: high, why: 'keys of all services change'}]
//!   levels:
//!     restricted: {network_allowlist: ['pkgs.example:443'], requires_approval: [deployment, database_write]}
//!   agents:
//!     - name: reviewer
//!       level: restricted
//!       denied: [git_commit]
//!       sub_constraints: {network: none}
//!       autonomy: supervised
//! autonomy: {level: semi, human_approval: ['code:create']}
//! ```

use super::{AccessRules, AgentRules, DefaultAutonomy};
use crate::access::commands::is_command;
use crate::access::{ConstraintOverrides, LevelRules, NetworkEndpoint};
use crate::action::{ActionRegistry, RegisteredAction};
use crate::autonomy::{Autonomy, AutonomyError, AutonomyLevel, AutonomyLists, Seniority};
use crate::permission::ToolRules;
use crate::tool::ToolPattern;
use belljar_contract::access::{
    AccessLevel, CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess,
};
use belljar_contract::action::{ActionType, Risk};
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_contract::yaml::{
    Members, MistakeLog, Node, Value, below, boolean, list, one_of, place, quoted, text,
};
use std::collections::{BTreeMap, BTreeSet};

/// Other names of actions, which descriptions of levels use (`docs/contracts/tools.md#t16.4`).
const ALIASES: [(&str, &str); 2] = [("deployment", "deploy"), ("database_write", "db:mutate")];

// === impl AccessRules ===

impl AccessRules {
    /// Reads both sections. Other members may stand beside them.
    pub fn read(members: &mut Members<'_, '_>) -> Self {
        let mut rules = Self::default();
        let autonomy = members.node("autonomy");
        members.section("tool_access", |node, log| read_access(node, log, &mut rules));
        members.section("autonomy", |node, log| read_autonomy(node, log, &mut rules));
        // Each agent's lists have to be consistent with the general ones.
        let house = (rules.autonomy.level, rules.autonomy.lists.clone());
        if let (Err(error), Some(node)) = (Autonomy::new(&rules.actions, house.0, &house.1), autonomy) {
            note_lists(&error, node, members.log);
        }
        rules
    }
}

fn read_access(node: &Node, log: &mut MistakeLog, rules: &mut AccessRules) {
    let Some(mut members) = Members::open(node, log) else { return };
    rules.actions = members.or("action_types", ActionRegistry::default(), |node, log| {
        let rows = list(node, log, |node, log| Some((action_type(node, log)?, node.position)))?;
        let mut known = ActionRegistry::default();
        for (row, position) in rows {
            let name = row.action.to_string();
            match known.clone().and(row) {
                Ok(more) => known = more,
                Err(_) => log.note(position, place(node), quoted(&name), "a name that isn't there already"),
            }
        }
        Some(known)
    });
    let level =
        |node: &Node, log: &mut MistakeLog| one_of(node, log, &named(AccessLevel::ALL, AccessLevel::as_str));
    rules.default_level = members.optional("default_level", level);
    let AccessRules { actions, levels, .. } = rules;
    members.section("levels", |node, log| {
        let Some(mut members) = Members::open(node, log) else { return };
        for level in AccessLevel::ALL {
            members
                .section(level.as_str(), |node, log| read_level(node, log, (actions, levels.of_mut(*level))));
        }
        members.finish();
    });
    let agents = members.or("agents", Vec::new(), |node, log| {
        list(node, log, |node, log| Some((read_agent(node, log, actions)?, node.position)))
    });
    for ((name, agent), position) in agents {
        if rules.agents.insert(name.clone(), agent).is_some() {
            let path = below(&node.path, "agents");
            members.log.note(position, &path, format!("{} twice", quoted(name.as_str())), "each once");
        }
    }
    members.finish();
}

fn action_type(node: &Node, log: &mut MistakeLog) -> Option<RegisteredAction> {
    let mut members = Members::open(node, log)?;
    let action = members.required("name", |node, log| {
        text(node, log, "`category:action`, of a-z, 0-9 and `_`", |text| ActionType::parse(text).ok())
    });
    let risk = members.optional("risk", |node, log| one_of(node, log, &named(&Risk::ALL, Risk::as_str)));
    let why = members.optional("why", |node, log| {
        text(node, log, "1 to 300 characters", |text| {
            (1..=300).contains(&text.chars().count()).then(|| text.to_owned())
        })
    });
    members.finish();
    Some(RegisteredAction { action: action?, risk, why })
}

fn read_level(node: &Node, log: &mut MistakeLog, (actions, rules): (&ActionRegistry, &mut LevelRules)) {
    let Some(mut members) = Members::open(node, log) else { return };
    let description = members.optional("description", |node, log| {
        text(node, log, "a text", |text| (text.len() <= 1_000).then(|| text.to_owned()))
    });
    let deployment = members.optional("deployment", boolean);
    let said = read_constraints(&mut members, actions);
    members.finish();
    rules.description = description.unwrap_or_else(|| std::mem::take(&mut rules.description));
    match deployment {
        Some(true) => drop(rules.categories.insert(Category::Deployment)),
        Some(false) => drop(rules.categories.remove(&Category::Deployment)),
        None => {}
    }
    rules.constraints = rules.constraints.with(&said);
}

fn read_constraints(members: &mut Members<'_, '_>, actions: &ActionRegistry) -> ConstraintOverrides {
    let scopes = named(FileSystemScope::ALL, FileSystemScope::as_str);
    let modes = named(NetworkMode::ALL, NetworkMode::as_str);
    let git = named(GitAccess::ALL, GitAccess::as_str);
    let isolation = named(CodeIsolation::ALL, CodeIsolation::as_str);
    let terminal = named(TerminalAccess::ALL, TerminalAccess::as_str);
    ConstraintOverrides {
        file_system: members.optional("file_system", |node, log| one_of(node, log, &scopes)),
        network: members.optional("network", |node, log| one_of(node, log, &modes)),
        git: members.optional("git", |node, log| one_of(node, log, &git)),
        code_execution: members.optional("code_execution", |node, log| one_of(node, log, &isolation)),
        terminal: members.optional("terminal", |node, log| one_of(node, log, &terminal)),
        requires_approval: members.optional("requires_approval", |node, log| {
            let all = list(node, log, |node, log| patterns(node, log, actions))?;
            Some(all.into_iter().flatten().collect())
        }),
        network_allowlist: members.optional("network_allowlist", |node, log| {
            list(node, log, |node, log| {
                text(node, log, "a host, *.NAME, **.NAME or an address, with or without :PORT", |text| {
                    NetworkEndpoint::parse(text).ok()
                })
            })
        }),
        commands: members.optional("commands", |node, log| {
            let all = list(node, log, |node, log| {
                text(node, log, "the name of a program, without a place", |text| {
                    is_command(text).then(|| text.to_owned())
                })
            })?;
            Some(all.into_iter().collect())
        }),
    }
}

fn patterns(node: &Node, log: &mut MistakeLog, actions: &ActionRegistry) -> Option<BTreeSet<ActionType>> {
    let meant = |text: &str| {
        ALIASES
            .iter()
            .find(|(alias, _)| *alias == text)
            .map_or(text.to_owned(), |(_, meant)| (*meant).to_owned())
    };
    pattern(node, log, actions).and_then(|text| actions.expand(&meant(&text)).ok())
}

/// Reads a pattern that matches a known action, as it was written.
fn pattern(node: &Node, log: &mut MistakeLog, actions: &ActionRegistry) -> Option<String> {
    let written =
        text(node, log, "an action type, a category of them, or `all`", |text| Some(text.to_owned()))?;
    let is_alias = ALIASES.iter().any(|(alias, _)| *alias == written);
    match actions.expand(&written) {
        Err(error) if !is_alias => {
            let near = error.nearest.map_or(String::new(), |near| format!("`{near}`, perhaps; or another "));
            log.note(
                node.position,
                place(node),
                quoted(&written),
                format!("{near}action type, category of them, or `all`"),
            );
            None
        }
        _ => Some(written),
    }
}

fn read_agent(node: &Node, log: &mut MistakeLog, actions: &ActionRegistry) -> Option<(AgentId, AgentRules)> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", |node, log| {
        text(node, log, "an id of 1 to 128 bytes of printable text", |text| AgentId::parse(text).ok())
    });
    let levels = named(AccessLevel::ALL, AccessLevel::as_str);
    let level = members.optional("level", |node, log| one_of(node, log, &levels));
    let allowed = members.or("allowed", Vec::new(), tools);
    let denied = members.or("denied", Vec::new(), tools);
    let (allowed, denied) = (ToolRules::new(allowed), ToolRules::new(denied));
    if let Some(both) = allowed.shared(&denied) {
        let found = format!("{}, which is allowed too", quoted(&both));
        members.log.note(
            node.position,
            &below(&node.path, "denied"),
            found,
            "each tool in one of the two lists",
        );
    }
    let said = members.section("sub_constraints", |node, log| {
        let Some(mut members) = Members::open(node, log) else { return ConstraintOverrides::default() };
        let said = read_constraints(&mut members, actions);
        members.finish();
        said
    });
    if level == Some(AccessLevel::Custom) && members.node("sub_constraints").is_none() {
        let found = "`level: custom` and no `sub_constraints`";
        members.log.note(node.position, place(node), found, "what holds for that agent, or another level");
    }
    let autonomy = members.optional("autonomy", autonomy_level);
    let lists = read_lists(&mut members, actions);
    let department = members.optional("department", department);
    let seniority = members
        .optional("seniority", |node, log| one_of(node, log, &named(&Seniority::ALL, Seniority::as_str)));
    if seniority == Some(Seniority::Junior) && autonomy == Some(AutonomyLevel::Full) {
        let found = "`autonomy: full` for a junior";
        members.log.note(node.position, place(node), found, "semi at most, or another seniority");
    }
    if let Err(error) = Autonomy::new(actions, autonomy.unwrap_or(AutonomyLevel::Semi), &lists) {
        note_lists(&error, node, members.log);
    }
    members.finish();
    let rules = AgentRules { level, allowed, denied, said, autonomy, lists, department, seniority };
    Some((name?, rules))
}

fn tools(node: &Node, log: &mut MistakeLog) -> Option<Vec<ToolPattern>> {
    list(node, log, |node, log| {
        text(node, log, "the name of a tool, or the beginning of names with `*` after it", |text| {
            ToolPattern::parse(text.trim()).ok()
        })
    })
}

fn department(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "a name of 1 to 128 bytes", |text| {
        (1..=128).contains(&text.len()).then(|| text.to_owned())
    })
}

fn autonomy_level(node: &Node, log: &mut MistakeLog) -> Option<AutonomyLevel> {
    one_of(node, log, &named(&AutonomyLevel::ALL, AutonomyLevel::as_str))
}

fn read_lists(members: &mut Members<'_, '_>, actions: &ActionRegistry) -> AutonomyLists {
    let mut read = |name| {
        members.or(name, Vec::new(), |node, log| list(node, log, |node, log| pattern(node, log, actions)))
    };
    AutonomyLists { auto_approve: read("auto_approve"), human_approval: read("human_approval") }
}

fn read_autonomy(node: &Node, log: &mut MistakeLog, rules: &mut AccessRules) {
    let Some(mut members) = Members::open(node, log) else { return };
    let level = members.or("level", AutonomyLevel::Semi, autonomy_level);
    let departments = members.or("departments", BTreeMap::new(), |node, log| {
        let Value::Mapping(entries) = &node.value else {
            log.note(node.position, place(node), node.describe(), "a mapping of departments to levels");
            return None;
        };
        let read =
            entries.iter().filter_map(|(key, value)| Some((key.name.clone(), autonomy_level(value, log)?)));
        Some(read.collect())
    });
    let lists = read_lists(&mut members, &rules.actions);
    members.finish();
    rules.autonomy = DefaultAutonomy { level, departments, lists };
}

fn note_lists(error: &AutonomyError, node: &Node, log: &mut MistakeLog) {
    let (AutonomyError::InBoth { pattern } | AutonomyError::NoEffect { pattern }) = error else { return };
    let path = below(&node.path, "auto_approve");
    let found = format!("{}, which `human_approval` has", quoted(pattern));
    log.note(node.position, &path, found, "each action in one of the two lists");
}

/// Returns all values of a type with their names.
fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Vec<(&'static str, T)> {
    all.iter().map(|one| (name(*one), *one)).collect()
}
