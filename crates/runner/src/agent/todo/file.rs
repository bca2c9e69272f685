//! The todo list's file, `todo.json` beside the job: replaced atomically, and on disk before the agent goes on.

use super::TodoList;
use crate::atomic_file::{self, Durability};
use belljar_contract::result::agent::TodoItem;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The todo list's file, if there is a directory for one.
#[derive(Debug)]
pub(in crate::agent) struct TodoFile {
    directory: Option<OwnedFd>,
    job_id: String,
}

/// Content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    job_id: String,
    items: Vec<TodoItem>,
}

const NAME: &str = "todo.json";
const VERSION: u32 = 1;
const LONGEST: u64 = 1 << 20;

// === impl TodoFile ===

impl TodoFile {
    /// Opens the file in the job's directory; without one the list is kept in memory only.
    pub(in crate::agent) fn in_directory(path: Option<&Path>, job_id: &str) -> io::Result<Self> {
        Ok(Self { directory: path.map(atomic_file::open_directory).transpose()?, job_id: job_id.to_owned() })
    }

    /// Keeps the list in memory only.
    pub(in crate::agent) fn nowhere() -> Self {
        Self { directory: None, job_id: String::new() }
    }

    /// Returns the list of an earlier run of the same job, if there is a readable one.
    pub(in crate::agent) fn earlier(&self) -> io::Result<Option<TodoList>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(directory, NAME, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        let document: Document = serde_json::from_slice(&bytes)?;
        Ok(document.list(&self.job_id))
    }

    /// Writes the list.
    pub(in crate::agent) fn keep(&self, list: &TodoList) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let document = Document { version: VERSION, job_id: self.job_id.clone(), items: list.items.clone() };
        atomic_file::put(directory, NAME, &serde_json::to_vec_pretty(&document)?, Durability::Machine)
    }
}

impl Document {
    /// Returns the list; `None` if it belongs to another job, or can't have been written by this program.
    fn list(self, job_id: &str) -> Option<TodoList> {
        let Self { version: VERSION, job_id: whose, items } = self else { return None };
        let mut ids: Vec<u32> = items.iter().map(|item| item.id).collect();
        ids.sort_unstable();
        let is_sound = whose == job_id && ids.windows(2).all(|pair| pair[0] != pair[1]);
        let next = ids.last().copied().unwrap_or_default().checked_add(1).filter(|_| is_sound)?;
        Some(TodoList { items, next })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::material::Material;
    use super::*;

    fn list() -> TodoList {
        let material = Material { requirements: vec!["build".to_owned()], ..Material::default() };
        TodoList::of(&material, &[])
    }

    #[test]
    fn todo_file_is_read_back_only_by_the_same_job() {
        let folder = tempfile::tempdir().unwrap();
        let file = TodoFile::in_directory(Some(folder.path()), "a").unwrap();
        assert_eq!(file.earlier().unwrap(), None);
        file.keep(&list()).unwrap();
        assert_eq!(file.earlier().unwrap(), Some(list()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let of_another = TodoFile::in_directory(Some(folder.path()), "b").unwrap();
        assert_eq!(of_another.earlier().unwrap(), None);
        let nowhere = TodoFile::in_directory(None, "a").unwrap();
        nowhere.keep(&list()).unwrap();
        assert_eq!(nowhere.earlier().unwrap(), None);
    }

    #[test]
    fn foreign_or_malformed_todo_file_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) =
            (folder.path().join(NAME), TodoFile::in_directory(Some(folder.path()), "a").unwrap());
        for wrong in ["", "[]", r#"{"version":1,"job_id":"a","items":[],"more":1}"#] {
            std::fs::write(&path, wrong).unwrap();
            assert!(file.earlier().is_err(), "{wrong}");
        }
        let item = r#"{"id":4294967295,"title":"t","status":"open","origin":"agent"}"#;
        std::fs::write(&path, format!(r#"{{"version":1,"job_id":"a","items":[{item}]}}"#)).unwrap();
        assert_eq!(file.earlier().unwrap(), None);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(file.earlier().is_err());
        file.keep(&list()).unwrap();
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }
}
