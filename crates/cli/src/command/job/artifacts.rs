//! `belljar job artifacts`: the files that a job has left, listed or fetched.

mod fetching;

pub(crate) use fetching::ArtifactError;

use super::parse_id;
use crate::client::Client;
use crate::command::plain;
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use crate::trust_review::TrustArguments;
use belljar_contract::id::JobId;
use belljar_contract::result::Artifact;
use fetching::{ArtifactDownload, DownloadDirectory, ReviewStage};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

const WITHOUT_OUTPUT: &str = "--trust and --trust-all say yes to files that --output DIR fetches";

#[derive(Debug, clap::Args)]
pub(super) struct ArtifactsArguments {
    /// The job's id
    #[arg(value_parser = parse_id)]
    id: JobId,
    /// Fetch them into this directory, which is made if there is none
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long, requires = "output")]
    force: bool,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustArguments,
}

// === impl ArtifactsArguments ===

impl ArtifactsArguments {
    pub(super) fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let job = client.job(&self.id)?.known;
        if !job.job.status.is_final() {
            crate::output::errln!("belljar: the job is not over; what it leaves is known when it is");
        }
        let artifacts = job.outcome.map(|outcome| outcome.artifacts).unwrap_or_default();
        match &self.output {
            Some(output) => self.fetch(client, &artifacts, output)?,
            None if !self.trust.is_empty() => return Err(CliError::usage(WITHOUT_OUTPUT.to_owned())),
            None if self.json => print_json(&artifacts)?,
            None => print(&table(&artifacts))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn fetch(
        &self,
        client: &Client,
        artifacts: &[Artifact],
        output: &std::path::Path,
    ) -> Result<(), CliError> {
        // All of them, before the first is fetched.
        let wanted = artifacts.iter().map(ArtifactDownload::of).collect::<Result<Vec<_>, _>>()?;
        let (wanted, left_out) = ArtifactDownload::apart(wanted);
        let destination = DownloadDirectory::open(output, self.force)?;
        for wanted in &wanted {
            destination.must_be_free(wanted)?;
        }
        // Nothing is in the directory before all of it was reviewed.
        let stage = ReviewStage::new()?;
        for wanted in &wanted {
            stage.fetch(client, &self.id, wanted)?;
        }
        self.trust.with_yes(|trust| destination.review(&stage, trust))?;
        let mut fetched = Vec::new();
        for wanted in &wanted {
            destination.take(&stage, wanted)?;
            let (artifact, file) = (wanted.artifact(), output.join(wanted.path()));
            match self.json {
                true => fetched.push(json!({
                    "path": artifact.path, "sha256": artifact.sha256, "size_bytes": artifact.size_bytes, "file": file,
                })),
                false => print(&format!("{}\n", crate::output::path(&file)))?,
            }
        }
        if self.json {
            print_json(&fetched)?;
        }
        for further in left_out.iter().skip(1) {
            crate::output::errln!("belljar: {}", plain(&further.left_out().chain()));
        }
        left_out.first().map_or(Ok(()), |first| Err(first.left_out()))
    }
}

fn table(artifacts: &[Artifact]) -> String {
    if artifacts.is_empty() {
        return "No artifacts.\n".to_owned();
    }
    let mut text = format!("{:>12}  {:64}  PATH\n", "BYTES", "SHA-256");
    for Artifact { path, sha256, size_bytes } in artifacts {
        text += &format!("{size_bytes:>12}  {:64}  {}\n", plain(sha256), plain(path));
    }
    text
}
