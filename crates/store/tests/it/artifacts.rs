//! Contents in a folder and in a bucket: what comes back is what was put there.

use belljar_store::artifacts::{Artifacts, ArtifactsError};
use belljar_testkit::s3::S3;
use belljar_testkit::skip::skip;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use std::path::Path;

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
async fn a_folder_gives_what_lies_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::in_folder(folder.path()).unwrap();
    kept_and_removed(&artifacts, folder.path(), b"content").await;
}

#[tokio::test]
async fn a_bucket_gives_what_came_by_way_of_the_folder_also_when_that_is_empty_by_now() {
    const NAME: &str =
        "artifacts::a_bucket_gives_what_came_by_way_of_the_folder_also_when_that_is_empty_by_now";
    let s3 = match S3::start() {
        Ok(s3) => s3,
        Err(why) => return skip(NAME, &why),
    };
    let folder = tempfile::tempdir().unwrap();
    let open = |url: &str| Artifacts::in_bucket(url, s3.environment(), folder.path()).unwrap();
    let artifacts = open(&format!("{}/a/prefix", s3.bucket("tests")));
    kept_and_removed(&artifacts, folder.path(), b"content").await;
    // So large that it goes in parts.
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
