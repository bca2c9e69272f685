//! Skills: texts that explain to agents how something is done. Each has a scope, and only agents within that scope see
//! it.
//!
//! To an agent that doesn't see a skill, the skill doesn't exist. Every content is scanned before it is stored
//! ([`belljar_policy::skill`]); the scan is a tripwire, not a security boundary.

mod error;

pub use error::SkillError;

use crate::database::{Database, DatabaseError, Row, Sql, Transaction, to_the_end, values};
use crate::edit::{Edit, VersionConflict, listed};
use crate::page::{Page, PageSize};
use belljar_contract::id::{SkillId, UserId};
use belljar_contract::label::Label;
use belljar_contract::scope::{Scope, Scopes};

use belljar_policy::skill::examine;
use jiff::Timestamp;

/// The skills of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Skills {
    database: Database,
}

/// A skill without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Id of the skill.
    pub id: SkillId,
    /// Name of the skill.
    pub name: Label,
    /// Scope of the agents that see the skill.
    pub scope: Scope,
    /// Size of the content, in bytes.
    pub size_bytes: u64,
    /// Version; each write increments it.
    pub version: u64,
    /// Time of the last write.
    pub updated_at: Timestamp,
    /// User who made the last write.
    pub updated_by: UserId,
}

/// A skill to be stored. The caller checks that the user may store one for that scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSkill {
    /// Id of the new skill.
    pub id: SkillId,
    /// Name of the new skill.
    pub name: Label,
    /// Scope of the agents that will see the skill.
    pub scope: Scope,
    /// Content, as Markdown.
    pub content: String,
}

/// Changes to a skill. `None` leaves a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillChange {
    /// New name.
    pub name: Option<Label>,
    /// New scope. The caller checks that the user may change it to that.
    pub scope: Option<Scope>,
    /// New content.
    pub content: Option<String>,
    /// Version that is to be changed. `None` changes any version.
    pub expected_version: Option<u64>,
}

/// A skill has no more bytes.
pub const LONGEST_CONTENT: usize = 256 << 10;

/// A scope has no more skills.
pub const MOST_OF_A_SCOPE: u64 = 500;

/// SQL for each engine, restricted to skills of the scopes that are passed as a list.
macro_rules! in_scopes {
    ($before:expr, $number:literal, $after:expr) => {
        Sql::of_each(
            concat!($before, " scope IN (SELECT value FROM json_each($", $number, "))", $after),
            concat!($before, " scope IN (SELECT json_array_elements_text($", $number, "::json))", $after),
        )
    };
}
pub(crate) use in_scopes;

macro_rules! columns {
    () => {
        "id, name, scope, size_bytes, version, updated_at_ms, updated_by"
    };
}

const FIND: Sql =
    in_scopes!(concat!("SELECT ", columns!(), ", content FROM skills WHERE id = $2 AND"), "1", "");

const SCOPE_OF: &str = "SELECT scope FROM skills WHERE id = $1";

const BY_NAME: Sql = in_scopes!(concat!("SELECT ", columns!(), " FROM skills WHERE name = $2 AND"), "1", "");

const LIST: Sql = in_scopes!(
    concat!("SELECT ", columns!(), " FROM skills WHERE id > $2 AND"),
    "1",
    " ORDER BY id LIMIT $3"
);

const OTHERS: &str = "SELECT count(*) AS skills FROM skills WHERE scope = $1 AND id <> $2";

const ADD: &str = "INSERT INTO skills (id, name, scope, content, size_bytes, version, updated_at_ms, updated_by) \
    VALUES ($1, $2, $3, $4, $5, 1, $6, $7) ON CONFLICT DO NOTHING";

const IS_TAKEN: &str = "SELECT id FROM skills WHERE scope = $1 AND name = $2 AND id <> $3";

const CHANGE: &str = "UPDATE skills SET name = $2, scope = $3, content = $4, size_bytes = $5, version = version + 1, \
    updated_at_ms = $6, updated_by = $7 WHERE id = $1";

const DELETE: &str = "DELETE FROM skills WHERE id = $1";

// === impl Skills ===

impl Skills {
    /// Creates the skill store on a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Stores a skill.
    ///
    /// # Errors
    /// [`SkillError`]; it isn't stored then, unless the database reports that the outcome is in doubt.
    pub async fn create(&self, skill: NewSkill, edit: Edit) -> Result<Skill, SkillError> {
        check(&skill.name, &skill.content)?;
        let database = self.database.clone();
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            let NewSkill { id, name, scope, content } = skill;
            has_room(&mut transaction, &scope, &id).await?;
            let size_bytes = content.len() as u64;
            let (at, by) = (edit.at, edit.by.clone());
            let values =
                values![id.as_str(), name.as_str(), scope.key(), content, size_bytes, at, by.as_str()];
            if transaction.execute(ADD, values).await? == 0 {
                return Err(SkillError::Exists { name });
            }
            transaction.commit("skill_create").await?;
            Ok(Skill { id, name, scope, size_bytes, version: 1, updated_at: at, updated_by: by })
        })
        .await
    }

    /// Changes a skill that is visible to callers in these scopes.
    ///
    /// # Errors
    /// [`SkillError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn update(
        &self,
        id: &SkillId,
        change: SkillChange,
        scopes: &Scopes,
        edit: Edit,
    ) -> Result<Skill, SkillError> {
        let (database, id, seen) = (self.database.clone(), id.clone(), listed(scopes));
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            let (before, content) = lock(&mut transaction, &id, &seen).await?;
            VersionConflict::check(change.expected_version, Some(before.version))?;
            let name = change.name.unwrap_or(before.name);
            let scope = change.scope.unwrap_or(before.scope);
            let content = change.content.unwrap_or(content);
            check(&name, &content)?;
            has_room(&mut transaction, &scope, &id).await?;
            let taken = values![scope.key(), name.as_str(), id.as_str()];
            if !transaction.fetch(IS_TAKEN, taken).await?.is_empty() {
                return Err(SkillError::Exists { name });
            }
            let size_bytes = content.len() as u64;
            let (at, by) = (edit.at, edit.by);
            let values =
                values![id.as_str(), name.as_str(), scope.key(), content, size_bytes, at, by.as_str()];
            transaction.execute(CHANGE, values).await?;
            transaction.commit("skill_update").await?;
            let version = before.version + 1;
            Ok(Skill { id, name, scope, size_bytes, version, updated_at: at, updated_by: by })
        })
        .await
    }

    /// Deletes a skill that is visible to callers in these scopes; returns its metadata.
    ///
    /// # Errors
    /// [`SkillError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn delete(
        &self,
        id: &SkillId,
        expected_version: Option<u64>,
        scopes: &Scopes,
    ) -> Result<Skill, SkillError> {
        let (database, id, seen) = (self.database.clone(), id.clone(), listed(scopes));
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            let (before, _) = lock(&mut transaction, &id, &seen).await?;
            VersionConflict::check(expected_version, Some(before.version))?;
            transaction.execute(DELETE, values![id.as_str()]).await?;
            transaction.commit("skill_delete").await?;
            Ok(before)
        })
        .await
    }

    /// Returns a skill that is visible to callers in these scopes, with its content.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(
        &self,
        id: &SkillId,
        scopes: &Scopes,
    ) -> Result<Option<(Skill, String)>, DatabaseError> {
        let rows = self.database.fetch(FIND, values![listed(scopes), id.as_str()]).await?;
        rows.first().map(with_content).transpose()
    }

    /// Returns the scope of a skill, even if it is outside of the caller's scopes.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn scope_of(&self, id: &SkillId) -> Result<Option<Scope>, DatabaseError> {
        let rows = self.database.fetch(SCOPE_OF, values![id.as_str()]).await?;
        rows.first().map(|row| row.parsed("scope", Scope::parse)).transpose()
    }

    /// Resolves a text to a skill that is visible to callers in these scopes: by id, or else the one with that name in
    /// the nearest scope.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn resolve(
        &self,
        id_or_name: &str,
        scopes: &Scopes,
    ) -> Result<Option<(Skill, String)>, DatabaseError> {
        if let Ok(id) = SkillId::parse(id_or_name)
            && let Some(found) = self.find(&id, scopes).await?
        {
            return Ok(Some(found));
        }
        let Ok(name) = Label::parse(id_or_name) else { return Ok(None) };
        let rows = self.database.fetch(BY_NAME, values![listed(scopes), name.as_str()]).await?;
        let named = rows.iter().map(Skill::read).collect::<Result<Vec<_>, _>>()?;
        match named.into_iter().max_by_key(|skill| scopes.nearness(&skill.scope)) {
            Some(nearest) => self.find(&nearest.id, scopes).await,
            None => Ok(None),
        }
    }

    /// Lists the skills after the given one that are visible to callers in these scopes.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(
        &self,
        scopes: &Scopes,
        after: Option<&SkillId>,
        most: u32,
    ) -> Result<Page<Skill, SkillId>, DatabaseError> {
        let size = PageSize::of(most);
        let after = after.map_or("", SkillId::as_str);
        let rows = self.database.fetch(LIST, values![listed(scopes), after, size.to_fetch]).await?;
        let skills = rows.iter().map(Skill::read).collect::<Result<_, _>>()?;
        Ok(Page::cut(skills, size, |skill: &Skill| skill.id.clone()))
    }
}

fn check(name: &Label, content: &str) -> Result<(), SkillError> {
    let size_bytes = content.len() as u64;
    if size_bytes > LONGEST_CONTENT as u64 {
        return Err(SkillError::TooLarge { size_bytes });
    }
    // Names are scanned, too: the same agents read them in lists.
    examine(name.as_str())?;
    Ok(examine(content)?)
}

/// Checks that the scope has room for one more skill. No other transaction adds skills until this one is over.
async fn has_room(transaction: &mut Transaction, scope: &Scope, id: &SkillId) -> Result<(), SkillError> {
    transaction.alone("skills").await?;
    let others = transaction.fetch(OTHERS, values![scope.key(), id.as_str()]).await?;
    let others = others.first().map_or(Ok(0), |row| row.count("skills"))?;
    if others >= MOST_OF_A_SCOPE { Err(SkillError::TooMany { most: MOST_OF_A_SCOPE }) } else { Ok(()) }
}

/// Locks a skill that is visible in these scopes. No other transaction changes it until this one is over.
async fn lock(
    transaction: &mut Transaction,
    id: &SkillId,
    seen: &str,
) -> Result<(Skill, String), SkillError> {
    transaction.alone("skills").await?;
    let rows = transaction.fetch(FIND, values![seen, id.as_str()]).await?;
    let row = rows.first().ok_or_else(|| SkillError::Missing { id: id.clone() })?;
    Ok(with_content(row)?)
}

fn with_content(row: &Row) -> Result<(Skill, String), DatabaseError> {
    Ok((Skill::read(row)?, row.text("content")?))
}

// === impl Skill ===

impl Skill {
    fn read(row: &Row) -> Result<Self, DatabaseError> {
        Ok(Self {
            id: row.parsed("id", SkillId::parse)?,
            name: row.parsed("name", Label::parse)?,
            scope: row.parsed("scope", Scope::parse)?,
            size_bytes: row.count("size_bytes")?,
            version: row.count("version")?,
            updated_at: row.time("updated_at_ms")?,
            updated_by: row.parsed("updated_by", UserId::parse)?,
        })
    }
}
