//! The record of a copy, in the folder of its run: all data needed to determine and apply its changes later.

use crate::workspace::baseline::Baseline;
use crate::workspace::changes::{ChangeSet, ChangesError};
use crate::workspace::imprint::Imprint;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::HostPath;
use belljar_trusted::in_use::{self, InUseEntry, UseKind};
use belljar_trusted::trusted_file::{self, PathRole};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of a record in the folder of its run.
pub(crate) const RECORD: &str = "copy.json";

/// The record of a copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CopyRecord {
    /// Run that made the changes.
    pub label: RunLabel,
    /// Time at which the copy was made.
    pub began_at: Timestamp,
    source: CopySource,
    /// The layer of changes, or the whole copy, relative to the folder.
    layer: PathBuf,
    /// The tree that the run began with, relative to the folder, if it is apart from the source.
    #[serde(default)]
    base: Option<PathBuf>,
    /// State of a copy that shares nothing with its source.
    #[serde(default)]
    imprint: Option<Imprint>,
    pub(super) baseline: Baseline,
    #[serde(default)]
    host_file: Option<HostFile>,
    /// Files that the host obeyed when the copy was made. A later command is not given the same files, and needs an
    /// approval all the same.
    #[serde(default)]
    obeyed: Vec<InUseEntry>,
    /// Paths that a person has dealt with already, as bytes.
    #[serde(default)]
    settled: BTreeSet<Vec<u8>>,
}

/// The run or session that made changes, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLabel {
    /// Kind of the run.
    pub kind: RunKind,
    /// The name that a person gave it.
    pub name: Option<String>,
    /// Command, job or agent of the run.
    pub title: String,
}

/// Kind of run that made changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// `belljar exec`.
    Exec,
    /// `belljar run`.
    Run,
    /// `belljar agent`.
    Agent,
    /// A session, also one of `belljar mcp`.
    Session,
}

/// A file that the host itself has put into a copy. It is no change as long as it has that content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFile {
    path: PathBuf,
    sha256: String,
}

/// Source of a copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum CopySource {
    /// A directory of a person's.
    Host(HostPath),
    /// A directory in the folder of the run, such as a clone.
    Own(PathBuf),
}

/// The longest title that is recorded.
const LONGEST_TITLE: usize = 200;

/// A path in a folder, relative to it. The folder may be named by way of a link, or relatively.
fn within(folder: &Path, path: &Path) -> Option<PathBuf> {
    let plain = path.strip_prefix(folder).ok().map(Path::to_owned);
    plain.or_else(|| Some(path.strip_prefix(folder.canonicalize().ok()?).ok()?.to_owned()))
}

// === impl RunLabel ===

impl RunLabel {
    /// The label of a command.
    pub fn of_command<'a>(kind: RunKind, words: impl Iterator<Item = &'a OsStr>) -> Self {
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        Self { kind, name: None, title: words.join(" ").chars().take(LONGEST_TITLE).collect() }
    }
}

// === impl RunKind ===

impl RunKind {
    /// Returns the name in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Run => "run",
            Self::Agent => "agent",
            Self::Session => "session",
        }
    }
}

// === impl HostFile ===

impl HostFile {
    /// A file with that content.
    pub fn new(path: impl Into<PathBuf>, content: &[u8]) -> Self {
        Self { path: path.into(), sha256: digest(content) }
    }

    /// Returns true if the file is as the host has put it, or is gone: a run that removes it changes nothing in the source.
    fn is_untouched(&self, layer: &Directory) -> bool {
        let is_gone = |stat: &rustix::fs::Stat| {
            let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
            kind == rustix::fs::FileType::CharacterDevice && stat.st_rdev == 0
        };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if layer.open(folder).is_ok()
            && layer.stat(&self.path).is_ok_and(|stat| stat.as_ref().is_none_or(is_gone))
        {
            return true;
        }
        let mut content = Vec::new();
        let read = layer.open_own_file(&self.path).map(|file| file.take(64 << 20).read_to_end(&mut content));
        matches!(read, Ok(Ok(_))) && digest(&content) == self.sha256
    }
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

// === impl CopyRecord ===

impl CopyRecord {
    /// The record of a copy that begins now. `folder` is that of its run, and `layer` is in it.
    pub fn begin(label: RunLabel, folder: &Path, (source, layer): (&HostPath, &Path)) -> Self {
        let source = match within(folder, source.as_path()) {
            Some(own) => CopySource::Own(own),
            None => CopySource::Host(source.clone()),
        };
        Self {
            label,
            began_at: Timestamp::now(),
            // A source of the run's own is written to by nothing but the end of the run.
            base: None,
            source,
            layer: within(folder, layer).unwrap_or_else(|| layer.to_owned()),
            imprint: None,
            baseline: Baseline::now(),
            host_file: None,
            obeyed: in_use::obeyed(),
            settled: BTreeSet::new(),
        }
    }

    /// A copy that shares nothing with its source, and what it was.
    #[must_use]
    pub fn of_whole(self, imprint: &Imprint) -> Self {
        let baseline = self.baseline.of_imprint(imprint);
        Self { imprint: Some(imprint.clone()), baseline, ..self }
    }

    /// A copy into which the host has put a file.
    #[must_use]
    pub fn with_host_file(self, host_file: Option<HostFile>) -> Self {
        Self { host_file, ..self }
    }

    /// A copy that is measured against this baseline.
    #[must_use]
    pub fn since(self, baseline: &Baseline) -> Self {
        Self { baseline: baseline.clone(), ..self }
    }

    /// A copy on a base that is apart from its source, if there is one: a snapshot in the folder of the run. Without one the layer lies
    /// on the source itself. Either way the directories of the source are recorded: changes are applied in them and in no others.
    #[must_use]
    pub fn on_base(self, folder: &Path, base: Option<&HostPath>) -> Self {
        let baseline = match &self.source {
            CopySource::Host(source) if self.imprint.is_none() => {
                let own = Directory::open_host(folder).and_then(|folder| folder.stat_itself());
                self.baseline.of_source_at(source, own.ok().as_ref())
            }
            _ => self.baseline,
        };
        let base = base.map(HostPath::as_path);
        let base = base.map(|base| within(folder, base).unwrap_or_else(|| base.to_owned()));
        Self { base, baseline, ..self }
    }

    /// Replaces what a copy that shares nothing with its source was, if this is one.
    pub(crate) fn set_imprint(&mut self, imprint: Option<&Imprint>) {
        self.imprint = imprint.cloned();
    }

    /// Replaces the baseline.
    pub(crate) fn set_baseline(&mut self, baseline: &Baseline) {
        self.baseline = baseline.clone();
    }

    /// Writes it into the folder of its run: it is there as a whole, or as it was.
    ///
    /// # Errors
    /// The error of writing.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        write_whole(folder, RECORD, &serde_json::to_vec(self)?)
    }

    /// The record in the folder of a run; `None` if there is none.
    ///
    /// # Errors
    /// The error of reading; also for a record that is damaged.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(folder.join(RECORD)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes it: what is in the folder goes with the run.
    ///
    /// # Errors
    /// The error of removing, unless there is no record.
    pub fn remove(folder: &Path) -> io::Result<()> {
        match std::fs::remove_file(folder.join(RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The directory that was copied, for people; `None` for one of the run's own.
    pub fn source_path(&self) -> Option<&Path> {
        match &self.source {
            CopySource::Host(path) => Some(path.as_path()),
            CopySource::Own(_) => None,
        }
    }

    /// The source in the folder of the run, relative to it, if it is the run's own.
    pub fn own_source(&self) -> Option<&Path> {
        match &self.source {
            CopySource::Host(_) => None,
            CopySource::Own(path) => Some(path),
        }
    }

    /// Opens the directory that was copied.
    pub(super) fn open_source(&self, folder: &Directory) -> Result<Directory, DirectoryError> {
        match &self.source {
            CopySource::Host(path) => Directory::open_meant(path),
            CopySource::Own(path) => folder.open_own(path),
        }
    }

    /// Opens the layer of changes.
    pub(super) fn open_layer(&self, folder: &Directory) -> Result<Directory, DirectoryError> {
        folder.open_own(&self.layer)
    }

    /// Opens the tree that the run began with, if it is apart from the source.
    pub(super) fn open_base(&self, folder: &Directory) -> Result<Option<Directory>, DirectoryError> {
        self.base.as_deref().map(|base| folder.open_own(base)).transpose()
    }

    /// Returns true if the changes are a layer over their source, and false for a whole copy.
    pub(super) fn is_layer(&self) -> bool {
        self.imprint.is_none()
    }

    /// The path of the layer, relative to the folder.
    pub(super) fn layer(&self) -> &Path {
        &self.layer
    }

    /// Reads the changes in the layer, without what the host has put there and what is settled.
    pub(super) fn read_changes(
        &self,
        base: &Directory,
        layer: &Directory,
    ) -> Result<ChangeSet, ChangesError> {
        let mut set = match &self.imprint {
            Some(imprint) => ChangeSet::read_copy(base, layer, imprint)?,
            None => ChangeSet::read(base, layer)?,
        };
        if let Some(host_file) = self.host_file.as_ref().filter(|host_file| host_file.is_untouched(layer)) {
            set.leave_out(&host_file.path);
        }
        match self.settled.is_empty() {
            true => Ok(set),
            false => Ok(set.only(|path| !self.settled.contains(path.as_os_str().as_bytes()))),
        }
    }

    /// Makes this process treat the files that were obeyed when the copy was made as obeyed, also if one was replaced
    /// since.
    pub(super) fn remember_obeyed(&self) -> io::Result<()> {
        in_use::register(&self.obeyed)?;
        for entry in self.obeyed.iter().filter(|entry| entry.used == UseKind::Obeyed) {
            // A path that leads nowhere any more has nothing to be obeyed.
            let _ = trusted_file::expect(&entry.path, PathRole::File);
        }
        Ok(())
    }

    /// Notes paths that a person has dealt with.
    pub(super) fn settle<'p>(&mut self, paths: impl IntoIterator<Item = &'p PathBuf>) {
        self.settled.extend(paths.into_iter().map(|path| path.as_os_str().as_bytes().to_owned()));
    }
}

/// Writes a file so that it is there as a whole, or as it was.
pub(super) fn write_whole(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let partial = folder.join(format!(".{name}"));
    let mut file =
        std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(content)?;
    std::fs::rename(&partial, folder.join(name))
}
