//! Atomic replacement of a file's whole content: a reader sees the old one or the new one.

use super::{changeable, refused};
use crate::directory::{Directory, Replacement};
use belljar_contract::workbench::{
    Answer, FileWriteResult, MOST_WRITTEN_BYTES, RefusalReason, RequestRefusal, WriteFile,
};
use std::path::Path;

pub(super) fn write(write: &WriteFile, workspace: &Directory) -> Result<Answer, RequestRefusal> {
    let path = changeable(&write.path)?;
    if write.content.0.len() > MOST_WRITTEN_BYTES {
        let said = format!("the content is longer than {MOST_WRITTEN_BYTES} bytes");
        return Err(RequestRefusal::new(RefusalReason::TooLarge, said));
    }
    let replacement = Replacement {
        content: &write.content.0,
        mode: None,
        create_parents: write.create_directories,
        overwrite: true,
    };
    let written = workspace.replace_file(Path::new(path.as_str()), &replacement).map_err(|error| {
        let is_absent = error.is_absent() && !write.create_directories;
        let RequestRefusal { why, message } = refused(&error);
        match is_absent {
            true => RequestRefusal::new(
                why,
                format!("{message}; set `create_directories` to create missing parent directories"),
            ),
            false => RequestRefusal::new(why, message),
        }
    })?;
    Ok(Answer::Written(FileWriteResult { created: written.created }))
}
