//! What agents show to be let in: each token is one agent's, for a while, and dead when its job is over.
//!
//! Only the digest of a token is kept; whoever reads the database can't show one. A job's tokens are revoked in the transaction
//! that records its end, or that somebody has left it: there is no moment at which a job is over and its tokens are not.
//!
//! ```text
//! issue ─► (its job is locked, and not over) ─► secret, told once
//! show  ─► digest ─► found? revoked? expired? ─► TokenRecord
//! end   ─► job and tokens in one transaction
//! ```

mod holder;
mod secret;

pub use holder::{Holder, HolderKind, IncompleteHolder};
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
    /// Whose it is.
    pub holder: Holder,
    /// From when on it is good.
    pub issued_at: Timestamp,
    /// From when on it isn't any more.
    pub expires_at: Timestamp,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

/// A token was not issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// Nobody is one of that kind who has no more, or that.
    #[error(transparent)]
    Incomplete(#[from] IncompleteHolder),
    /// It would be good for too long, or not at all.
    #[error("a token is good for some time, and at most {LONGEST_LIFE:#}")]
    Lifetime,
    /// There is no such job, or it is of another task.
    #[error("there is no job {job_id} of that task")]
    UnknownJob {
        /// The job.
        job_id: JobId,
    },
    /// Nobody acts for it any more.
    #[error("the job {job_id} is over")]
    Over {
        /// The job.
        job_id: JobId,
    },
    /// There are enough.
    #[error("{alive} tokens are good already, and as many may be")]
    TooMany {
        /// How many.
        alive: u64,
    },
    /// There is nothing to make it of.
    #[error("can't get random bytes")]
    Random(#[source] std::io::Error),
    /// The database takes nothing.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// A token lets nobody in. What is said of it outside is one sentence for all reasons; [`TokenDenied::code`] is for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenDenied {
    /// It isn't a token.
    Malformed,
    /// It was never issued, or is long dead.
    Unknown,
    /// It was taken back.
    Revoked,
    /// Its time is over, or hasn't begun.
    Expired,
}

/// Somebody is not let in.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Not with that token.
    #[error(transparent)]
    Denied(#[from] TokenDenied),
    /// The database says nothing.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// No token is good for longer.
pub const LONGEST_LIFE: SignedDuration = SignedDuration::from_hours(24 * 30);

/// As many tokens of a job may be good at once, and of all who have none.
pub const MOST_OF_A_JOB: u64 = 64;
/// The same of all who have no job.
pub const MOST_WITHOUT_A_JOB: u64 = 4_096;

/// As many are removed at once.
const MOST: u32 = 500;

/// What is kept of whoever has no job, where the key of one would be.
const NO_JOB: &str = "";

const JOB: &str = "SELECT task_id, state FROM jobs WHERE job_key = $1";

/// It isn't over before this is.
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
    /// Those of a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Issues a token. Its secret is told here, and never again. One that is a job's needs the job to be there and not over.
    ///
    /// # Errors
    /// [`IssueError`]; there is no token that anybody could show then.
    pub async fn issue(
        &self,
        holder: Holder,
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

    /// Whose token somebody shows, if it is good at that time. It is looked for by its digest: how long that takes says nothing of
    /// the secrets that there are.
    ///
    /// # Errors
    /// [`FindError`] when it isn't good, or that can't be known.
    pub async fn find(&self, shown: &str, now: Timestamp) -> Result<TokenRecord, FindError> {
        let digest = TokenDigest::of(shown).ok_or(TokenDenied::Malformed)?;
        self.find_again(&digest, now).await
    }

    /// The same for one that was shown before: whoever waits for its end needs not have it.
    ///
    /// # Errors
    /// [`FindError`] when it isn't good, or that can't be known.
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

    /// Takes a token back; whether it was good, but for its time. When this is back, it lets nobody in.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be taken back.
    pub async fn revoke(&self, shown: &str, now: Timestamp) -> Result<bool, DatabaseError> {
        match TokenSecret::parse(shown) {
            Some(secret) => Ok(self.write("token_revoke", REVOKE, values![secret.sha256(), now]).await? > 0),
            None => Ok(false),
        }
    }

    /// Removes some tokens that would not have been good since then in any case; how many. None when there are no more.
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

/// Takes back all tokens of a job together with what is written besides.
pub(crate) async fn revoke_within(
    transaction: &mut Transaction,
    job_id: &JobId,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    transaction.execute(REVOKE_OF_JOB, values![job_id.key(), now]).await.map(drop)
}

/// Nobody else is issued a token of the same job until the transaction is over, nor does the job end; how many may be good.
async fn lock(transaction: &mut Transaction, holder: &Holder) -> Result<u64, IssueError> {
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
        let Holder { kind, task_id, job_id, project_id, session, user, agent_id: _ } = self.holder.clone();
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
            holder: Holder::read(row)?,
            issued_at: row.time("issued_at_ms")?,
            expires_at: row.time("expires_at_ms")?,
            revoked_at: row.optional_time("revoked_at_ms")?,
        })
    }
}

// === impl TokenDenied ===

impl TokenDenied {
    /// Its code, for those who keep the record, and for nobody else.
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
