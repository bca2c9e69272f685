//! Contents in a folder and in a bucket: they are read back unchanged.

use belljar_store::artifacts::{Artifacts, ArtifactsError, Content};
use belljar_testkit::s3::S3;
use belljar_testkit::skip::skip;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

fn stored(folder: &Path, content: &[u8]) -> String {
    let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::create_dir_all(folder.join(&sha256[..2])).unwrap();
    std::fs::write(folder.join(&sha256[..2]).join(&sha256), content).unwrap();
    sha256
}

async fn read(artifacts: &Artifacts, sha256: &str) -> Result<Vec<u8>, ArtifactsError> {
    let pieces: Vec<_> = artifacts.read(sha256).await?.try_collect().await.unwrap();
    Ok(pieces.concat())
}

async fn kept_and_removed(artifacts: &Artifacts, folder: &Path, content: &[u8]) {
    let sha256 = stored(folder, content);
    artifacts.keep(&sha256).await.unwrap();
    artifacts.keep(&sha256).await.unwrap();
    assert_eq!(read(artifacts, &sha256).await.unwrap(), content);
    artifacts.remove(&sha256).await.unwrap();
    artifacts.remove(&sha256).await.unwrap();
    assert!(matches!(read(artifacts, &sha256).await, Err(ArtifactsError::Missing { .. })));
}

#[tokio::test]
async fn artifact_folder_stores_reads_and_removes_contents() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::in_folder(folder.path()).unwrap();
    kept_and_removed(&artifacts, folder.path(), b"content").await;
}

#[tokio::test]
async fn bucket_returns_artifacts_after_the_local_folder_is_emptied() {
    const NAME: &str = "artifacts::bucket_returns_artifacts_after_the_local_folder_is_emptied";
    let s3 = match S3::start() {
        Ok(s3) => s3,
        Err(why) => return skip(NAME, &why),
    };
    let folder = tempfile::tempdir().unwrap();
    let open = |url: &str| Artifacts::in_bucket(url, s3.environment(), folder.path()).unwrap();
    let artifacts = open(&format!("{}/a/prefix", s3.bucket("tests")));
    kept_and_removed(&artifacts, folder.path(), b"content").await;
    // Large enough for a multipart upload.
    let large: Vec<u8> = (0..25_000_000_u32).map(|number| (number % 251) as u8).collect();
    let sha256 = stored(folder.path(), &large);
    artifacts.keep(&sha256).await.unwrap();
    std::fs::remove_dir_all(folder.path().join(&sha256[..2])).unwrap();
    assert!(read(&artifacts, &sha256).await.unwrap() == large);
    let nowhere = open("s3://no-such-bucket-at-all");
    let sha256 = stored(folder.path(), b"b");
    assert!(matches!(nowhere.keep(&sha256).await, Err(ArtifactsError::Reach { .. })));
    assert!(Artifacts::in_bucket("http://a", s3.environment(), folder.path()).is_err());
}

fn age(path: &Path) -> Duration {
    path.metadata().unwrap().modified().unwrap().elapsed().unwrap_or_default()
}

fn make_old(path: &Path) {
    std::fs::File::open(path)
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_secs(100_000))
        .unwrap();
}

#[tokio::test]
async fn in_memory_artifact_is_stored_once_within_its_size_limit() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::in_folder(folder.path()).unwrap();
    let content = artifacts.keep_bytes("content".into(), 7).await.unwrap();
    assert_eq!(content, Content::of(b"content"));
    assert_eq!(read(&artifacts, content.sha256()).await.unwrap(), b"content");
    let path = folder.path().join(&content.sha256()[..2]).join(content.sha256());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let inode = path.metadata().unwrap().ino();
    make_old(&path);
    assert_eq!(artifacts.keep_bytes("content".into(), 7).await.unwrap(), content);
    // It is the same file with a renewed modification time.
    assert_eq!(path.metadata().unwrap().ino(), inode);
    assert!(age(&path) < Duration::from_secs(50_000));
    // A content that has lost a part is stored anew.
    std::fs::write(&path, "cont").unwrap();
    artifacts.keep_bytes("content".into(), 7).await.unwrap();
    assert_eq!(read(&artifacts, content.sha256()).await.unwrap(), b"content");
    let refused = artifacts.keep_bytes("contents".into(), 7).await;
    assert!(matches!(refused, Err(ArtifactsError::TooLarge { size_bytes: 8, most_bytes: 7 })));
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [&content.sha256()[..2]]);
}

#[tokio::test]
async fn artifact_store_does_not_follow_symlinks() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let artifacts = Artifacts::in_folder(folder.path()).unwrap();
    let content = Content::of(b"content");
    let target = elsewhere.path().join("target");
    std::fs::write(&target, "7 bytes").unwrap();
    let shelf = folder.path().join(&content.sha256()[..2]);
    std::fs::create_dir(&shelf).unwrap();
    std::os::unix::fs::symlink(&target, shelf.join(content.sha256())).unwrap();
    assert!(artifacts.keep_bytes("content".into(), 7).await.is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"7 bytes");
    // Without it, it is kept.
    std::fs::remove_file(shelf.join(content.sha256())).unwrap();
    artifacts.keep_bytes("content".into(), 7).await.unwrap();
}

#[tokio::test]
async fn recently_stored_artifact_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::in_folder(folder.path()).unwrap();
    let sha256 = stored(folder.path(), b"content");
    let path = folder.path().join(&sha256[..2]).join(&sha256);
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    make_old(&path);
    artifacts.keep_bytes("content".into(), 7).await.unwrap();
    assert!(!artifacts.remove_older(&sha256, an_hour_ago).await.unwrap());
    assert_eq!(read(&artifacts, &sha256).await.unwrap(), b"content");
    make_old(&path);
    assert!(artifacts.remove_older(&sha256, an_hour_ago).await.unwrap());
    assert!(matches!(read(&artifacts, &sha256).await, Err(ArtifactsError::Missing { .. })));
}

#[tokio::test]
async fn in_memory_artifact_is_uploaded_to_a_bucket() {
    const NAME: &str = "artifacts::in_memory_artifact_is_uploaded_to_a_bucket";
    let s3 = match S3::start() {
        Ok(s3) => s3,
        Err(why) => return skip(NAME, &why),
    };
    let folder = tempfile::tempdir().unwrap();
    let artifacts =
        Artifacts::in_bucket(&format!("{}/p", s3.bucket("memory")), s3.environment(), folder.path()).unwrap();
    let content = artifacts.keep_bytes("content".into(), 100).await.unwrap();
    std::fs::remove_dir_all(folder.path().join(&content.sha256()[..2])).unwrap();
    assert_eq!(read(&artifacts, content.sha256()).await.unwrap(), b"content");
}
