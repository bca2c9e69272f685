//! `db.preference.*`: preferences of users, groups, projects and tasks. Jobs get the effective ones in their context.

use super::writer::{edit, may_name, may_write};
use super::{Clock, Tools};
use crate::answer::{Answer, Failure, Page, Success};
use crate::caller::Caller;
use crate::definition::{Definition, Effect};
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::id::TaskId;
use belljar_contract::key::Key;
use belljar_contract::preference::{Preference, ValueType};
use belljar_contract::scope::{Scope, Scopes};
use belljar_contract::tool::{DomainCode, ToolScope};
use belljar_store::page;
use belljar_store::preferences::{NewPreference, PreferenceError, Preferences};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Store of preferences.
#[derive(Clone)]
pub struct PreferenceStore {
    /// The preferences.
    pub preferences: Preferences,
    /// Returns the time of day.
    pub clock: Clock,
}

/// Kind of a scope.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScopeType {
    System,
    Group,
    User,
    Project,
    Task,
}

/// The preference.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    scope_type: ScopeType,
    /// Id of the group, user, project or task; absent for the system.
    scope_id: Option<String>,
    /// Key, as `language.preferred`.
    key: String,
}

/// The scope and the page of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    scope_type: ScopeType,
    /// Id of the group, user, project or task; absent for the system.
    scope_id: Option<String>,
    /// Number of entries to skip.
    offset: Option<usize>,
    /// Maximum number of entries to return.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// The new preference.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    scope_type: ScopeType,
    /// Id of the group, user, project or task; absent for the system.
    scope_id: Option<String>,
    /// Key, as `language.preferred`.
    key: String,
    /// Value; `null` hides the value of wider scopes.
    value: Value,
    /// Type of the value.
    value_type: ValueTypeName,
    /// Expected current version.
    expected_version: Option<u64>,
    /// Reason; it is recorded.
    #[expect(dead_code, reason = "it is recorded with the call")]
    reason: Option<String>,
}

/// Type of a value.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ValueTypeName {
    String,
    Number,
    Boolean,
    Object,
    Array,
}

/// The preference to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    scope_type: ScopeType,
    /// Id of the group, user, project or task; absent for the system.
    scope_id: Option<String>,
    /// Key.
    key: String,
    /// Expected current version.
    expected_version: Option<u64>,
}

/// The task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EffectiveArguments {
    /// The task.
    task_id: TaskId,
    /// True to include the scope of each value.
    include_sources: Option<bool>,
}

struct GetPreferenceTool(Arc<PreferenceStore>);

struct ListPreferencesTool(Arc<PreferenceStore>);

struct CreatePreferenceTool(Arc<PreferenceStore>);

struct UpdatePreferenceTool(Arc<PreferenceStore>);

struct DeletePreferenceTool(Arc<PreferenceStore>);

struct EffectivePreferencesTool(Arc<PreferenceStore>);

/// Returns the tools.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(wishes: PreferenceStore) -> Tools {
    let wishes = Arc::new(wishes);
    let define = |name, summary, input, effect| {
        let definition = Definition::named(name, Category::Memory, summary, input)?;
        // Preferences affect other agents, so changing them is more than a read.
        let action = match effect {
            Effect::ReadOnly => definition.action.clone(),
            _ => ActionType::from(BuiltInAction::DocsWrite),
        };
        Ok(Definition { scope: ToolScope::Pm, effect, action, ..definition })
    };
    let reads = Effect::ReadOnly;
    let get = define("db.preference.get", "Returns a preference.", schema_of::<GetArguments>(), reads)?;
    let list =
        define("db.preference.list", "Lists preferences of a scope.", schema_of::<ListArguments>(), reads)?;
    let about = "Returns the effective preferences of a task: task overrides project, user, groups and \
    system.";
    let effective = define("db.preference.effective", about, schema_of::<EffectiveArguments>(), reads)?;
    let write = schema_of::<WriteArguments>;
    let create = define("db.preference.create", "Creates a preference.", write(), Effect::Additive)?;
    let update = define("db.preference.update", "Changes a preference.", write(), Effect::Destructive)?;
    let delete = schema_of::<DeleteArguments>();
    let delete = define("db.preference.delete", "Removes a preference.", delete, Effect::Destructive)?;
    let delete = Definition { is_guarded: true, ..delete };
    Ok(vec![
        tool(get, GetPreferenceTool(Arc::clone(&wishes))),
        tool(list, ListPreferencesTool(Arc::clone(&wishes))),
        tool(effective, EffectivePreferencesTool(Arc::clone(&wishes))),
        tool(create, CreatePreferenceTool(Arc::clone(&wishes))),
        tool(update, UpdatePreferenceTool(Arc::clone(&wishes))),
        tool(delete, DeletePreferenceTool(wishes)),
    ])
}

impl TypedTool for GetPreferenceTool {
    type Arguments = GetArguments;

    async fn call(&self, caller: &Caller, arguments: GetArguments) -> Answer {
        let scope = scope(caller, arguments.scope_type, arguments.scope_id.as_deref())?;
        let key = key(&arguments.key)?;
        let found = self.0.preferences.find(&scope, &key).await;
        let found = found.map_err(|error| Failure::unreachable(&error))?;
        let missing = || Failure::new(DomainCode::NotFound, format!("{scope} has no preference {key}"));
        Ok(Success::of(told(&found.ok_or_else(missing)?)))
    }
}

impl TypedTool for ListPreferencesTool {
    type Arguments = ListArguments;

    async fn call(&self, caller: &Caller, arguments: ListArguments) -> Answer {
        let scope = scope(caller, arguments.scope_type, arguments.scope_id.as_deref())?;
        let scopes = Scopes::default().with(&scope);
        let (kept, of) = (&self.0.preferences, &scopes);
        let all = page::all(|after| async move { kept.list(of, after.as_ref(), page::MOST).await }).await;
        let all = all.map_err(|error| Failure::unreachable(&error))?;
        let of_scope = all.iter().filter(|entry| entry.scope == scope).map(told).collect();
        Ok(Success::page(of_scope, Page::new(arguments.offset, arguments.limit)))
    }
}

impl TypedTool for EffectivePreferencesTool {
    type Arguments = EffectiveArguments;

    async fn call(&self, caller: &Caller, arguments: EffectiveArguments) -> Answer {
        let effective = self.0.preferences.effective(&caller.scopes(Some(&arguments.task_id))).await;
        let effective = effective.map_err(|error| Failure::unreachable(&error))?;
        let has_sources = arguments.include_sources.unwrap_or_default();
        let values = effective.values.iter().filter(|(_, applied)| has_sources || !applied.value.is_null());
        let told = values.map(|(key, applied)| {
            let source = json!({
                "value": applied.value, "scope": applied.scope.to_string(), "version": applied.version
            });
            (key.as_str().to_owned(), if has_sources { source } else { applied.value.clone() })
        });
        let told: serde_json::Map<_, _> = told.collect();
        let skipped = effective.skipped.iter().map(|skipped| {
            json!({ "key": skipped.key.as_str(), "scope": skipped.scope.to_string(), "version": skipped.version })
        });
        Ok(Success::of(json!({ "effective": told, "skipped": skipped.collect::<Vec<_>>() })))
    }
}

impl TypedTool for CreatePreferenceTool {
    type Arguments = WriteArguments;

    async fn call(&self, caller: &Caller, arguments: WriteArguments) -> Answer {
        if arguments.expected_version.is_some() {
            return Err(Failure::argument("expected_version: the preference does not exist yet"));
        }
        let created = self.0.preferences.create(wish(caller, arguments)?, edit(caller, &self.0.clock)?).await;
        Ok(Success::of(told(&created.map_err(|error| failed(&error))?)))
    }
}

impl TypedTool for UpdatePreferenceTool {
    type Arguments = WriteArguments;

    async fn call(&self, caller: &Caller, arguments: WriteArguments) -> Answer {
        let expected = arguments.expected_version;
        let updated =
            self.0.preferences.update(wish(caller, arguments)?, expected, edit(caller, &self.0.clock)?).await;
        Ok(Success::of(told(&updated.map_err(|error| failed(&error))?.after)))
    }
}

impl TypedTool for DeletePreferenceTool {
    type Arguments = DeleteArguments;

    async fn call(&self, caller: &Caller, arguments: DeleteArguments) -> Answer {
        let scope = scope(caller, arguments.scope_type, arguments.scope_id.as_deref())?;
        may_write(caller, &scope)?;
        let deleted =
            self.0.preferences.delete(&scope, &key(&arguments.key)?, arguments.expected_version).await;
        Ok(Success::of(told(&deleted.map_err(|error| failed(&error))?)))
    }
}

fn wish(caller: &Caller, arguments: WriteArguments) -> Result<NewPreference, Failure> {
    let scope = scope(caller, arguments.scope_type, arguments.scope_id.as_deref())?;
    may_write(caller, &scope)?;
    let value_type = match arguments.value_type {
        ValueTypeName::String => ValueType::String,
        ValueTypeName::Number => ValueType::Number,
        ValueTypeName::Boolean => ValueType::Boolean,
        ValueTypeName::Object => ValueType::Object,
        ValueTypeName::Array => ValueType::Array,
    };
    Ok(NewPreference { scope, key: key(&arguments.key)?, value: arguments.value, value_type })
}

/// Parses a scope, if the caller may name it.
fn scope(caller: &Caller, kind: ScopeType, id: Option<&str>) -> Result<Scope, Failure> {
    let prefix = match kind {
        ScopeType::System => "system",
        ScopeType::Group => "group",
        ScopeType::User => "user",
        ScopeType::Project => "project",
        ScopeType::Task => "task",
    };
    let text = id.map_or_else(|| prefix.to_owned(), |id| format!("{prefix}:{id}"));
    let scope = Scope::parse(&text).map_err(|error| Failure::argument(format!("scope_id: {error}")))?;
    may_name(caller, &scope)?;
    Ok(scope)
}

fn key(text: &str) -> Result<Key, Failure> {
    Key::parse(text).map_err(|error| Failure::argument(format!("key: {error}")))
}

fn failed(error: &PreferenceError) -> Failure {
    let code = match error {
        PreferenceError::Database(error) => return Failure::unreachable(error),
        PreferenceError::Exists { .. } | PreferenceError::Version(_) => DomainCode::Conflict,
        PreferenceError::Missing { .. } => DomainCode::NotFound,
        _ => DomainCode::InvalidArgument,
    };
    Failure::new(code, error.to_string())
}

fn told(preference: &Preference) -> Value {
    json!({
        "scope": preference.scope.to_string(),
        "key": preference.key.as_str(),
        "value": preference.value,
        "value_type": preference.value_type.as_str(),
        "version": preference.version,
        "updated_at": preference.updated_at.to_string(),
        "updated_by": preference.updated_by.as_str(),
    })
}
