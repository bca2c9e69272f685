//! Grants on this machine: the arguments that present one, and its record in the state.

use crate::error::CliError;
use crate::{state, trusted_files};
use belljar_contract::grant::{ExecutionGrant, SignedGrant};
use belljar_contract::id::GrantId;
use belljar_policy::grant::GrantRefusal;
use belljar_store::database::{Database, Location};
use belljar_store::grants::{GrantKey, GrantRecord, Grants};
use belljar_trusted::input;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The grant that a command presents.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct GrantArguments {
    /// The grant that models are called with: its id, or its signed file (`belljar grant issue`) [default: the operator's own, which
    /// pays as `local`]
    #[arg(long, value_name = "ID|FILE", requires = "models", help_heading = "Models")]
    grant: Option<String>,
    /// The file with the secret of the grant of that id [default: the variable BELLJAR_GRANT_SECRET]
    #[arg(long, value_name = "FILE", requires = "grant", help_heading = "Models")]
    grant_secret_file: Option<PathBuf>,
}

/// A presented grant can't be read.
pub(crate) enum GrantInputError {
    /// The grant is malformed, with the reason.
    Malformed(String),
    /// Something else failed.
    Own(CliError),
}

/// A valid grant, or the reason for its refusal.
pub(crate) type PresentedGrant = Result<ExecutionGrant, GrantRefusal>;

const SECRET: &str = "BELLJAR_GRANT_SECRET";

/// Maximum size of a grant or secret file, in bytes. Real ones have a few lines.
const LARGEST_BYTES: u64 = 64 << 10;

/// Threads of the database end soon after it is closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The grants of this machine.
pub(crate) async fn open() -> Result<Grants, CliError> {
    Ok(Grants::new(Database::open(&Location::File(state::agents_database()?)).await?))
}

// === impl GrantArguments ===

impl GrantArguments {
    /// Returns the presented grant, if any, as currently recorded in the state.
    pub(crate) fn shown(&self) -> Result<Option<PresentedGrant>, GrantInputError> {
        let Some(shown) = &self.grant else { return Ok(None) };
        match GrantId::parse(shown) {
            Ok(id) => Ok(Some(self.by_secret(&id)?)),
            Err(_) => by_file(shown.as_ref()).map(Some),
        }
    }

    fn by_secret(&self, id: &GrantId) -> Result<PresentedGrant, CliError> {
        let secret = match &self.grant_secret_file {
            Some(path) => {
                trusted_files::check(path)?;
                let read = input::read(path, LARGEST_BYTES).map_err(|error| CliError::read(path, error))?;
                String::from_utf8(read).unwrap_or_default()
            }
            None => std::env::var(SECRET).map_err(|_| {
                CliError::usage(format!(
                    "--grant {id} also needs its secret: --grant-secret-file FILE, or the variable {SECRET}"
                ))
            })?,
        };
        let Some(record) = find(id)? else { return Ok(Err(GrantRefusal::NotFound)) };
        match record.is_shown_by(secret.trim()) {
            true => Ok(Ok(record.grant)),
            false => Ok(Err(GrantRefusal::NotProven)),
        }
    }
}

/// Reads the grant of a signed file. A missing file is a refusal.
fn by_file(path: &Path) -> Result<PresentedGrant, GrantInputError> {
    if !path.exists() {
        return Ok(Err(GrantRefusal::NotFound));
    }
    trusted_files::check(path)?;
    let document = input::read(path, LARGEST_BYTES).map_err(|error| CliError::read(path, error))?;
    let SignedGrant { grant, signature } = SignedGrant::parse(&document).map_err(|problems| {
        let path = crate::output::path(path);
        GrantInputError::Malformed(format!(
            "{path} is no signed grant, as `belljar grant issue --file FILE` writes one:\n{problems}"
        ))
    })?;
    let key = GrantKey::open(state::open().path()).map_err(CliError::from)?;
    if !key.is_some_and(|key| key.has_signed(&grant, &signature)) {
        return Ok(Err(GrantRefusal::NotProven));
    }
    Ok(find(&grant.id)?.map(|record| record.grant).ok_or(GrantRefusal::NotFound))
}

/// Returns the record of a grant in this machine's state. No thread is left behind: sandboxes must start from a single-threaded process.
fn find(id: &GrantId) -> Result<Option<GrantRecord>, CliError> {
    if !state::has_agents_database() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CliError::Runtime { source })?;
    let found: Result<Option<GrantRecord>, CliError> =
        runtime.block_on(async { Ok(open().await?.find(id).await?) });
    drop(runtime);
    let threads = || std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    let given_up = Instant::now() + PATIENCE;
    while threads() > 1 && Instant::now() < given_up {
        std::thread::sleep(Duration::from_millis(1));
    }
    found
}

// === impl GrantInputError ===

impl From<CliError> for GrantInputError {
    fn from(error: CliError) -> Self {
        Self::Own(error)
    }
}

impl From<GrantInputError> for CliError {
    fn from(error: GrantInputError) -> Self {
        match error {
            GrantInputError::Malformed(message) => Self::usage(message),
            GrantInputError::Own(error) => error,
        }
    }
}
