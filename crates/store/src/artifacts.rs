//! Contents of files that jobs have left, by SHA-256: in a folder of the state directory, or in a bucket.
//!
//! A content always enters through the folder: the code that copies a file out of a sandbox writes it there and hashes
//! what it has written. With a bucket, it is then uploaded, and the folder is only temporary storage.

mod content;

pub use content::{Content, ParseDigestError};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use rustix::fs::{Mode, OFlags, fchmod, open};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;

/// Store of contents.
#[derive(Debug, Clone)]
pub struct Artifacts {
    folder: PathBuf,
    store: Arc<dyn ObjectStore>,
    /// Prefix of every name in a bucket; `None` for the folder itself.
    bucket: Option<Key>,
    /// Held while a content is stored from memory, or an old one is removed, so that both never happen to the same one
    /// at once.
    moving: Arc<Mutex<()>>,
}

/// A content can't be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactsError {
    /// The folder or bucket can't be used.
    #[error("can't use {place} for artifacts")]
    Place {
        /// The folder or the bucket.
        place: String,
        /// Underlying error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The content does not exist.
    #[error("there is no artifact {sha256}")]
    Missing {
        /// Its SHA-256.
        sha256: String,
    },
    /// The content is too large.
    #[error("{size_bytes} bytes are too many: an artifact has at most {most_bytes} here")]
    TooLarge {
        /// Size of the content.
        size_bytes: u64,
        /// Maximum size.
        most_bytes: u64,
    },
    /// The content can't be read or written.
    #[error("can't reach the artifact {sha256}")]
    Reach {
        /// Its SHA-256.
        sha256: String,
        /// Underlying error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

// === impl Artifacts ===

impl Artifacts {
    /// Opens a store in a folder, which is created if it doesn't exist.
    ///
    /// # Errors
    /// [`ArtifactsError::Place`] when it can't be used.
    pub fn in_folder(folder: &Path) -> Result<Self, ArtifactsError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| ArtifactsError::Place {
            place: folder.display().to_string(),
            source,
        };
        make_private(folder).map_err(|error| failed(error.into()))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(error.into()))?;
        Ok(Self { folder: folder.to_owned(), store: Arc::new(store), bucket: None, moving: Arc::default() })
    }

    /// Opens a store in a bucket, `s3://BUCKET/PREFIX`, with a folder for temporary storage. Variables give the
    /// endpoint, the region and the credentials (`AWS_ENDPOINT`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`); others are ignored.
    ///
    /// # Errors
    /// [`ArtifactsError::Place`] when the URL or the variables are not usable.
    pub fn in_bucket(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        folder: &Path,
    ) -> Result<Self, ArtifactsError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| ArtifactsError::Place {
            place: url.to_owned(),
            source,
        };
        let rest = url.strip_prefix("s3://").filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| failed("expected s3://BUCKET/PREFIX".into()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Key::parse(prefix.trim_end_matches('/')).map_err(|error| failed(error.into()))?;
        let mut builder = AmazonS3Builder::new();
        for (name, value) in variables {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        // The bucket of the URL takes precedence over any variable.
        let store = builder.with_bucket_name(bucket).build().map_err(|error| failed(error.into()))?;
        Ok(Self { bucket: Some(prefix), store: Arc::new(store), ..Self::in_folder(folder)? })
    }

    /// Moves a content from the folder to where it is kept. Does nothing if the folder is that place, or the content is
    /// kept already.
    ///
    /// # Errors
    /// [`ArtifactsError`]; it is unknown then whether the content is stored.
    pub async fn keep(&self, sha256: &str) -> Result<(), ArtifactsError> {
        if self.bucket.is_none() {
            return Ok(());
        }
        let is_digest = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = path_in(&self.folder, sha256);
        if !is_digest || !path.exists() {
            return Err(ArtifactsError::Missing { sha256: sha256.to_owned() });
        }
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| ArtifactsError::Reach {
            sha256: sha256.to_owned(),
            source,
        };
        let key = self.key(sha256);
        match self.store.head(&key).await {
            Ok(_) => return Ok(()),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let mut file = tokio::fs::File::open(&path).await.map_err(|error| failed(error.into()))?;
        // A large content is uploaded in parts: nothing exists under its name before all of it is there.
        let mut writer = BufWriter::new(Arc::clone(&self.store), key);
        let copied = tokio::io::copy(&mut file, &mut writer).await;
        match copied {
            Ok(_) => writer.shutdown().await.map_err(|error| failed(error.into())),
            Err(error) => {
                let _ = writer.abort().await;
                Err(failed(error.into()))
            }
        }
    }

    /// Stores a content from memory, unless it is stored already. A content is removed when it is old and unreferenced
    /// ([`crate::jobs::Jobs::is_referenced`]), so the caller must refer to it soon.
    ///
    /// # Errors
    /// [`ArtifactsError`]; it is unknown then whether the content is stored.
    pub async fn keep_bytes(&self, bytes: Bytes, most_bytes: u64) -> Result<Content, ArtifactsError> {
        let size_bytes = bytes.len() as u64;
        if size_bytes > most_bytes {
            return Err(ArtifactsError::TooLarge { size_bytes, most_bytes });
        }
        let moving = Arc::clone(&self.moving).lock_owned().await;
        let folder = self.folder.clone();
        // The write goes on even if its caller stops waiting, and holds the lock until it is done.
        let placed = tokio::task::spawn_blocking(move || {
            let content = Content::of(&bytes);
            let placed = content::place(&folder, &content, &bytes);
            (content, placed, moving)
        });
        let (content, placed, _moving) = placed
            .await
            .map_err(|error| ArtifactsError::Place { place: self.place(), source: error.into() })?;
        placed.map_err(|error| ArtifactsError::Reach {
            sha256: content.sha256().to_owned(),
            source: error.into(),
        })?;
        self.keep(content.sha256()).await?;
        Ok(content)
    }

    /// Removes a content that was not put into the folder since that time; returns true if it was removed.
    ///
    /// # Errors
    /// [`ArtifactsError::Reach`] when it can't be removed.
    pub async fn remove_older(&self, sha256: &str, than: SystemTime) -> Result<bool, ArtifactsError> {
        let _moving = self.moving.lock().await;
        let modified =
            tokio::fs::metadata(path_in(&self.folder, sha256)).await.and_then(|file| file.modified());
        // Another process has removed it already.
        if !modified.is_ok_and(|at| at < than) {
            return Ok(false);
        }
        self.remove(sha256).await?;
        Ok(true)
    }

    fn place(&self) -> String {
        self.folder.display().to_string()
    }

    /// Reads a content, piece by piece.
    ///
    /// # Errors
    /// [`ArtifactsError`] when it isn't there or can't be reached.
    pub async fn read(
        &self,
        sha256: &str,
    ) -> Result<BoxStream<'static, Result<Bytes, object_store::Error>>, ArtifactsError> {
        match self.store.get(&self.key(sha256)).await {
            Ok(found) => Ok(found.into_stream().boxed()),
            Err(object_store::Error::NotFound { .. }) => {
                Err(ArtifactsError::Missing { sha256: sha256.to_owned() })
            }
            Err(error) => Err(ArtifactsError::Reach { sha256: sha256.to_owned(), source: error.into() }),
        }
    }

    /// Removes a content, wherever it is. A missing content counts as removed.
    ///
    /// # Errors
    /// [`ArtifactsError::Reach`] when it can't be removed.
    pub async fn remove(&self, sha256: &str) -> Result<(), ArtifactsError> {
        match self.store.delete(&self.key(sha256)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => {
                return Err(ArtifactsError::Reach { sha256: sha256.to_owned(), source: error.into() });
            }
        }
        if self.bucket.is_some() {
            // The folder is only temporary storage.
            let _ = tokio::fs::remove_file(path_in(&self.folder, sha256)).await;
        }
        Ok(())
    }

    fn key(&self, sha256: &str) -> Key {
        let shelf = sha256.get(..2).unwrap_or_default();
        self.bucket.clone().unwrap_or_default().join(shelf).join(sha256)
    }
}

/// Makes a folder that no other user can list, or closes one that an earlier version made. A link in its place is
/// refused, because its target may be used by others.
fn make_private(folder: &Path) -> std::io::Result<()> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(folder, flags, Mode::empty())?;
    Ok(fchmod(opened, Mode::RWXU)?)
}

/// Returns the path of a content in a folder.
fn path_in(folder: &Path, sha256: &str) -> PathBuf {
    folder.join(sha256.get(..2).unwrap_or_default()).join(sha256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn symlinked_artifacts_folder_is_rejected_and_target_mode_kept() {
        let place = tempfile::tempdir().unwrap();
        let [target, link] = ["target", "artifacts"].map(|name| place.path().join(name));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        std::fs::create_dir(&target).unwrap();
        std::fs::set_permissions(&target, PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(matches!(Artifacts::in_folder(&link), Err(ArtifactsError::Place { .. })));
        assert_eq!(mode(&target), 0o755);
        // Control: the directory itself is used, and closed.
        Artifacts::in_folder(&target).unwrap();
        assert_eq!(mode(&target), 0o700);
    }
}
