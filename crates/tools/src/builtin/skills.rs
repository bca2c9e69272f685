//! `skills.*`: instructions that agents can read; all agents read them, planners write them.

use super::writer::{edit, may_name, may_write};
use super::{Clock, Tools};
use crate::answer::{Answer, Failure, Page, Success};
use crate::caller::Caller;
use crate::definition::{Definition, Effect};
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::id::{SkillId, TaskId};
use belljar_contract::label::Label;
use belljar_contract::scope::{Scope, Scopes};
use belljar_contract::tool::{DomainCode, ToolScope};
use belljar_store::page;
use belljar_store::skills::{NewSkill, Skill, SkillChange, SkillError, Skills};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Store of skills.
#[derive(Clone)]
pub struct SkillStore {
    /// The skills.
    pub skills: Skills,
    /// Returns the time of day.
    pub clock: Clock,
    /// Makes the id of a new skill.
    pub new_id: fn() -> String,
}

/// Arguments of `skills.list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The task that they are for.
    task_id: Option<TaskId>,
    /// Only skills of that scope: `system`, `group:ID`, `user:ID`, `project:ID` or `task:UUID`.
    scope: Option<String>,
    /// Number of entries to skip.
    offset: Option<usize>,
    /// Maximum number of entries to return.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// Arguments of `skills.get`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// The task that it is for.
    task_id: Option<TaskId>,
    /// Its id or its name; of several with one name, the one in the nearest scope to the task.
    #[schemars(length(min = 1, max = 128))]
    skill_id: String,
}

/// Arguments of `skills.create`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateArguments {
    /// The task that it comes from.
    task_id: Option<TaskId>,
    /// Its name.
    #[schemars(length(min = 1, max = 128))]
    name: String,
    /// The text, as Markdown; at most 256 KiB.
    content: String,
    /// Its scope, one that the caller may name. Default: `task:UUID` of the task.
    scope: Option<String>,
}

/// Arguments of `skills.update`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateArguments {
    /// The task that it is changed for.
    task_id: Option<TaskId>,
    /// Its id.
    #[schemars(length(min = 1, max = 128))]
    skill_id: String,
    /// The new text, if it changes.
    content: Option<String>,
    /// The new name, if it changes.
    #[schemars(length(min = 1, max = 128))]
    name: Option<String>,
    /// The new scope, if it changes.
    scope: Option<String>,
    /// Expected current version.
    expected_version: Option<u64>,
}

/// Arguments of `skills.delete`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    /// The task that it is removed for.
    task_id: Option<TaskId>,
    /// Its id.
    #[schemars(length(min = 1, max = 128))]
    skill_id: String,
    /// Expected current version.
    expected_version: Option<u64>,
}

struct ListSkillsTool(Arc<SkillStore>);

struct GetSkillTool(Arc<SkillStore>);

struct CreateSkillTool(Arc<SkillStore>);

struct UpdateSkillTool(Arc<SkillStore>);

struct DeleteSkillTool(Arc<SkillStore>);

/// Returns the tools.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(library: SkillStore) -> Tools {
    let library = Arc::new(library);
    let define = |name, summary, input| Definition::named(name, Category::Memory, summary, input);
    let list =
        define("skills.list", "Lists the skills available to the task.", schema_of::<ListArguments>())?;
    let get = define("skills.get", "Returns a skill.", schema_of::<GetArguments>())?;
    // Skills affect other agents, so changing them is more than a read.
    let planners = |definition: Definition, effect| {
        let action = ActionType::from(BuiltInAction::DocsWrite);
        Definition { scope: ToolScope::Pm, effect, action, ..definition }
    };
    let create = planners(
        define("skills.create", "Creates a skill.", schema_of::<CreateArguments>())?,
        Effect::Additive,
    );
    let update = define("skills.update", "Changes a skill.", schema_of::<UpdateArguments>())?;
    let update = planners(update, Effect::Destructive);
    let delete = define("skills.delete", "Removes a skill.", schema_of::<DeleteArguments>())?;
    let delete = Definition { is_guarded: true, ..planners(delete, Effect::Destructive) };
    Ok(vec![
        tool(list, ListSkillsTool(Arc::clone(&library))),
        tool(get, GetSkillTool(Arc::clone(&library))),
        tool(create, CreateSkillTool(Arc::clone(&library))),
        tool(update, UpdateSkillTool(Arc::clone(&library))),
        tool(delete, DeleteSkillTool(library)),
    ])
}

impl TypedTool for ListSkillsTool {
    type Arguments = ListArguments;

    async fn call(&self, caller: &Caller, arguments: ListArguments) -> Answer {
        let only = arguments.scope.as_deref().map(scope).transpose()?;
        let scopes = caller.scopes(arguments.task_id.as_ref());
        // A scope that the caller may not name appears empty.
        let named = only.as_ref().filter(|scope| may_name(caller, scope).is_ok());
        let scopes = named.into_iter().fold(scopes, Scopes::with);
        let (kept, of) = (&self.0.skills, &scopes);
        let all = page::all(|after| async move { kept.list(of, after.as_ref(), page::MOST).await }).await;
        let all = all.map_err(|error| Failure::unreachable(&error))?;
        let wanted = all.iter().filter(|skill| only.as_ref().is_none_or(|only| skill.scope == *only));
        Ok(Success::page(wanted.map(told).collect(), Page::new(arguments.offset, arguments.limit)))
    }
}

impl TypedTool for GetSkillTool {
    type Arguments = GetArguments;

    async fn call(&self, caller: &Caller, arguments: GetArguments) -> Answer {
        let scopes = self.0.seen(caller, arguments.task_id.as_ref(), &arguments.skill_id).await?;
        let found = self.0.skills.resolve(&arguments.skill_id, &scopes).await;
        let found = found.map_err(|error| Failure::unreachable(&error))?;
        let missing =
            || Failure::new(DomainCode::NotFound, format!("skill not found: {:?}", arguments.skill_id));
        let (skill, content) = found.ok_or_else(missing)?;
        let mut told = told(&skill);
        told["content"] = content.into();
        Ok(Success::of(told))
    }
}

impl TypedTool for CreateSkillTool {
    type Arguments = CreateArguments;

    async fn call(&self, caller: &Caller, arguments: CreateArguments) -> Answer {
        let task = arguments.task_id.or_else(|| caller.task_id.clone());
        let of_task = || {
            let neither = || Failure::argument("scope: required unless task_id is given");
            task.map(Scope::Task).ok_or_else(neither)
        };
        let scope = arguments.scope.as_deref().map_or_else(of_task, scope)?;
        may_write(caller, &scope)?;
        let new = NewSkill {
            id: SkillId::parse(&(self.0.new_id)())
                .map_err(|error| Failure::internal("make an id", &error))?,
            name: label(&arguments.name)?,
            scope,
            content: arguments.content,
        };
        let created = self.0.skills.create(new, edit(caller, &self.0.clock)?).await;
        Ok(Success::of(told(&created.map_err(|error| failed(&error))?)))
    }
}

impl TypedTool for UpdateSkillTool {
    type Arguments = UpdateArguments;

    async fn call(&self, caller: &Caller, arguments: UpdateArguments) -> Answer {
        let change = SkillChange {
            name: arguments.name.as_deref().map(label).transpose()?,
            scope: arguments.scope.as_deref().map(scope).transpose()?,
            content: arguments.content,
            expected_version: arguments.expected_version,
        };
        change.scope.iter().try_for_each(|scope| may_write(caller, scope))?;
        let id = id(&arguments.skill_id)?;
        let scopes = self.0.seen(caller, arguments.task_id.as_ref(), id.as_str()).await?;
        self.0.may_change(caller, &id, &scopes).await?;
        let updated = self.0.skills.update(&id, change, &scopes, edit(caller, &self.0.clock)?).await;
        Ok(Success::of(told(&updated.map_err(|error| failed(&error))?)))
    }
}

impl TypedTool for DeleteSkillTool {
    type Arguments = DeleteArguments;

    async fn call(&self, caller: &Caller, arguments: DeleteArguments) -> Answer {
        let id = id(&arguments.skill_id)?;
        let scopes = self.0.seen(caller, arguments.task_id.as_ref(), id.as_str()).await?;
        self.0.may_change(caller, &id, &scopes).await?;
        let deleted = self.0.skills.delete(&id, arguments.expected_version, &scopes).await;
        Ok(Success::of(told(&deleted.map_err(|error| failed(&error))?)))
    }
}

// === impl SkillStore ===

impl SkillStore {
    /// Returns the scopes in which a caller sees a skill: the task's, and the skill's own if the caller may name it.
    async fn seen(&self, caller: &Caller, task: Option<&TaskId>, skill: &str) -> Result<Scopes, Failure> {
        let scopes = caller.scopes(task);
        let Ok(id) = SkillId::parse(skill) else { return Ok(scopes) };
        let own = self.skills.scope_of(&id).await.map_err(|error| Failure::unreachable(&error))?;
        Ok(match own.filter(|own| may_name(caller, own).is_ok()) {
            Some(own) => scopes.with(&own),
            None => scopes,
        })
    }

    /// Checks that the caller may write to the skill's scope. An unknown skill is reported by the operation itself.
    async fn may_change(&self, caller: &Caller, id: &SkillId, scopes: &Scopes) -> Result<(), Failure> {
        let found = self.skills.find(id, scopes).await.map_err(|error| Failure::unreachable(&error))?;
        found.map_or(Ok(()), |(skill, _)| may_write(caller, &skill.scope))
    }
}

fn id(text: &str) -> Result<SkillId, Failure> {
    SkillId::parse(text).map_err(|error| Failure::argument(format!("skill_id: {error}")))
}

fn label(text: &str) -> Result<Label, Failure> {
    Label::parse(text).map_err(|error| Failure::argument(format!("name: {error}")))
}

fn scope(text: &str) -> Result<Scope, Failure> {
    Scope::parse(text).map_err(|error| Failure::argument(format!("scope: {error}")))
}

fn failed(error: &SkillError) -> Failure {
    let code = match error {
        SkillError::Missing { .. } => DomainCode::NotFound,
        SkillError::Exists { .. } | SkillError::Version(_) => DomainCode::Conflict,
        SkillError::TooLarge { .. } | SkillError::TooMany { .. } => DomainCode::LimitExceeded,
        SkillError::Rejected(rejection) => {
            let said = format!("{rejection} ({}): {:?}", rejection.category, rejection.text);
            return Failure::new(DomainCode::InvalidArgument, said);
        }
        SkillError::Database(error) => return Failure::unreachable(error),
    };
    Failure::new(code, error.to_string())
}

fn told(skill: &Skill) -> Value {
    json!({
        "id": skill.id.as_str(),
        "name": skill.name.as_str(),
        "scope": skill.scope.to_string(),
        "size_bytes": skill.size_bytes,
        "version": skill.version,
        "updated_at": skill.updated_at.to_string(),
        "updated_by": skill.updated_by.as_str(),
    })
}
