//! Reads LiteLLM's spend logs: `GET /spend/logs`, day by day, with the provider's credential.
//!
//! LiteLLM returns at most the latest 10,000 rows of a query, and reports further ones in a header. Some of its versions ignore
//! `end_user` and return the rows of all users, so the caller has to filter them.

mod spend_request;

use crate::inference::models::{Provider, ProviderKind};
use crate::upstream::Pool;
use crate::upstream::names::NameSource;
use belljar_contract::spend::{SpendRow, SpendRowsError};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use spend_request::SpendClient;
use std::collections::HashSet;

/// Range of calendar days, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    first: Date,
    last: Date,
}

/// The range has more days than may be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the range from {first} to {last} has more than {} days", Days::MOST)]
pub struct TooManyDaysError {
    /// First day.
    pub first: Date,
    /// Last day.
    pub last: Date,
}

/// Reason why LiteLLM's spend logs can't be read. It contains no part of the credential.
#[derive(Debug, thiserror::Error)]
pub enum SpendError {
    /// The provider is not LiteLLM; no other keeps spend logs.
    #[error("{provider} is of the kind {kind}, and only LiteLLM keeps spend logs")]
    NotLiteLlm {
        /// Name of the provider.
        provider: String,
        /// Kind of the provider.
        kind: ProviderKind,
    },
    /// The credential can't be obtained.
    #[error("there is no credential for {provider}")]
    Credential {
        /// Name of the provider.
        provider: String,
        /// Reason.
        #[source]
        source: crate::credential::CredentialError,
    },
    /// The connection failed, or ended in the middle of an answer.
    #[error("no connection to {provider}")]
    Connection {
        /// Name of the provider.
        provider: String,
        /// Reason.
        #[source]
        source: std::io::Error,
    },
    /// The time limit was exceeded.
    #[error("{provider} did not return its spend logs in time")]
    OutOfTime {
        /// Name of the provider.
        provider: String,
    },
    /// The answer is not valid HTTP.
    #[error("{provider} sent a malformed answer")]
    Malformed {
        /// Name of the provider.
        provider: String,
        /// Reason.
        #[source]
        source: crate::http1::MalformedHttp,
    },
    /// The answer is too large.
    #[error(
        "the spend logs of {provider} for one day are larger than {} bytes",
        spend_request::LARGEST_ANSWER
    )]
    TooLarge {
        /// Name of the provider.
        provider: String,
    },
    /// The provider has no database.
    #[error("{provider} has no database, and so it keeps no spend logs")]
    NoDatabase {
        /// Name of the provider.
        provider: String,
    },
    /// The provider rejects the credential.
    #[error("{provider} answered with {status}: its spend logs are not for this credential")]
    Forbidden {
        /// Name of the provider.
        provider: String,
        /// HTTP status.
        status: u16,
    },
    /// The answer has an unexpected status.
    #[error("{provider} answered with {status} instead of its spend logs")]
    Status {
        /// Name of the provider.
        provider: String,
        /// HTTP status.
        status: u16,
    },
    /// The answer contains the credential.
    #[error("{provider} repeats the credential in its answer")]
    Echo {
        /// Name of the provider.
        provider: String,
    },
    /// The provider has more rows than it returns.
    #[error("{provider} has more rows for {day} than it returns at once: a partial result can't be compared")]
    Truncated {
        /// Name of the provider.
        provider: String,
        /// The day.
        day: Date,
    },
    /// The answer has no valid rows.
    #[error("{provider} returned malformed spend logs")]
    Rows {
        /// Name of the provider.
        provider: String,
        /// Reason.
        #[source]
        source: SpendRowsError,
    },
}

// === impl Days ===

impl Days {
    /// Maximum number of days in one request.
    pub const MOST: usize = 366;

    /// Returns the days of that period, in UTC.
    ///
    /// # Errors
    /// [`TooManyDaysError`].
    pub fn between(begin: Timestamp, end: Timestamp) -> Result<Self, TooManyDaysError> {
        let day = |time: Timestamp| time.to_zoned(TimeZone::UTC).date();
        let (first, last) = (day(begin), day(end).max(day(begin)));
        let days = Self { first, last };
        match days.each().nth(Self::MOST) {
            Some(_) => Err(TooManyDaysError { first, last }),
            None => Ok(days),
        }
    }

    fn each(self) -> impl Iterator<Item = Date> {
        std::iter::successors(Some(self.first), |day| day.tomorrow().ok())
            .take_while(move |day| *day <= self.last)
    }
}

/// Returns the rows of these accounts and days, each once. Blocks until all have come.
///
/// # Errors
/// [`SpendError`]; a partial result is never returned.
pub fn ask(provider: &Provider, end_users: &[&str], days: Days) -> Result<Vec<SpendRow>, SpendError> {
    if provider.kind != ProviderKind::LiteLlm {
        return Err(SpendError::NotLiteLlm { provider: provider.name.clone(), kind: provider.kind });
    }
    let failed = |source| SpendError::Connection { provider: provider.name.clone(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(failed)?;
    let asking = SpendClient::new(provider)?;
    runtime.block_on(async {
        let pool = Pool::new(NameSource::of_system());
        let (mut rows, mut seen) = (Vec::new(), HashSet::new());
        for (day, end_user) in days.each().flat_map(|day| end_users.iter().map(move |user| (day, user))) {
            // Two adjacent days share the moment between them, and some versions return the rows of all users for each query.
            let answered = asking.rows(&pool, end_user, day).await?;
            rows.extend(answered.into_iter().filter(|row| seen.insert(row.request_id.clone())));
        }
        Ok(rows)
    })
}
