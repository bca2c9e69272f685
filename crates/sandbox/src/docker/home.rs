//! Files in a container's home that are there before anything runs: they lie in the run's folder, and are lent.

use super::container::HOME;
use crate::spec::Lent;
use crate::state::RunFolder;
use belljar_confine::plan::Identity;
use belljar_files::host_path::HostPath;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// The run's directory with them.
const FOLDER: &str = "home";

/// Writes the files, each under a number, and returns where they are lent.
pub(super) fn lent(
    folder: &RunFolder,
    files: &BTreeMap<String, String>,
    owner: Identity,
) -> Result<Vec<Lent>, Box<dyn Error + Send + Sync>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let folder = folder.make(FOLDER, owner)?;
    let write = |(number, (path, content)): (usize, (&String, &String))| {
        let at = folder.as_path().join(number.to_string());
        // Programs in the container read it; their user is none of the host's.
        let mut file = File::options().write(true).create_new(true).mode(0o644).open(&at)?;
        file.write_all(content.as_bytes())?;
        Ok(Lent { path: HostPath::resolve(at)?, inside: format!("{HOME}/{path}") })
    };
    files.iter().enumerate().map(write).collect()
}
