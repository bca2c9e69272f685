//! Adds context to a job: preferences and skills of its user, groups and project, as they are when the job is accepted
//! (`docs/contracts/job.md#j9`). The job's own context takes precedence.

mod files;
mod identity;

use super::NodeState;
use belljar_contract::id::JobId;
use belljar_contract::scope::Scopes;
use belljar_contract::worker::assignment::Assignment;
use belljar_policy::preferences::{ContextAgent, EffectivePreferences};
use belljar_store::audit::{Event, EventError};
use belljar_store::database::DatabaseError;
use belljar_store::preferences::{self, Preferences};
use belljar_store::skills::Skills;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The stores of preferences and skills.
#[derive(Debug, Clone)]
pub(crate) struct ContextStores {
    preferences: Preferences,
    skills: Skills,
}

/// Reasons why the context can't be added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The job with the added context is not a valid job.
    #[error("what was looked up for the job does not fit into it: {why}")]
    Unfit { why: String },
    #[error(transparent)]
    Event(#[from] EventError),
}

/// Audit record of the preferences and skills that a job was given.
#[derive(Debug, Serialize)]
struct ContextAppliedRecord<'a> {
    job_id: &'a JobId,
    preferences: Vec<Value>,
    skipped: usize,
    skills: Vec<Value>,
}

/// Kind of the audit record.
const RESOLVED: &str = "job_context_resolved";

/// Maximum size of all added skills together, in bytes.
const LONGEST_SKILLS: usize = 1 << 20;

// === impl ContextStores ===

impl ContextStores {
    pub(crate) fn new(database: &belljar_store::database::Database) -> Self {
        let preferences = Preferences::new(database.clone(), preferences::PreferenceLimits::default());
        Self { preferences, skills: Skills::new(database.clone()) }
    }

    /// Adds the preferences and skills of those scopes to a context. Returns what was added; `None` if there was nothing.
    async fn fill(
        &self,
        context: &mut Map<String, Value>,
        scopes: &Scopes,
    ) -> Result<Option<(EffectivePreferences, Vec<Value>)>, DatabaseError> {
        let effective = self.preferences.effective(scopes).await?;
        let skills = self.add_skills(context, scopes).await?;
        let has_preferences = add_preferences(context, &effective);
        Ok((has_preferences || !skills.is_empty()).then_some((effective, skills)))
    }

    /// Adds the contents of skills that the job names. Unknown ones, and those that exceed the size limit, stay as names, for
    /// the agent to fetch.
    async fn add_skills(
        &self,
        context: &mut Map<String, Value>,
        scopes: &Scopes,
    ) -> Result<Vec<Value>, DatabaseError> {
        let named = context.get("skill_ids").and_then(Value::as_array).cloned().unwrap_or_default();
        let (mut found, mut left, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut applied = Vec::new();
        for name in named {
            let skill = match name.as_str() {
                Some(name) => self.skills.resolve(name, scopes).await?,
                None => None,
            };
            match skill {
                Some((skill, content)) if bytes + content.len() <= LONGEST_SKILLS => {
                    bytes += content.len();
                    let scope = skill.scope.to_string();
                    applied
                        .push(json!({ "id": skill.id.as_str(), "version": skill.version, "scope": scope }));
                    found.push(
                        json!({ "id": skill.id.as_str(), "name": skill.name.as_str(), "content": content }),
                    );
                }
                _ => left.push(name),
            }
        }
        if !found.is_empty() {
            context.insert("skill_ids".to_owned(), left.into());
            let given = context.remove("skills");
            context.insert("skills".to_owned(), with_given(given, found));
        }
        Ok(applied)
    }
}

/// Joins the job's own skills and those that were found.
fn with_given(given: Option<Value>, found: Vec<Value>) -> Value {
    let mut all = match given {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(given)) => given,
        Some(Value::Object(given)) if !given.contains_key("content") => {
            given.into_iter().map(|(name, content)| json!({ "name": name, "content": content })).collect()
        }
        Some(one) => vec![one],
    };
    all.extend(found);
    all.into()
}

/// Adds the effective preferences that the job doesn't set itself. Returns true if there are any.
fn add_preferences(context: &mut Map<String, Value>, effective: &EffectivePreferences) -> bool {
    let own = ContextAgent::Sandbox.key();
    let told: Vec<_> = effective
        .values
        .iter()
        .filter(|(key, applied)| !key.as_str().starts_with("agents.") && !applied.value.is_null())
        .map(|(key, applied)| (key.as_str().to_owned(), applied.value.clone()))
        .collect();
    let more = effective.additional_context(ContextAgent::Sandbox);
    if told.is_empty() && more.is_none() {
        return false;
    }
    let preferences = context.entry("preferences").or_insert_with(|| json!({}));
    if let Some(preferences) = preferences.as_object_mut() {
        let says_itself = preferences.contains_key(own);
        for (key, value) in told {
            preferences.entry(key).or_insert(value);
        }
        if let Some(more) = more.filter(|_| !says_itself) {
            let given = context.get("additional_context").and_then(Value::as_str).unwrap_or_default();
            let all = [given, &more].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
            context.insert("additional_context".to_owned(), all.join("\n\n").into());
        }
    }
    true
}

/// Returns a job with its added context; `None` if nothing was added, or the job has no agent to read it. What was added is
/// recorded in the audit log.
pub(crate) async fn resolved(
    workplace: &NodeState,
    assignment: &Assignment,
) -> Result<Option<Assignment>, ContextError> {
    let has_agent = assignment.sandbox.job_spec.as_ref().is_some_and(|spec| spec.job.inference.is_some());
    if !has_agent {
        return Ok(None);
    }
    let unfit = |why: &dyn ToString| ContextError::Unfit { why: why.to_string() };
    let mut document = serde_json::to_value(assignment).map_err(|error| unfit(&error))?;
    let spec = &mut document["sandbox"]["job_spec"];
    let mut context = spec.get("context").and_then(Value::as_object).cloned().unwrap_or_default();
    let has_files = files::put_into(&mut context, &assignment.sandbox.context_files);
    let is_identified = identity::add(&mut context, assignment);
    let applied = workplace.library.fill(&mut context, &assignment.scopes()).await?;
    if !has_files && !is_identified && applied.is_none() {
        return Ok(None);
    }
    spec["context"] = context.into();
    let resolved = Assignment::parse(document.to_string().as_bytes()).map_err(|problems| unfit(&problems))?;
    if let Some((effective, skills)) = applied {
        record(workplace, assignment, (effective, skills))?;
    }
    Ok(Some(resolved))
}

/// Records the preferences and skills that a job was given.
fn record(
    workplace: &NodeState,
    assignment: &Assignment,
    (effective, skills): (EffectivePreferences, Vec<Value>),
) -> Result<(), EventError> {
    let preferences = effective.values.iter().map(|(key, applied)| {
        json!({ "key": key.as_str(), "scope": applied.scope.to_string(), "version": applied.version })
    });
    let applied = ContextAppliedRecord {
        job_id: &assignment.job_id,
        preferences: preferences.collect(),
        skipped: effective.skipped.len(),
        skills,
    };
    workplace.audit.submit(Event::new(RESOLVED, None, &applied)?, |written| {
        if let Err(error) = written {
            tracing::error!(%error, "what a job was given can't be recorded");
        }
    });
    Ok(())
}
