//! The key that a deployment signs its grant files with. It is created when it is first needed, and stays in the state
//! directory.

use crate::digest::hex;
use crate::random::random;
use belljar_contract::grant::ExecutionGrant;
use ed25519_dalek::{Signature, Signer, SigningKey};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The key. It has no form in which it could be printed.
pub struct GrantKey(SigningKey);

/// The key can't be used.
#[derive(Debug, thiserror::Error)]
pub enum GrantKeyError {
    /// Its file can't be read or created.
    #[error("can't use the key of grants {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Underlying error.
        #[source]
        source: io::Error,
    },
    /// Other users can read it, or its content is something else.
    #[error("{} must hold 64 hexadecimal digits, and be closed to other users (mode 0600)", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
    },
}

const FILE: &str = "grants.key";
const SEED: usize = 32;
const SIGNATURE: usize = 64;

/// Prefix of signed messages, so that a signature of something else is never valid for a grant.
const WHAT: &str = "belljar execution grant 1\n";

// === impl GrantKey ===

impl GrantKey {
    /// The key of a state directory, which is made if there is none.
    ///
    /// # Errors
    /// [`GrantKeyError`].
    pub fn open_or_create(state: &Path) -> Result<Self, GrantKeyError> {
        let path = state.join(FILE);
        let failed = |source| GrantKeyError::File { path: path.clone(), source };
        let file = match open(&path, OFlags::RDONLY) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                create(state, &path).map_err(failed)?;
                open(&path, OFlags::RDONLY).map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        Self::read(file, &path)
    }

    /// The key of a state directory, if there is one: without it nothing was signed there.
    ///
    /// # Errors
    /// [`GrantKeyError`].
    pub fn open(state: &Path) -> Result<Option<Self>, GrantKeyError> {
        let path = state.join(FILE);
        match open(&path, OFlags::RDONLY) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(GrantKeyError::File { path, source }),
            Ok(file) => Self::read(file, &path).map(Some),
        }
    }

    /// Returns the signature of a grant's permissions, in hexadecimal. Revocation is not part of the file.
    pub fn sign(&self, grant: &ExecutionGrant) -> String {
        hex(&self.0.sign(&message(grant)).to_bytes())
    }

    /// Returns true if this key has signed what the grant allows.
    pub fn has_signed(&self, grant: &ExecutionGrant, signature: &str) -> bool {
        let signature = from_hex::<SIGNATURE>(signature).map(|bytes| Signature::from_bytes(&bytes));
        let verifies = |signature| self.0.verifying_key().verify_strict(&message(grant), &signature).is_ok();
        signature.is_some_and(verifies)
    }

    fn read(mut file: File, path: &Path) -> Result<Self, GrantKeyError> {
        let failed = |source| GrantKeyError::File { path: path.to_owned(), source };
        let found = file.metadata().map_err(failed)?;
        let mut text = String::new();
        let is_closed = found.is_file() && found.mode() & 0o077 == 0;
        if is_closed {
            let most = 2 * SEED as u64 + 2;
            Read::by_ref(&mut file).take(most).read_to_string(&mut text).map_err(failed)?;
        }
        let seed = from_hex::<SEED>(text.trim_end()).filter(|_| is_closed);
        let unfit = || GrantKeyError::Unfit { path: path.to_owned() };
        seed.map(|seed| Self(SigningKey::from_bytes(&seed))).ok_or_else(unfit)
    }
}

fn message(grant: &ExecutionGrant) -> Vec<u8> {
    let unrevoked = ExecutionGrant { revoked_at: None, ..grant.clone() };
    // Text, truth values and times can always be written.
    let document = serde_json::to_string(&unrevoked).unwrap_or_default();
    [WHAT, &document].concat().into_bytes()
}

/// Creates the complete file, or keeps one that another process has created meanwhile.
fn create(state: &Path, path: &Path) -> io::Result<()> {
    let seed = random::<SEED>()?;
    let draft = state.join(format!(".{FILE}.{}", hex(&random::<8>()?)));
    let made = (|| {
        let mut file = open(&draft, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        file.write_all(format!("{}\n", hex(&seed)).as_bytes())?;
        file.sync_all()?;
        match std::fs::hard_link(&draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    let _ = std::fs::remove_file(&draft);
    made?;
    File::open(state)?.sync_all()
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?))
}

fn from_hex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let is_hex =
        text.len() == 2 * BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut bytes = [0; BYTES];
    for (at, byte) in bytes.iter_mut().enumerate().filter(|_| is_hex) {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    is_hex.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::grant::{GrantScope, GrantSubject};
    use belljar_contract::id::GrantId;

    fn grant() -> ExecutionGrant {
        ExecutionGrant {
            id: GrantId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").unwrap(),
            subject: GrantSubject::Service("scheduler".to_owned()),
            billing_account_id: "account-7".to_owned(),
            user_id: None,
            scopes: vec![GrantScope::AnyGraph],
            allow_sandbox: true,
            expires_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn grant_signature_is_valid_only_for_its_key_and_content() {
        let (state, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(GrantKey::open(state.path()).unwrap().is_none());
        let signature = GrantKey::open_or_create(state.path()).unwrap().sign(&grant());
        let key = GrantKey::open(state.path()).unwrap().unwrap();
        assert!(key.has_signed(&grant(), &signature));
        let dearer = ExecutionGrant { billing_account_id: "account-8".to_owned(), ..grant() };
        assert!(!key.has_signed(&dearer, &signature));
        assert!(!key.has_signed(&grant(), &signature[1..]) && !key.has_signed(&grant(), ""));
        assert!(!GrantKey::open_or_create(other.path()).unwrap().has_signed(&grant(), &signature));
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn grant_key_readable_by_other_users_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        GrantKey::open_or_create(state.path()).unwrap();
        let path = state.path().join(FILE);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(GrantKey::open(state.path()), Err(GrantKeyError::Unfit { .. })));
    }
}
