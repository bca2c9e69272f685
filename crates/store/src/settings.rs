//! Settings that operators make for the whole system, for example `mcp.tools.disabled`. Unlike preferences, only
//! operators write them, and no scope overrides them. The caller checks that the user is an operator.

use crate::database::{Database, DatabaseError, Row, Transaction, to_the_end, values};
use crate::edit::{Edit, VersionConflict, value, written};
use crate::page::{Page, PageSize};
use belljar_contract::id::UserId;
use belljar_contract::key::Key;
use jiff::Timestamp;
use serde_json::Value;

/// The settings of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Settings {
    database: Database,
}

/// A setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Key of the setting.
    pub key: Key,
    /// Its value.
    pub value: Value,
    /// Version; each write increments it.
    pub version: u64,
    /// Time of the last write.
    pub updated_at: Timestamp,
    /// User who made the last write.
    pub updated_by: UserId,
}

/// A written setting, for the audit record.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    /// Setting before the write, if there was one.
    pub before: Option<Setting>,
    /// Setting after the write.
    pub after: Setting,
}

/// A setting is not written.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The setting was changed meanwhile.
    #[error(transparent)]
    Version(#[from] VersionConflict),
    /// The setting doesn't exist.
    #[error("there is no setting {key}")]
    Missing {
        /// Key of the setting.
        key: Key,
    },
    /// The value is too large, or nested too deep to be read back.
    #[error("the value is nested too deep, or has more than {LONGEST_VALUE} bytes")]
    Value,
    /// The maximum number of settings is reached.
    #[error("there are {most} settings, and no more may be there")]
    TooMany {
        /// Maximum number.
        most: u64,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Maximum number of settings.
pub const MOST: u64 = 1_000;

/// Maximum length of a value as JSON, in bytes.
pub const LONGEST_VALUE: usize = 64 << 10;

macro_rules! columns {
    () => {
        "key, value, version, updated_at_ms, updated_by"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM settings WHERE key = $1");

const LIST: &str = concat!("SELECT ", columns!(), " FROM settings WHERE key > $1 ORDER BY key LIMIT $2");

const OTHERS: &str = "SELECT count(*) AS settings FROM settings WHERE key <> $1";

const SET: &str = "INSERT INTO settings (key, value, version, updated_at_ms, updated_by) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, \
    updated_at_ms = excluded.updated_at_ms, updated_by = excluded.updated_by";

const DELETE: &str = "DELETE FROM settings WHERE key = $1";

// === impl Settings ===

impl Settings {
    /// Creates the settings store on a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Writes a setting, if the version that is expected is there, or none is expected.
    ///
    /// # Errors
    /// [`SettingError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn set(
        &self,
        key: &Key,
        value: Value,
        expected_version: Option<u64>,
        edit: Edit,
    ) -> Result<SettingChange, SettingError> {
        let text = written(&value).filter(|text| text.len() <= LONGEST_VALUE).ok_or(SettingError::Value)?;
        let (database, key) = (self.database.clone(), key.clone());
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            let before = lock(&mut transaction, &key).await?;
            let found = before.as_ref().map(|setting| setting.version);
            VersionConflict::check(expected_version, found)?;
            let others = transaction.fetch(OTHERS, values![key.as_str()]).await?;
            if others.first().map_or(Ok(0), |row| row.count("settings"))? >= MOST {
                return Err(SettingError::TooMany { most: MOST });
            }
            let version = found.unwrap_or(0) + 1;
            let Edit { by, at } = edit;
            transaction.execute(SET, values![key.as_str(), text, version, at, by.as_str()]).await?;
            transaction.commit("setting_set").await?;
            Ok(SettingChange {
                before,
                after: Setting { key, value, version, updated_at: at, updated_by: by },
            })
        })
        .await
    }

    /// Removes a setting; what it was.
    ///
    /// # Errors
    /// [`SettingError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn delete(&self, key: &Key, expected_version: Option<u64>) -> Result<Setting, SettingError> {
        let (database, key) = (self.database.clone(), key.clone());
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            let before = lock(&mut transaction, &key).await?;
            let before = before.ok_or_else(|| SettingError::Missing { key: key.clone() })?;
            VersionConflict::check(expected_version, Some(before.version))?;
            transaction.execute(DELETE, values![key.as_str()]).await?;
            transaction.commit("setting_delete").await?;
            Ok(before)
        })
        .await
    }

    /// Returns the setting with that key, if there is one.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(&self, key: &Key) -> Result<Option<Setting>, DatabaseError> {
        self.database.fetch(FIND, values![key.as_str()]).await?.first().map(Setting::read).transpose()
    }

    /// Lists the settings after that key.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(&self, after: Option<&Key>, most: u32) -> Result<Page<Setting, Key>, DatabaseError> {
        let size = PageSize::of(most);
        let rows = self.database.fetch(LIST, values![after.map_or("", Key::as_str), size.to_fetch]).await?;
        let settings = rows.iter().map(Setting::read).collect::<Result<_, _>>()?;
        Ok(Page::cut(settings, size, |setting: &Setting| setting.key.clone()))
    }
}

/// Returns the setting, if there is one. No other transaction writes settings until this one is over.
async fn lock(transaction: &mut Transaction, key: &Key) -> Result<Option<Setting>, DatabaseError> {
    transaction.alone("settings").await?;
    transaction.fetch(FIND, values![key.as_str()]).await?.first().map(Setting::read).transpose()
}

// === impl Setting ===

impl Setting {
    fn read(row: &Row) -> Result<Self, DatabaseError> {
        Ok(Self {
            key: row.parsed("key", Key::parse)?,
            value: value(row)?,
            version: row.count("version")?,
            updated_at: row.time("updated_at_ms")?,
            updated_by: row.parsed("updated_by", UserId::parse)?,
        })
    }
}
