//! Bearer tokens of agents: each token belongs to one agent, expires, and is revoked when its job ends.
//!
//! Only the digest of a token is stored, so a reader of the database can't present one. A job's tokens are revoked in
//! the transaction that records the job's end or releases it from its owner: no token outlives its job's end.
//!
//! ```text
//! issue ─► (its job is locked, and not over) ─► secret, returned once
//! show  ─► digest ─► found? revoked? expired? ─► TokenRecord
//! end   ─► job and tokens in one transaction
//! ```

mod holder;
mod secret;

pub use holder::{HolderKind, IncompleteHolder, TokenHolder};
pub use secret::{TokenDigest, TokenSecret};

use crate::database::{Database, DatabaseError, Row, Sql, Transaction, Value, to_the_end, values};
use belljar_contract::id::JobId;
use belljar_contract::worker::state::JobState;
use jiff::{SignedDuration, Timestamp};

/// The tokens of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Tokens {
    database: Database,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Agent that the token belongs to.
    pub holder: TokenHolder,
    /// Time from which on it is valid.
    pub issued_at: Timestamp,
    /// Time from which on it is no longer valid.
    pub expires_at: Timestamp,
    /// Time of revocation; `None` if it was not revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A token was not issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A holder of that kind lacks a required field, or has one that it must not have.
    #[error(transparent)]
    Incomplete(#[from] IncompleteHolder),
    /// The lifetime is not positive, or longer than [`LONGEST_LIFE`].
    #[error("a token is good for some time, and at most {LONGEST_LIFE:#}")]
    Lifetime,
    /// There is no such job, or it is of another task.
    #[error("there is no job {job_id} of that task")]
    UnknownJob {
        /// The job.
        job_id: JobId,
    },
    /// The job is over, so no agent acts for it any more.
    #[error("the job {job_id} is over")]
    Over {
        /// The job.
        job_id: JobId,
    },
    /// The maximum number of valid tokens is reached.
    #[error("{alive} tokens are good already, and as many may be")]
    TooMany {
        /// Number of valid tokens.
        alive: u64,
    },
    /// The system provides no random bytes.
    #[error("can't get random bytes")]
    Random(#[source] std::io::Error),
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// A token is rejected. Clients get the same message for every reason; [`TokenDenied::code`] goes into the audit record
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenDenied {
    /// The text is not formed like a token.
    Malformed,
    /// The token was never issued, or was deleted long after its end.
    Unknown,
    /// The token was revoked.
    Revoked,
    /// The token has expired, or is not valid yet.
    Expired,
}

/// A caller is not authenticated.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The token is not valid.
    #[error(transparent)]
    Denied(#[from] TokenDenied),
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Maximum lifetime of a token.
pub const LONGEST_LIFE: SignedDuration = SignedDuration::from_hours(24 * 30);

/// Maximum number of valid tokens of one job.
pub const MOST_OF_A_JOB: u64 = 64;
/// Maximum number of valid tokens of all holders without a job.
pub const MOST_WITHOUT_A_JOB: u64 = 4_096;

/// Maximum number of tokens deleted in one statement.
const MOST: u32 = 500;

/// Value stored as the job key of holders without a job.
const NO_JOB: &str = "";

const JOB: &str = "SELECT task_id, state FROM jobs WHERE job_key = $1";

/// Locks the job, so that it can't end before this transaction does.
const LOCKED_JOB: Sql =
    Sql::of_each(JOB, "SELECT task_id, state FROM jobs WHERE job_key = $1 FOR NO KEY UPDATE");

const ALIVE: &str = "SELECT count(*) AS alive FROM agent_tokens \
    WHERE job_key = $1 AND revoked_at_ms IS NULL AND expires_at_ms > $2";

const ISSUE: &str = "INSERT INTO agent_tokens (sha256, kind, task_id, job_id, job_key, project_id, session, user_id, \
    issued_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

const ADD_AGENT: &str = "INSERT INTO agent_token_agents (sha256, agent_id) VALUES ($1, $2)";

const FIND: &str = "SELECT kind, task_id, job_id, project_id, session, user_id, issued_at_ms, expires_at_ms, \
    revoked_at_ms, agent_id FROM agent_tokens LEFT JOIN agent_token_agents USING (sha256) WHERE sha256 = $1";

const REVOKE: &str = "UPDATE agent_tokens SET revoked_at_ms = $2 WHERE sha256 = $1 AND revoked_at_ms IS NULL";

const REVOKE_OF_JOB: &str =
    "UPDATE agent_tokens SET revoked_at_ms = $2 WHERE job_key = $1 AND revoked_at_ms IS NULL";

const PURGE: &str = "DELETE FROM agent_tokens WHERE sha256 IN (\
    SELECT sha256 FROM agent_tokens WHERE expires_at_ms < $1 ORDER BY expires_at_ms LIMIT $2)";

// === impl Tokens ===

impl Tokens {
    /// Creates the token store on a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Issues a token. Its secret is returned here, and never again. A job's token requires that the job exists and is
    /// not over.
    ///
    /// # Errors
    /// [`IssueError`]; no usable token exists then.
    pub async fn issue(
        &self,
        holder: TokenHolder,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(TokenSecret, TokenRecord), IssueError> {
        holder.check()?;
        let life = expires_at.duration_since(now);
        if life <= SignedDuration::ZERO || life > LONGEST_LIFE {
            return Err(IssueError::Lifetime);
        }
        let secret = TokenSecret::new().map_err(|errno| IssueError::Random(errno.into()))?;
        let record = TokenRecord { holder, issued_at: now, expires_at, revoked_at: None };
        let (database, sha256) = (self.database.clone(), secret.sha256());
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            let most = lock(&mut transaction, &record.holder).await?;
            let alive = transaction.fetch(ALIVE, values![record.job_key(), now]).await?;
            let alive = alive.first().map_or(Ok(0), |row| row.count("alive"))?;
            if alive >= most {
                return Err(IssueError::TooMany { alive });
            }
            transaction.execute(ISSUE, record.values(sha256.clone())).await?;
            if let Some(agent) = &record.holder.agent_id {
                transaction.execute(ADD_AGENT, values![sha256, agent.as_str()]).await?;
            }
            transaction.commit("token_issue").await?;
            Ok((secret, record))
        })
        .await
    }

    /// Returns the record of a presented token if it is valid at the given time. The lookup uses the digest, so its
    /// duration reveals nothing about stored secrets.
    ///
    /// # Errors
    /// [`FindError`] when the token isn't valid, or that can't be determined.
    pub async fn find(&self, shown: &str, now: Timestamp) -> Result<TokenRecord, FindError> {
        let digest = TokenDigest::of(shown).ok_or(TokenDenied::Malformed)?;
        self.find_again(&digest, now).await
    }

    /// Returns the record for the digest of a token that was presented before. A caller that waits for the token's end
    /// need not keep the secret.
    ///
    /// # Errors
    /// [`FindError`] when the token isn't valid, or that can't be determined.
    pub async fn find_again(&self, digest: &TokenDigest, now: Timestamp) -> Result<TokenRecord, FindError> {
        let rows = self.database.fetch(FIND, values![digest.as_str()]).await?;
        let token = TokenRecord::read(rows.first().ok_or(TokenDenied::Unknown)?)?;
        if token.revoked_at.is_some() {
            return Err(TokenDenied::Revoked.into());
        }
        match token.issued_at <= now && now < token.expires_at {
            true => Ok(token),
            false => Err(TokenDenied::Expired.into()),
        }
    }

    /// Revokes a token; returns true if it was not revoked before, even if it had expired. From this call's return on,
    /// the token is rejected.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be revoked.
    pub async fn revoke(&self, shown: &str, now: Timestamp) -> Result<bool, DatabaseError> {
        match TokenSecret::parse(shown) {
            Some(secret) => Ok(self.write("token_revoke", REVOKE, values![secret.sha256(), now]).await? > 0),
            None => Ok(false),
        }
    }

    /// Deletes some tokens that have expired before that time; returns their number, and 0 when there are no more.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be removed.
    pub async fn purge(&self, expired_before: Timestamp) -> Result<u64, DatabaseError> {
        self.write("tokens_purge", PURGE, values![expired_before, MOST]).await
    }

    async fn write(
        &self,
        name: &'static str,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        let database = self.database.clone();
        to_the_end(async move { database.write(name, sql, values).await }).await
    }
}

/// Revokes all tokens of a job within the transaction.
pub(crate) async fn revoke_within(
    transaction: &mut Transaction,
    job_id: &JobId,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    transaction.execute(REVOKE_OF_JOB, values![job_id.key(), now]).await.map(drop)
}

/// Locks the holder's job, or all holders without one; returns the maximum number of valid tokens. Until the
/// transaction is over, no other token is issued for it and the job can't end.
async fn lock(transaction: &mut Transaction, holder: &TokenHolder) -> Result<u64, IssueError> {
    let Some(job_id) = &holder.job_id else {
        transaction.alone("agent_tokens").await?;
        return Ok(MOST_WITHOUT_A_JOB);
    };
    let rows = transaction.fetch(LOCKED_JOB, values![job_id.key()]).await?;
    let unknown = || IssueError::UnknownJob { job_id: job_id.clone() };
    let row = rows.first().ok_or_else(unknown)?;
    let task = row.text("task_id")?;
    if !holder.task_id.as_ref().is_some_and(|task_id| task_id.as_str().eq_ignore_ascii_case(&task)) {
        return Err(unknown());
    }
    match JobState::from_name(&row.text("state")?).is_some_and(|state| !state.is_final()) {
        true => Ok(MOST_OF_A_JOB),
        false => Err(IssueError::Over { job_id: job_id.clone() }),
    }
}

// === impl TokenRecord ===

impl TokenRecord {
    fn job_key(&self) -> String {
        self.holder.job_id.as_ref().map_or_else(|| NO_JOB.to_owned(), JobId::key)
    }

    fn values(&self, sha256: String) -> Vec<Value> {
        let TokenHolder { kind, task_id, job_id, project_id, session, user, agent_id: _ } =
            self.holder.clone();
        values![
            sha256,
            kind.as_str(),
            task_id.map(String::from),
            job_id.map(String::from),
            self.job_key(),
            project_id.map(String::from),
            session.map(String::from),
            user.map(String::from),
            self.issued_at,
            self.expires_at,
        ]
    }

    fn read(row: &Row) -> Result<Self, DatabaseError> {
        Ok(Self {
            holder: TokenHolder::read(row)?,
            issued_at: row.time("issued_at_ms")?,
            expires_at: row.time("expires_at_ms")?,
            revoked_at: row.optional_time("revoked_at_ms")?,
        })
    }
}

// === impl TokenDenied ===

impl TokenDenied {
    /// Returns the code for the audit record. It is not shown to clients.
    pub fn code(self) -> &'static str {
        match self {
            Self::Malformed => "token_malformed",
            Self::Unknown => "token_unknown",
            Self::Revoked => "token_revoked",
            Self::Expired => "token_expired",
        }
    }
}

impl std::fmt::Display for TokenDenied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the token is not good")
    }
}

impl std::error::Error for TokenDenied {}
