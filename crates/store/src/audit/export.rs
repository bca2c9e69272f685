//! Exports: records as they stand in the log, in one file that can be checked without the log.
//!
//! ```text
//! {"belljar_audit_export":1,"public_key":"…","run":null,"first":1,"last":9}
//! {"sequence":1,…                                               a record as it is
//! {"omitted":2,"content":"…","previous":"…","hash":"…"}         one that the export is not about
//! …
//! {"signature":"…"}                                             over all lines before
//! ```
//!
//! The last record is a checkpoint. An export of a run proves that its records are in the log. That the run has no
//! others is only the exporter's claim.

use super::anchor::EvidenceComparison;
use super::chain::{Chain, Position};
use super::checkpoint;
use super::error::{AuditError, Fault, Finding};
use super::folder::LogFolder;
use super::hash::Hash;
use super::key::PublicKey;
use super::record::{ChainLinks, Record};
use super::segment::Lines;
use super::snapshot::Snapshot;
use super::verify::{KnownRecord, RecordCount, Verdict, VerifyRequirements, verdict};
use belljar_contract::id::RunId;
use belljar_trusted::input;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::Path;

/// Summary of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportSummary {
    /// Number of exported records that are not the log's own.
    pub records: u64,
}

/// Reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The log can't be read, or is damaged.
    #[error(transparent)]
    Log(#[from] AuditError),
    /// The export can't be written.
    #[error("can't write the export")]
    Write {
        /// Underlying error.
        #[source]
        source: io::Error,
    },
    /// The log has no records to export.
    #[error("the log has no records of that run")]
    Nothing,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExportHeader {
    key: PublicKey,
    run: Option<String>,
    first: u64,
    last: u64,
}

/// Writer that hashes the bytes it passes on.
struct HashingWriter<W> {
    to: W,
    hash: Sha256,
}

const LAST_LINE: (&str, &str) = ("{\"signature\":\"", "\"}");

/// Writes the whole log, or the records of one run.
///
/// # Errors
/// [`ExportError`] when the log is damaged, among others: everything that is signed here has been verified.
pub fn export(folder: &Path, run: Option<&RunId>, to: impl Write) -> Result<ExportSummary, ExportError> {
    let snapshot = Snapshot::take(folder)?;
    let key = LogFolder::of_log(folder)?.secret_key()?;
    let (header, records) = survey(&snapshot, run.map(RunId::as_str))?;
    let mut to = HashingWriter { to, hash: Sha256::new() };
    let mut text = header.to_line();
    let mut outcome = Ok(());
    snapshot.each(&mut |record, seen| {
        if (header.first..=header.last).contains(&record.sequence) && outcome.is_ok() {
            match header.is_about(record) {
                true => text.extend_from_slice(seen.line),
                false => push_omitted(&mut text, record.sequence, seen.line),
            }
            text.push(b'\n');
            outcome = to.write_all(&text);
            text.clear();
        }
        Ok(())
    })?;
    let write = |source| ExportError::Write { source };
    outcome.map_err(write)?;
    let mut last = LAST_LINE.0.as_bytes().to_vec();
    key.sign(&message(to.hash.clone()), &mut last);
    last.extend_from_slice(LAST_LINE.1.as_bytes());
    last.push(b'\n');
    to.write_all(&last).and_then(|()| to.flush()).map_err(write)?;
    Ok(ExportSummary { records })
}

/// Determines the records that an export spans.
fn survey(snapshot: &Snapshot, run: Option<&str>) -> Result<(ExportHeader, u64), ExportError> {
    let mut header = ExportHeader { key: snapshot.key, run: run.map(str::to_owned), first: 0, last: 0 };
    let mut count = RecordCount::new(snapshot.key, &VerifyRequirements::default());
    let demands = VerifyRequirements::default();
    let mut is_open = false;
    snapshot.each(&mut |record, _| {
        let is_checkpoint = record.kind == checkpoint::KIND;
        let is_chosen = run.is_none() || record.run == run;
        if is_chosen {
            count.see(record, "", &demands)?;
            is_open = true;
            header.first = if header.first == 0 { record.sequence } else { header.first };
        }
        // Ends with the checkpoint that covers the last record.
        if is_checkpoint && is_open {
            header.last = record.sequence;
            is_open = false;
        }
        Ok(())
    })?;
    match header.first {
        0 => Err(ExportError::Nothing),
        _ => Ok((header, count.extent.records)),
    }
}

fn push_omitted(text: &mut Vec<u8>, sequence: u64, line: &[u8]) {
    // It was read as a record just now.
    if let Ok((_, ChainLinks { content, previous, .. })) = ChainLinks::split(line) {
        text.extend_from_slice(format!("{{\"omitted\":{sequence}").as_bytes());
        super::record::push_links(text, &content, &previous);
        text.pop();
    }
}

fn message(hash: Sha256) -> Vec<u8> {
    format!("belljar audit export 1\n{}\n", Hash::from_array(hash.finalize().into())).into_bytes()
}

/// Verifies an export.
///
/// # Errors
/// [`AuditError`] when it can't be read. A fault in it is a [`Verdict`].
pub fn verify(file: &Path, demands: &VerifyRequirements) -> Result<Verdict, AuditError> {
    verdict(ExportCheck::run(file, demands))
}

/// A look at an export.
struct ExportCheck<'a> {
    file: String,
    demands: &'a VerifyRequirements,
    header: ExportHeader,
    count: RecordCount,
    chain: Option<Chain>,
    hash: Sha256,
}

// === impl ExportCheck ===

impl<'a> ExportCheck<'a> {
    fn run(path: &Path, demands: &'a VerifyRequirements) -> Result<super::verify::LogExtent, AuditError> {
        let failed = |error| AuditError::io("read", path, error);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut lines = Lines::of(input::open(path).map_err(failed)?, u64::MAX);
        let mut inspection: Option<Self> = None;
        let mut is_over = false;
        while let Some(line) = lines.next_line().map_err(failed)? {
            let about = |sequence, fault| AuditError::Damaged {
                finding: Finding { file: name.clone(), line: Some(line.number), sequence, fault },
            };
            if is_over || !line.is_whole {
                return Err(about(None, if is_over { Fault::Added } else { Fault::Malformed }));
            }
            match &mut inspection {
                None => inspection = Some(Self::begin(line.bytes, name.clone(), demands)?),
                Some(inspection) => {
                    let sequence = inspection.next_sequence();
                    is_over = inspection.see(line.bytes).map_err(|fault| about(sequence, fault))?;
                }
            }
        }
        match inspection.filter(|_| is_over) {
            Some(inspection) => inspection.end(),
            None => Err(AuditError::damaged(name, None, Fault::Malformed)),
        }
    }

    fn begin(line: &[u8], file: String, demands: &'a VerifyRequirements) -> Result<Self, AuditError> {
        let header = ExportHeader::parse(line)
            .ok_or_else(|| AuditError::Damaged { finding: Finding::about(file.clone(), Fault::Malformed) })?;
        demands.accept(header.key, &file)?;
        let mut inspection = Self {
            file,
            demands,
            count: RecordCount::new(header.key, demands),
            header,
            chain: None,
            hash: Sha256::new(),
        };
        inspection.take_in(line);
        Ok(inspection)
    }

    fn take_in(&mut self, line: &[u8]) {
        self.hash.update(line);
        self.hash.update(b"\n");
    }

    fn next_sequence(&self) -> Option<u64> {
        let next = self.chain.as_ref().map_or(self.header.first, |chain| chain.position().sequence + 1);
        (next <= self.header.last).then_some(next)
    }

    /// Checks a line; returns true if it is the last one.
    fn see(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let Some(sequence) = self.next_sequence() else {
            let digits = line.strip_prefix(LAST_LINE.0.as_bytes());
            let digits = digits.and_then(|rest| rest.strip_suffix(LAST_LINE.1.as_bytes()));
            let digits = digits.ok_or(Fault::Malformed)?;
            return match self.header.key.has_signed(&message(self.hash.clone()), digits) {
                true => Ok(true),
                false => Err(Fault::Forged),
            };
        };
        self.take_in(line);
        let (begin, links) = ChainLinks::split(line)?;
        let (first, key) = (self.header.first, self.header.key);
        let chain = self.chain.get_or_insert_with(|| {
            let before = if first == 1 { Position::BEGIN.hash } else { links.previous };
            Chain::from(Position { sequence: first - 1, hash: before }, key)
        });
        let demands_met = if begin == format!("{{\"omitted\":{sequence}").as_bytes() {
            chain.skip(&links)?;
            self.count.extent.omitted += 1;
            self.count.reach(KnownRecord { sequence, hash: links.hash }, "", self.demands)
        } else {
            let record = chain.follow(line)?;
            if !self.header.is_about(&record) {
                return Err(Fault::Foreign);
            }
            self.count.see(&record, "", self.demands)
        };
        demands_met.map(|()| false).map_err(|error| match error {
            AuditError::Damaged { finding } => finding.fault,
            _ => Fault::Unexpected,
        })
    }

    fn end(self) -> Result<super::verify::LogExtent, AuditError> {
        if !self.chain.is_some_and(|chain| chain.is_signed()) {
            return Err(AuditError::damaged(self.file, Some(self.header.last), Fault::Added));
        }
        self.demands.met_by(&self.count.extent, self.header.first, &self.file)?;
        let vouched = self.count.comparison.map(EvidenceComparison::end_of_part);
        Ok(super::verify::LogExtent { vouched, ..self.count.extent })
    }
}

// === impl ExportHeader ===

impl ExportHeader {
    fn to_line(&self) -> Vec<u8> {
        let Self { key, run, first, last } = self;
        let run = run.as_ref().map_or("null".to_owned(), |run| format!("\"{run}\""));
        format!(
            "{{\"belljar_audit_export\":1,\"public_key\":\"{key}\",\"run\":{run},\"first\":{first},\"last\":{last}}}\n"
        )
        .into_bytes()
    }

    /// Reads a line that is exactly as it would be written.
    fn parse(line: &[u8]) -> Option<Self> {
        let rest = std::str::from_utf8(line).ok()?;
        let rest = rest.strip_prefix("{\"belljar_audit_export\":1,\"public_key\":\"")?;
        let (key, rest) = rest.split_once("\",\"run\":")?;
        let (run, rest) = rest.split_once(",\"first\":")?;
        let (first, last) = rest.strip_suffix('}')?.split_once(",\"last\":")?;
        let header = Self {
            key: PublicKey::parse(key).ok()?,
            run: run.strip_prefix('"').and_then(|run| run.strip_suffix('"')).map(str::to_owned),
            first: first.parse().ok().filter(|first| *first > 0)?,
            last: last.parse().ok()?,
        };
        (header.to_line().strip_suffix(b"\n") == Some(line) && header.first < header.last).then_some(header)
    }

    /// Returns true if a record is exported whole. Checkpoints always are: verifiers need them.
    fn is_about(&self, record: &Record<'_>) -> bool {
        self.run.is_none() || record.run == self.run.as_deref() || record.kind == checkpoint::KIND
    }
}

// === impl HashingWriter ===

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
