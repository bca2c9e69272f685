//! Values and rows, in the two types that both engines have: text, and whole numbers of 64 bits.

use super::{DatabaseError, FailureKind};
use jiff::Timestamp;
use rusqlite::types::{FromSql, Value as SqliteValue};
use sqlx::postgres::PgRow;
use sqlx::{Decode, Row as _, Type};
use std::sync::Arc;

/// An argument of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
}

/// A row that a statement has returned.
#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(OwnedRow),
    Postgres(PgRow),
}

/// A row that outlives its statement.
#[derive(Debug)]
pub(crate) struct OwnedRow {
    pub(super) names: Arc<[String]>,
    pub(super) values: Vec<SqliteValue>,
}

/// Arguments of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::database::Value::from($value)),*] };
}
pub(crate) use values;

// === impl Value ===

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::Integer(Some(time.as_millisecond()))
    }
}

impl From<Option<Timestamp>> for Value {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Integer(time.map(Timestamp::as_millisecond))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Integer(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        // Nothing that is counted here comes near the end.
        Self::Integer(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(Some(number.into()))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Integer(Some(truth.into()))
    }
}

// === impl Row ===

impl Row {
    pub(crate) fn text(&self, column: &'static str) -> Result<String, DatabaseError> {
        self.get(column)
    }

    pub(crate) fn optional_text(&self, column: &'static str) -> Result<Option<String>, DatabaseError> {
        self.get(column)
    }

    pub(crate) fn integer(&self, column: &'static str) -> Result<i64, DatabaseError> {
        self.get(column)
    }

    pub(crate) fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, DatabaseError> {
        self.get(column)
    }

    /// A number that is never negative.
    pub(crate) fn count(&self, column: &'static str) -> Result<u64, DatabaseError> {
        u64::try_from(self.integer(column)?).map_err(|error| unreadable(error.into()))
    }

    /// Returns an integer that must fit into a `u32`.
    pub(crate) fn small(&self, column: &'static str) -> Result<u32, DatabaseError> {
        u32::try_from(self.integer(column)?).map_err(|error| unreadable(error.into()))
    }

    /// A time, of which milliseconds are kept.
    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, DatabaseError> {
        Timestamp::from_millisecond(self.integer(column)?).map_err(|error| unreadable(error.into()))
    }

    pub(crate) fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>, DatabaseError> {
        self.optional_integer(column)?.map(|_| self.time(column)).transpose()
    }

    /// Returns the parsed text of a column.
    pub(crate) fn parsed<T, E>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, DatabaseError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        parse(&self.text(column)?).map_err(|error| unreadable(error.into()))
    }

    /// Returns the parsed text of a column; `None` for NULL.
    pub(crate) fn optionally_parsed<T, E>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, DatabaseError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let parsed = self.optional_text(column)?.as_deref().map(parse).transpose();
        parsed.map_err(|error| unreadable(error.into()))
    }

    fn get<T>(&self, column: &'static str) -> Result<T, DatabaseError>
    where
        T: FromSql + for<'r> Decode<'r, sqlx::Postgres> + Type<sqlx::Postgres>,
    {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(row) => row.try_get(column).map_err(|error| unreadable(error.into())),
        }
    }
}

// === impl OwnedRow ===

impl OwnedRow {
    fn get<T: FromSql>(&self, column: &'static str) -> Result<T, DatabaseError> {
        let place = self.names.iter().position(|name| name == column);
        let value = place.and_then(|place| self.values.get(place));
        let value = value.ok_or_else(|| unreadable(format!("it has no {column}").into()))?;
        T::column_result(value.into()).map_err(|error| unreadable(format!("{column}: {error}").into()))
    }
}

/// Error for a row that this program can't read, because it didn't write it.
pub(crate) fn unreadable(source: Box<dyn std::error::Error + Send + Sync>) -> DatabaseError {
    DatabaseError { doing: "read a row of the database", kind: FailureKind::Refused, source }
}
