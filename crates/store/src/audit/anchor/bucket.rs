//! A bucket as an anchor: one object for each checkpoint, created once and never overwritten.
//!
//! The bucket's object lock with a default retention keeps an attacker with the same credentials from deleting objects.
//! It is set on the bucket and can't be checked from here.

use super::AnchorError;
use super::note::Checkpoint;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A bucket that is open.
#[derive(Debug)]
pub(super) struct Bucket {
    url: String,
    store: AmazonS3,
    prefix: Key,
    runtime: Runtime,
}

/// Timeout for one request.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Requests at once when notes are read.
const CONCURRENT: usize = 16;

/// Upper bound for the size of a note, in bytes.
const LARGEST_NOTE: u64 = 4096;

/// Reads all notes of a bucket, `s3://BUCKET/PREFIX`, concatenated as in a file. The endpoint and the credentials are
/// taken from the environment variables `AWS_…`.
///
/// # Errors
/// [`AnchorError::Bucket`] when it can't be read.
pub fn notes_in_bucket(url: &str) -> Result<String, AnchorError> {
    Bucket::open(url)?.notes()
}

// === impl Bucket ===

impl Bucket {
    pub(super) fn open(url: &str) -> Result<Self, AnchorError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| AnchorError::Bucket {
            url: url.to_owned(),
            source,
        };
        let rest = url.strip_prefix("s3://").filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| failed("expected s3://BUCKET/PREFIX".into()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Key::parse(prefix.trim_end_matches('/')).map_err(|error| failed(error.into()))?;
        let mut builder = AmazonS3Builder::new();
        let mut options = ClientOptions::new().with_timeout(TIMEOUT).with_connect_timeout(TIMEOUT);
        for (name, value) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, &value);
            }
            // Other options of the client replace those of the variables.
            if name == "AWS_ALLOW_HTTP" {
                options = options.with_allow_http(value == "true");
            }
        }
        let retries = RetryConfig { max_retries: 1, retry_timeout: TIMEOUT, ..RetryConfig::default() };
        // A bucket with object lock takes no object without a checksum.
        let builder = builder.with_checksum_algorithm(Checksum::SHA256).with_client_options(options);
        let store = builder.with_bucket_name(bucket).with_retry(retries).build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            url: url.to_owned(),
            store: store.map_err(|error| failed(error.into()))?,
            prefix,
            runtime: runtime.map_err(|error| failed(error.into()))?,
        })
    }

    pub(super) fn put(&self, checkpoint: &Checkpoint, note: String) -> Result<(), AnchorError> {
        let Checkpoint { log, sequence, hash, .. } = checkpoint;
        // Two processes may deliver the same head at different times.
        let digits = hash.to_string();
        let stamp: String = checkpoint.time.chars().filter(char::is_ascii_digit).collect();
        let name = format!("{sequence:020}-{}-{stamp}-{}", &digits[..16], std::process::id());
        let key = self.prefix.clone().join(log.to_string()).join(name);
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.runtime.block_on(self.store.put_opts(&key, PutPayload::from(note), options));
        put.map(drop).map_err(|error| self.failed(error))
    }

    fn notes(&self) -> Result<String, AnchorError> {
        self.runtime.block_on(async {
            let mut listed = self.store.list(Some(&self.prefix));
            let mut keys = Vec::new();
            while let Some(found) = listed.next().await {
                let found = found.map_err(|error| self.failed(error))?;
                if found.size <= LARGEST_NOTE {
                    keys.push(found.location);
                }
            }
            keys.sort_unstable();
            let read = futures_util::stream::iter(keys)
                .map(|key| async move { self.store.get(&key).await?.bytes().await })
                .buffered(CONCURRENT);
            let mut read = std::pin::pin!(read);
            let mut text = String::new();
            while let Some(note) = read.next().await {
                let note = note.map_err(|error| self.failed(error))?;
                text.push_str(&String::from_utf8_lossy(&note));
                text.push('\n');
            }
            Ok(text)
        })
    }

    fn failed(&self, error: object_store::Error) -> AnchorError {
        AnchorError::Bucket { url: self.url.clone(), source: error.into() }
    }
}
