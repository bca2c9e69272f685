//! `belljar audit verify`

use crate::error::CliError;
use crate::progress::harmless;
use belljar_policy::untrusted;
use belljar_store::audit::anchor::{
    AnchorError, AnchorEvidence, AnchorStatus, ConfirmedRange, notes_in_bucket, notes_in_file, statuses,
};
use belljar_store::audit::verify::{KnownRecord, LogExtent, Verdict, VerifyRequirements};
use belljar_store::audit::{self, AuditError, Hash, PublicKey};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArguments {
    /// An export; without it the log of this machine is verified
    file: Option<PathBuf>,
    /// The key that must have signed it, kept elsewhere
    #[arg(long, value_name = "PUBLIC", value_parser = PublicKey::parse)]
    key: Option<PublicKey>,
    /// A record that must be in it, kept elsewhere
    #[arg(long, value_name = "SEQUENCE:HASH", value_parser = parse_record)]
    expect: Vec<KnownRecord>,
    /// Checkpoints that it must agree with: a file of an anchor or of a syslog daemon, a folder of such files, or a bucket
    /// as s3://BUCKET/PREFIX
    #[arg(long, value_name = "FILE|FOLDER|BUCKET")]
    anchor: Vec<String>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Exit code for a log that is not as it was written, or that no given anchor knows.
const NOT_INTACT: u8 = 1;

/// Note about the checks that need more than the log itself.
const ALONE: &str = "  not compared with an anchor: this can't show that the end was cut off, or that the log was rewritten, with\n  \
    the key that lies beside it, or that an older copy was put back (--anchor, or --key and --expect)\n";

fn parse_record(text: &str) -> Result<KnownRecord, String> {
    let parts = text.split_once(':').and_then(|(sequence, hash)| {
        Some(KnownRecord { sequence: sequence.parse().ok()?, hash: Hash::parse(hash).ok()? })
    });
    parts.ok_or_else(|| format!("{text:?} is not the number of a record, a colon and its hash"))
}

// === impl VerifyArguments ===

impl VerifyArguments {
    pub(super) fn verify(&self, folder: &Path) -> Result<ExitCode, CliError> {
        let mut evidence = AnchorEvidence::default();
        for anchor in &self.anchor {
            add_anchor(&mut evidence, anchor)?;
        }
        let demands = VerifyRequirements { key: self.key, anchors: self.expect.clone(), evidence };
        let (verdict, statuses) = match &self.file {
            Some(file) if !file.is_dir() => (audit::export::verify(file, &demands)?, Vec::new()),
            Some(folder) => (audit::verify::verify(folder, &demands)?, statuses(folder)),
            None => (audit::verify::verify(folder, &demands)?, statuses(folder)),
        };
        match self.json {
            true => crate::output::outln!("{}", as_json(&verdict, &statuses)),
            false => crate::output::out!("{}", self.as_text(&verdict, &statuses)),
        }
        Ok(match verdict {
            Verdict::Intact(extent) if !is_unknown_to_anchors(&extent) => ExitCode::SUCCESS,
            _ => ExitCode::from(NOT_INTACT),
        })
    }

    fn as_text(&self, verdict: &Verdict, statuses: &[AnchorStatus]) -> String {
        let extent = match verdict {
            Verdict::Intact(extent) => extent.as_ref(),
            Verdict::Broken(finding) => return format!("not intact: {}\n", harmless(&finding.to_string())),
        };
        let LogExtent { key, records, own_records, omitted, last, torn_tails, has_leftover, vouched } =
            extent;
        let mut text = match is_unknown_to_anchors(extent) {
            true => "not anchored: the anchors hold no checkpoint of this log".to_owned(),
            false => format!("intact: {records} records, and {own_records} of the log's own"),
        };
        if *omitted > 0 {
            text += &format!("; {omitted} of others left out");
        }
        text += &format!("\n  last record  {}:{}\n  signed with  {key}\n", last.sequence, last.hash);
        if *torn_tails > 0 {
            text += &format!("  {torn_tails} times a crash left something that was never acknowledged\n");
        }
        if *has_leftover {
            text +=
                "  a crash has left something that was never acknowledged; the next record moves it aside\n";
        }
        match vouched {
            Some(vouched) => text += &coverage(vouched, last.sequence),
            None if self.key.is_none() || self.expect.is_empty() => text += ALONE,
            None => {}
        }
        text + &anchors_of_this_machine(statuses)
    }
}

/// Adds what one anchor holds.
fn add_anchor(evidence: &mut AnchorEvidence, anchor: &str) -> Result<(), CliError> {
    if anchor.starts_with("s3://") {
        let notes = notes_in_bucket(anchor).map_err(|source| unreadable(anchor, source))?;
        evidence.add(anchor, &notes);
        return Ok(());
    }
    let path = Path::new(anchor);
    let failed = |path: &Path, source| {
        CliError::from(AuditError::Io { action: "read", path: path.to_owned(), source: Arc::new(source) })
    };
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| failed(path, error))?;
        files = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
        files.sort_unstable();
    }
    for file in files {
        let bytes = notes_in_file(&file).map_err(|error| match error {
            AnchorError::Io { source, .. } => failed(&file, source),
            other => failed(&file, std::io::Error::other(other)),
        })?;
        evidence.add(&untrusted::name(&file), &String::from_utf8_lossy(&bytes));
    }
    Ok(())
}

fn unreadable(anchor: &str, source: AnchorError) -> CliError {
    CliError::from(AuditError::Anchor { target: anchor.to_owned(), source: Arc::new(source) })
}

/// Whether anchors were given, and none of them has a checkpoint that is signed with the log's key.
fn is_unknown_to_anchors(extent: &LogExtent) -> bool {
    extent.vouched.as_ref().is_some_and(|vouched| vouched.checkpoints == 0)
}

/// Says up to where anchors vouch, and what only the local signature covers.
fn coverage(vouched: &ConfirmedRange, last: u64) -> String {
    let mut text = String::new();
    let ConfirmedRange { sequence, time, checkpoints, anchors, other_logs, unreadable } = vouched;
    if *checkpoints > 0 {
        let time = time.as_deref().unwrap_or("an unknown time");
        let _ = writeln!(
            text,
            "  anchored     records 1 to {sequence}, at {} ({checkpoints} checkpoints in {})",
            harmless(time),
            harmless(&anchors.join(", "))
        );
    }
    let left = last.saturating_sub(*sequence);
    if left > 0 {
        let _ = writeln!(
            text,
            "  not anchored {left} records, {} to {last}: covered by the local signature alone",
            sequence + 1
        );
    }
    for (log, last) in other_logs {
        let _ = writeln!(text, "  the anchors also hold checkpoints of the log {log}, up to record {last}");
    }
    if *unreadable > 0 {
        let _ = writeln!(text, "  {unreadable} notes in the anchors can't be read or are not signed rightly");
    }
    text
}

/// Says what is known of the anchors that this machine delivers to.
fn anchors_of_this_machine(statuses: &[AnchorStatus]) -> String {
    let mut text = String::new();
    for status in statuses {
        let _ = writeln!(text, "  {}", harmless(&described(status)));
    }
    text
}

/// One line about an anchor.
pub(in crate::command) fn described(status: &AnchorStatus) -> String {
    let AnchorStatus { target, is_on_same_file_system, delivered, failing, .. } = status;
    let mut text = match delivered {
        Some(delivered) => format!("anchor {target}: record {} at {}", delivered.sequence, delivered.time),
        None => format!("anchor {target}: nothing delivered yet"),
    };
    if let Some(failing) = failing {
        let _ = write!(text, "; failing since {}: {}", failing.since, failing.error);
    }
    if *is_on_same_file_system {
        text += "; on the same file system as the log";
    }
    text
}

fn as_json(verdict: &Verdict, statuses: &[AnchorStatus]) -> String {
    let value = match verdict {
        Verdict::Intact(extent) => json!({
            "intact": !is_unknown_to_anchors(extent),
            "records": extent.records,
            "own_records": extent.own_records,
            "omitted": extent.omitted,
            "last": { "sequence": extent.last.sequence, "hash": extent.last.hash.to_string() },
            "public_key": extent.key.to_string(),
            "torn_tails": extent.torn_tails,
            "has_leftover": extent.has_leftover,
            "anchored": extent.vouched.as_ref().map(|vouched| coverage_as_json(vouched, extent.last.sequence)),
            "anchors": statuses,
        }),
        Verdict::Broken(finding) => json!({
            "intact": false,
            "file": finding.file,
            "line": finding.line,
            "sequence": finding.sequence,
            "fault": finding.fault.to_string(),
        }),
    };
    crate::output::json(&value)
}

fn coverage_as_json(vouched: &ConfirmedRange, last: u64) -> Value {
    json!({
        "to_sequence": vouched.sequence,
        "time": vouched.time,
        "checkpoints": vouched.checkpoints,
        "in": vouched.anchors,
        "not_anchored_records": last.saturating_sub(vouched.sequence),
        "other_logs": vouched.other_logs,
        "unreadable_notes": vouched.unreadable,
    })
}
