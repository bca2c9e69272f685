//! Grants for executing graphs in sandboxes (`docs/contracts/agents.md#a1.3`): issued, found and revoked. Only the digest of a
//! grant's secret is stored.

mod key;
mod secret;

pub use key::{GrantKey, GrantKeyError};
pub use secret::GrantSecret;

use crate::database::{Database, DatabaseError, Row, to_the_end, unreadable, values};
use crate::digest::sha256;
use crate::page::{Page, PageSize};
use belljar_contract::grant::ExecutionGrant;
use belljar_contract::id::GrantId;
use jiff::Timestamp;

/// The grants of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Grants {
    database: Database,
}

/// A grant as it is stored, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRecord {
    /// Permissions of the grant, and the time of its revocation.
    pub grant: ExecutionGrant,
    /// Time of issue.
    pub issued_at: Timestamp,
    secret_sha256: String,
}

/// A grant is not issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueGrantError {
    /// The maximum number of grants is reached.
    #[error("there are {MOST} grants, which is the most that may be kept")]
    TooMany,
    /// There are no random bytes for its secret.
    #[error("can't get random bytes")]
    Random(#[source] std::io::Error),
    /// The grant can't be serialised.
    #[error("the grant can't be written down")]
    Unwritten(#[source] serde_json::Error),
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Maximum number of grants, revoked ones included.
pub const MOST: u64 = 10_000;

const COUNT: &str = "SELECT count(*) AS grants FROM execution_grants";

const ISSUE: &str =
    "INSERT INTO execution_grants (id, secret_sha256, document, issued_at_ms) VALUES ($1, $2, $3, $4)";

const FIND: &str =
    "SELECT id, secret_sha256, document, issued_at_ms, revoked_at_ms FROM execution_grants WHERE id = $1";

/// The order by id is the order of issue, because ids contain the time.
const LIST: &str = "SELECT id, secret_sha256, document, issued_at_ms, revoked_at_ms FROM execution_grants \
    WHERE id > $1 ORDER BY id LIMIT $2";

const REVOKE: &str = "UPDATE execution_grants SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL";

// === impl Grants ===

impl Grants {
    /// Creates the grant store on a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Issues a grant. Its secret is returned here, and never again.
    ///
    /// # Errors
    /// [`IssueGrantError`]; there is no such grant then, unless the database reports that the outcome is in doubt.
    pub async fn issue(
        &self,
        grant: ExecutionGrant,
        now: Timestamp,
    ) -> Result<(GrantSecret, GrantRecord), IssueGrantError> {
        let secret = GrantSecret::new().map_err(|errno| IssueGrantError::Random(errno.into()))?;
        let document = serde_json::to_string(&grant).map_err(IssueGrantError::Unwritten)?;
        let record = GrantRecord { grant, issued_at: now, secret_sha256: secret.sha256() };
        let database = self.database.clone();
        to_the_end(async move {
            let mut transaction = database.begin().await?;
            transaction.alone("execution_grants").await?;
            let count = transaction.fetch(COUNT, values![]).await?;
            if count.first().map_or(Ok(0), |row| row.count("grants"))? >= MOST {
                return Err(IssueGrantError::TooMany);
            }
            let (id, sha256) = (record.grant.id.key(), record.secret_sha256.clone());
            transaction.execute(ISSUE, values![id, sha256, document, now]).await?;
            transaction.commit("grant_issue").await?;
            Ok((secret, record))
        })
        .await
    }

    /// The grant of that id, revoked or not.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(&self, id: &GrantId) -> Result<Option<GrantRecord>, DatabaseError> {
        let rows = self.database.fetch(FIND, values![id.key()]).await?;
        rows.first().map(GrantRecord::read).transpose()
    }

    /// Revokes a grant; returns true if it was not revoked before. From this call's return on, it permits nothing.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be revoked.
    pub async fn revoke(&self, id: &GrantId, now: Timestamp) -> Result<bool, DatabaseError> {
        let (database, id) = (self.database.clone(), id.key());
        to_the_end(async move { Ok(database.write("grant_revoke", REVOKE, values![id, now]).await? > 0) })
            .await
    }

    /// Lists the grants after that id, in the order in which they were issued.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(
        &self,
        after: Option<&GrantId>,
        most: u32,
    ) -> Result<Page<GrantRecord, GrantId>, DatabaseError> {
        let size = PageSize::of(most);
        let after = after.map_or_else(String::new, GrantId::key);
        let rows = self.database.fetch(LIST, values![after, size.to_fetch]).await?;
        let records = rows.iter().map(GrantRecord::read).collect::<Result<_, _>>()?;
        Ok(Page::cut(records, size, |record: &GrantRecord| record.grant.id.clone()))
    }
}

// === impl GrantRecord ===

impl GrantRecord {
    /// Returns true if this is the secret that the grant was issued with.
    pub fn is_shown_by(&self, secret: &str) -> bool {
        sha256(secret.as_bytes()) == self.secret_sha256
    }

    fn read(row: &Row) -> Result<Self, DatabaseError> {
        let document = row.text("document")?;
        let grant =
            ExecutionGrant::parse(document.as_bytes()).map_err(|problems| unreadable(problems.into()))?;
        let revoked_at = row.optional_time("revoked_at_ms")?;
        Ok(Self {
            grant: ExecutionGrant { revoked_at, ..grant },
            issued_at: row.time("issued_at_ms")?,
            secret_sha256: row.text("secret_sha256")?,
        })
    }
}
