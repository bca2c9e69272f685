//! Preferences: values by key, each for one scope. [`belljar_policy::preferences`] decides which of them are in effect
//! for a caller.

mod error;

pub use error::{PreferenceError, PreferenceLimit, PreferenceLimits};

use crate::database::{Database, DatabaseError, Row, Sql, Transaction, to_the_end, unreadable, values};
use crate::edit::{Edit, VersionConflict, listed, value, written};
use crate::page::{Page, PageSize};
use crate::skills::in_scopes;
use belljar_contract::id::UserId;
use belljar_contract::key::Key;
use belljar_contract::preference::{Preference, ValueType};
use belljar_contract::scope::{Scope, Scopes};
use belljar_policy::preferences::EffectivePreferences;
use serde_json::Value;

/// The preferences of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Preferences {
    database: Database,
    limits: PreferenceLimits,
}

/// A preference to be written. The caller checks that the user may write it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPreference {
    /// Scope that the preference is for.
    pub scope: Scope,
    /// Key of the preference.
    pub key: Key,
    /// The value.
    pub value: Value,
    /// Declared type; the value must have it.
    pub value_type: ValueType,
}

/// A changed preference, for the audit record.
#[derive(Debug, Clone, PartialEq)]
pub struct PreferenceChange {
    /// The preference before the change.
    pub before: Preference,
    /// The preference after the change.
    pub after: Preference,
}

/// A place in the list: after the entry of that key and scope.
pub type ListPosition = (Key, Scope);

macro_rules! columns {
    () => {
        "number, scope, key, value, value_type, version, updated_at_ms, updated_by"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM preferences WHERE scope = $1 AND key = $2");

const LIST: Sql = in_scopes!(
    concat!("SELECT ", columns!(), " FROM preferences WHERE (key, scope) > ($2, $3) AND"),
    "1",
    " ORDER BY key, scope LIMIT $4"
);

const ALL: Sql = in_scopes!(concat!("SELECT ", columns!(), " FROM preferences WHERE"), "1", "");

const OTHERS: &str = "SELECT count(*) AS entries, CAST(coalesce(sum(length(value)), 0) AS BIGINT) AS characters \
    FROM preferences WHERE scope = $1 AND key <> $2";

const ADD: &str = concat!(
    "INSERT INTO preferences (scope, key, value, value_type, version, updated_at_ms, updated_by) \
     VALUES ($1, $2, $3, $4, 1, $5, $6) RETURNING ",
    columns!()
);

const CHANGE: &str = concat!(
    "UPDATE preferences SET value = $3, value_type = $4, version = version + 1, updated_at_ms = $5, updated_by = $6 \
     WHERE scope = $1 AND key = $2 RETURNING ",
    columns!()
);

const DELETE: &str = "DELETE FROM preferences WHERE scope = $1 AND key = $2";

// === impl Preferences ===

impl Preferences {
    /// Creates the preference store on a database, with limits for each scope.
    pub fn new(database: Database, limits: PreferenceLimits) -> Self {
        Self { database, limits }
    }

    /// Writes a preference of which there is none yet.
    ///
    /// # Errors
    /// [`PreferenceError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn create(&self, wish: NewPreference, edit: Edit) -> Result<Preference, PreferenceError> {
        let (this, text) = (self.clone(), self.limits.check(&wish)?);
        to_the_end(async move {
            let mut transaction = this.database.begin().await?;
            if lock(&mut transaction, &wish.scope, &wish.key).await?.is_some() {
                return Err(PreferenceError::Exists { scope: wish.scope, key: wish.key });
            }
            this.has_room(&mut transaction, &wish, &text).await?;
            let after = write(&mut transaction, ADD, (&wish, text), edit).await?;
            transaction.commit("preference_create").await?;
            Ok(after)
        })
        .await
    }

    /// Changes a preference.
    ///
    /// # Errors
    /// [`PreferenceError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn update(
        &self,
        wish: NewPreference,
        expected_version: Option<u64>,
        edit: Edit,
    ) -> Result<PreferenceChange, PreferenceError> {
        let (this, text) = (self.clone(), self.limits.check(&wish)?);
        to_the_end(async move {
            let mut transaction = this.database.begin().await?;
            let before = there(&mut transaction, &wish.scope, &wish.key, expected_version).await?;
            this.has_room(&mut transaction, &wish, &text).await?;
            let after = write(&mut transaction, CHANGE, (&wish, text), edit).await?;
            transaction.commit("preference_update").await?;
            Ok(PreferenceChange { before, after })
        })
        .await
    }

    /// Removes a preference; what it was.
    ///
    /// # Errors
    /// [`PreferenceError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn delete(
        &self,
        scope: &Scope,
        key: &Key,
        expected_version: Option<u64>,
    ) -> Result<Preference, PreferenceError> {
        let (database, scope, key) = (self.database.clone(), scope.clone(), key.clone());
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            let before = there(&mut transaction, &scope, &key, expected_version).await?;
            transaction.execute(DELETE, values![scope.key(), key.as_str()]).await?;
            transaction.commit("preference_delete").await?;
            Ok(before)
        })
        .await
    }

    /// Returns the preference with that key for that scope, if there is one.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(&self, scope: &Scope, key: &Key) -> Result<Option<Preference>, DatabaseError> {
        let rows = self.database.fetch(FIND, values![scope.key(), key.as_str()]).await?;
        rows.first().map(read).transpose()
    }

    /// Lists the preferences of these scopes after that place, by their keys.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(
        &self,
        scopes: &Scopes,
        after: Option<&ListPosition>,
        most: u32,
    ) -> Result<Page<Preference, ListPosition>, DatabaseError> {
        let size = PageSize::of(most);
        let (key, scope) = after.map_or(("", String::new()), |(key, scope)| (key.as_str(), scope.key()));
        let rows = self.database.fetch(LIST, values![listed(scopes), key, scope, size.to_fetch]).await?;
        let entries = rows.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Page::cut(entries, size, |entry: &Preference| (entry.key.clone(), entry.scope.clone())))
    }

    /// Returns the preferences that are in effect for a caller in these scopes.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn effective(&self, scopes: &Scopes) -> Result<EffectivePreferences, DatabaseError> {
        // The limits of each scope bound the number of rows.
        let rows = self.database.fetch(ALL, values![listed(scopes)]).await?;
        let entries = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(belljar_policy::preferences::effective(&entries, scopes))
    }

    /// Checks that the scope has room for the entry. No other transaction writes to the scope until this one is over.
    async fn has_room(
        &self,
        transaction: &mut Transaction,
        wish: &NewPreference,
        text: &str,
    ) -> Result<(), PreferenceError> {
        let others = transaction.fetch(OTHERS, values![wish.scope.key(), wish.key.as_str()]).await?;
        let Some(others) = others.first() else { return Ok(()) };
        let characters = others.count("characters")?.saturating_add(text.chars().count() as u64);
        self.limits.check_all(others.count("entries")? + 1, characters)
    }
}

/// Returns the entry, if there is one. No other transaction writes to its scope until this one is over.
async fn lock(
    transaction: &mut Transaction,
    scope: &Scope,
    key: &Key,
) -> Result<Option<Preference>, DatabaseError> {
    transaction.alone(&format!("preferences {}", scope.key())).await?;
    let rows = transaction.fetch(FIND, values![scope.key(), key.as_str()]).await?;
    rows.first().map(read).transpose()
}

/// Locks an entry that must exist, in the expected version.
async fn there(
    transaction: &mut Transaction,
    scope: &Scope,
    key: &Key,
    expected_version: Option<u64>,
) -> Result<Preference, PreferenceError> {
    let found = lock(transaction, scope, key).await?;
    let missing = || PreferenceError::Missing { scope: scope.clone(), key: key.clone() };
    let found = found.ok_or_else(missing)?;
    VersionConflict::check(expected_version, Some(found.version))?;
    Ok(found)
}

async fn write(
    transaction: &mut Transaction,
    sql: &'static str,
    (wish, text): (&NewPreference, String),
    edit: Edit,
) -> Result<Preference, DatabaseError> {
    let (key, value_type) = (wish.key.as_str(), wish.value_type.as_str());
    let values = values![wish.scope.key(), key, text, value_type, edit.at, edit.by.as_str()];
    let rows = transaction.fetch(sql, values).await?;
    read(rows.first().ok_or_else(|| unreadable("what was written is not there".into()))?)
}

fn read(row: &Row) -> Result<Preference, DatabaseError> {
    let value_type = row.text("value_type")?;
    let unknown = || unreadable(format!("the type {value_type:?}").into());
    Ok(Preference {
        id: row.count("number")?,
        scope: row.parsed("scope", Scope::parse)?,
        key: row.parsed("key", Key::parse)?,
        value: value(row)?,
        value_type: ValueType::from_name(&value_type).ok_or_else(unknown)?,
        version: row.count("version")?,
        updated_at: row.time("updated_at_ms")?,
        updated_by: row.parsed("updated_by", UserId::parse)?,
    })
}

// === impl PreferenceLimits ===

impl PreferenceLimits {
    /// Checks the limits of a value; returns its stored form.
    fn check(&self, wish: &NewPreference) -> Result<String, PreferenceError> {
        if !wish.value_type.is_of(&wish.value) {
            return Err(PreferenceError::OtherType { value_type: wish.value_type });
        }
        let text = written(&wish.value).ok_or(PreferenceError::Unwritable)?;
        self.check_one(text.len() as u64)?;
        Ok(text)
    }
}
