//! `belljar audit`: what was done, as it was recorded.

mod anchor;
pub(super) mod table;
mod verify;

pub(super) use verify::described;

use super::Subcommand;
use crate::error::CliError;
use crate::sandbox_args::{given_target, parse_duration};
use crate::state;
use belljar_contract::id::RunId;
use belljar_store::audit::verify::is_checkpoint;
use belljar_store::audit::{self, AuditError, Record};
use jiff::Timestamp;
use rustix::stdio::stdout;
use rustix::termios::tcgetwinsize;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct AuditArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show records, the latest last
    Show(ShowArguments),
    /// Check that every record is there as it was written; exit code 1 if not
    Verify(verify::VerifyArguments),
    /// Deliver a checkpoint to each anchor of the configuration now; exit code 1 if one fails
    Anchor(anchor::AnchorArguments),
    /// Write records to a file that others can verify without the log
    Export(ExportArguments),
}

#[derive(Debug, clap::Args)]
struct ShowArguments {
    /// Only those of this run
    #[arg(long, value_name = "ID", value_parser = RunId::parse)]
    run: Option<RunId>,
    /// Only those of this kind, such as inference_call
    #[arg(long)]
    kind: Option<String>,
    /// Only those from this time on, such as 2026-01-31T12:00:00Z, or so long ago: 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Timestamp>,
    /// Maximum number of records; the latest are shown
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Print the lines as they stand in the log
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ExportArguments {
    /// Only the records of this run; of others their hashes
    #[arg(long, value_name = "ID", value_parser = RunId::parse)]
    run: Option<RunId>,
    /// Output file, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Subcommand for AuditArguments {
    const NAME: &'static str = "audit";
    const ABOUT: &'static str = "Show, verify, anchor and export the audit log";

    fn run(&self) -> Result<ExitCode, CliError> {
        let folder = audit::folder_in(state::open().path());
        match &self.action {
            Action::Show(arguments) => arguments.show(&folder),
            Action::Verify(arguments) => arguments.verify(&folder),
            Action::Anchor(arguments) => arguments.deliver(&folder),
            Action::Export(arguments) => arguments.export(&folder),
        }
    }
}

/// Shows every event of that kind from that time on, in order, with when it was.
pub(super) fn records_since(
    since: Option<Timestamp>,
    kind: &str,
    see: &mut dyn FnMut(&str, &str),
) -> Result<(), CliError> {
    let folder = audit::folder_in(state::open().path());
    if !folder.exists() {
        return Ok(());
    }
    // Text by time: all times are of one length.
    let since = since.map(|since| format!("{since:.6}"));
    audit::reading::each(&folder, &mut |record, _| {
        if record.kind == kind && since.as_deref().is_none_or(|since| record.time >= since) {
            see(record.time, record.event);
        }
    })?;
    Ok(())
}

pub(super) fn parse_since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let ago = parse_duration(text).map_err(|_| format!("{text:?} is neither a time nor a duration"))?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

// === impl ShowArguments ===

impl ShowArguments {
    fn show(&self, folder: &Path) -> Result<ExitCode, CliError> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let width = tcgetwinsize(stdout()).map_or(usize::MAX, |size| usize::from(size.ws_col));
        let mut latest = VecDeque::new();
        let mut written = match self.json {
            true => Ok(()),
            false => out.write_all(table::HEAD.as_bytes()),
        };
        let read = if folder.exists() {
            // Text by time: all times are of one length.
            let since = self.since.map(|since| format!("{since:.6}"));
            audit::reading::each(folder, &mut |record, line| {
                if !self.wants(record, since.as_deref()) || written.is_err() {
                    return;
                }
                let mut row = if self.json { line.to_vec() } else { table::row(record, width).into_bytes() };
                row.push(b'\n');
                match self.last {
                    None => written = out.write_all(&row),
                    Some(last) => {
                        latest.push_back(row);
                        latest.drain(..latest.len().saturating_sub(last));
                    }
                }
            })
        } else {
            Ok(())
        };
        let written = written.and_then(|()| latest.iter().try_for_each(|row| out.write_all(row)));
        match written.and_then(|()| out.flush()) {
            // The reader has closed the pipe.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            written => {
                written.map_err(CliError::output)?;
                read?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    fn wants(&self, record: &Record<'_>, since: Option<&str>) -> bool {
        let is_of_kind = match &self.kind {
            Some(kind) => record.kind == kind,
            None => !is_checkpoint(record),
        };
        is_of_kind
            && self.run.as_ref().is_none_or(|run| record.run == Some(run.as_str()))
            && since.is_none_or(|since| record.time >= since)
    }
}

// === impl ExportArguments ===

impl ExportArguments {
    fn export(&self, folder: &Path) -> Result<ExitCode, CliError> {
        let Some(output) = &self.output else {
            let out = BufWriter::new(std::io::stdout().lock());
            audit::export::export(folder, self.run.as_ref(), out)?;
            return Ok(ExitCode::SUCCESS);
        };
        let path = &given_target(output)?;
        // Write to a partial file first, so that an incomplete file is never taken for a complete one.
        let mut partial = path.clone().into_os_string();
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = PathBuf::from(partial);
        let cant_write = |source| AuditError::Io {
            action: "write",
            path: path.clone(),
            source: std::sync::Arc::new(source),
        };
        let file =
            File::options().write(true).create_new(true).mode(0o600).open(&partial).map_err(cant_write)?;
        let exported = audit::export::export(folder, self.run.as_ref(), BufWriter::new(&file));
        let written = exported.map_err(CliError::from).and_then(|exported| {
            let moved = file.sync_all().and_then(|()| std::fs::rename(&partial, path));
            moved.map_err(|error| CliError::from(cant_write(error)))?;
            Ok(exported)
        });
        if written.is_err() {
            // The destination file is not touched.
            let _ = std::fs::remove_file(&partial);
        }
        let records = written?.records;
        crate::output::errln!("{records} records in {}", crate::output::path(output));
        Ok(ExitCode::SUCCESS)
    }
}
