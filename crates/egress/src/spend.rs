//! Asks LiteLLM what it has written down of calls: `GET /spend/logs`, day by day, with the provider's credential.
//!
//! LiteLLM gives its latest 10,000 rows of what is asked for and says in a header that there are more. Some of its versions
//! know no `end_user` there and give everybody's rows: whoever compares them has to choose.

mod asking;

use crate::inference::models::{Provider, ProviderKind};
use crate::upstream::Pool;
use asking::Asking;
use belljar_contract::spend::{SpendRow, SpendRowsError};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::HashSet;

/// Days of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    first: Date,
    last: Date,
}

/// More days than are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("from {first} to {last} are more than {} days", Days::MOST)]
pub struct TooManyDaysError {
    /// The first.
    pub first: Date,
    /// The last.
    pub last: Date,
}

/// Why LiteLLM's spend logs can't be had. No part of the credential stands in it.
#[derive(Debug, thiserror::Error)]
pub enum SpendError {
    /// Nobody else keeps any.
    #[error("{provider} is of the kind {kind}, and only LiteLLM keeps spend logs")]
    NotLiteLlm {
        /// The provider's name.
        provider: String,
        /// What it is.
        kind: ProviderKind,
    },
    /// There is no credential for it.
    #[error("there is no credential for {provider}")]
    Credential {
        /// The provider's name.
        provider: String,
        /// Why.
        #[source]
        source: crate::credential::CredentialError,
    },
    /// It can't be reached, or ends in the middle.
    #[error("can't speak with {provider}")]
    Connection {
        /// The provider's name.
        provider: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It takes too long.
    #[error("{provider} did not give its spend logs in time")]
    OutOfTime {
        /// The provider's name.
        provider: String,
    },
    /// What it says is no HTTP.
    #[error("{provider} gave no answer that can be understood")]
    Malformed {
        /// The provider's name.
        provider: String,
        /// Why.
        #[source]
        source: crate::http1::Malformed,
    },
    /// There is more than is taken.
    #[error("the spend logs of {provider} for one day are larger than {} bytes", asking::LARGEST_ANSWER)]
    TooLarge {
        /// The provider's name.
        provider: String,
    },
    /// It has no books.
    #[error("{provider} has no database, and so it keeps no spend logs")]
    NoDatabase {
        /// The provider's name.
        provider: String,
    },
    /// It doesn't take the credential.
    #[error("{provider} answered with {status}: its spend logs are not for this credential")]
    Forbidden {
        /// The provider's name.
        provider: String,
        /// The status.
        status: u16,
    },
    /// It says something else.
    #[error("{provider} answered with {status} instead of its spend logs")]
    Status {
        /// The provider's name.
        provider: String,
        /// The status.
        status: u16,
    },
    /// The credential stands in the answer.
    #[error("{provider} repeats the credential in its answer")]
    Echo {
        /// The provider's name.
        provider: String,
    },
    /// There are rows that it doesn't give.
    #[error(
        "{provider} has more rows for {day} than it gives at once: nothing can be compared with a part of them"
    )]
    Truncated {
        /// The provider's name.
        provider: String,
        /// The day.
        day: Date,
    },
    /// What it gives are no rows.
    #[error("{provider} gave spend logs that can't be read")]
    Rows {
        /// The provider's name.
        provider: String,
        /// Why.
        #[source]
        source: SpendRowsError,
    },
}

// === impl Days ===

impl Days {
    /// So many are asked for at most.
    pub const MOST: usize = 366;

    /// The days of that time, in UTC.
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

/// The rows of these accounts and days, as the provider has them, each once. This waits for them.
///
/// # Errors
/// [`SpendError`]: there is no part of an answer.
pub fn ask(provider: &Provider, end_users: &[&str], days: Days) -> Result<Vec<SpendRow>, SpendError> {
    if provider.kind != ProviderKind::LiteLlm {
        return Err(SpendError::NotLiteLlm { provider: provider.name.clone(), kind: provider.kind });
    }
    let failed = |source| SpendError::Connection { provider: provider.name.clone(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(failed)?;
    let asking = Asking::new(provider)?;
    runtime.block_on(async {
        let pool = Pool::default();
        let (mut rows, mut seen) = (Vec::new(), HashSet::new());
        for (day, end_user) in days.each().flat_map(|day| end_users.iter().map(move |user| (day, user))) {
            // A day ends where the next begins, and both have that moment; some give everybody's rows to each question.
            let answered = asking.rows(&pool, end_user, day).await?;
            rows.extend(answered.into_iter().filter(|row| seen.insert(row.request_id.clone())));
        }
        Ok(rows)
    })
}
