//! Files that a job finds below `/job/context` (`docs/contracts/job.md#j9.10`).

use crate::decode::{Decode, DecodeContext};
use crate::json::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Texts by their paths below `/job/context`, for example `requirements.md` or `skills/tests.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ContextFiles(BTreeMap<String, String>);

/// Maximum number of files, and of bytes in all of them together.
const MOST_FILES: usize = 200;
const MOST_BYTES: usize = 8 << 20;

/// Maximum length of a path, in bytes.
const LONGEST_PATH: usize = 250;

/// Pattern of relative names that stay below the directory: no component begins with a dot.
const PATH_PATTERN: &str =
    "^[^/.\\u0000-\\u001f][^/\\u0000-\\u001f]*(/[^/.\\u0000-\\u001f][^/\\u0000-\\u001f]*)*$";

// === impl ContextFiles ===

impl ContextFiles {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// All of them.
    pub fn into_map(self) -> BTreeMap<String, String> {
        self.0
    }
}

impl Decode for ContextFiles {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let files = BTreeMap::<String, String>::decode(node, at)?;
        let mut is_sound = true;
        for path in files.keys() {
            let expected = if is_path(path) {
                let is_file = |above: &str| files.contains_key(above);
                let above = path.match_indices('/').find(|(end, _)| is_file(&path[..*end]));
                above.map(|_| "a path without another file as its parent")
            } else {
                Some(
                    "a relative path such as skills/tests.md, without control characters or names that begin with a dot",
                )
            };
            if let Some(expected) = expected {
                is_sound = false;
                at.member(path).refuse("a file of this path", expected);
            }
        }
        let bytes: usize = files.values().map(String::len).sum();
        if files.len() > MOST_FILES || bytes > MOST_BYTES {
            is_sound = false;
            let found = format!("{} files with {bytes} bytes", files.len());
            at.refuse(found, format!("{MOST_FILES} files with {MOST_BYTES} bytes at most"));
        }
        is_sound.then_some(Self(files))
    }
}

fn is_path(text: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(|c: char| c < ' ');
    text.len() <= LONGEST_PATH && text.split('/').all(is_name)
}

impl JsonSchema for ContextFiles {
    fn schema_name() -> Cow<'static, str> {
        "ContextFiles".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Files below /job/context, by relative path; the job's own content takes \
        precedence.",
            "type": "object",
            "maxProperties": MOST_FILES,
            "propertyNames": { "pattern": PATH_PATTERN, "maxLength": LONGEST_PATH },
            "additionalProperties": { "type": "string" },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode_document;
    use crate::json;

    fn parse(document: &str) -> Result<ContextFiles, String> {
        let node = json::parse(document.as_bytes()).unwrap();
        decode_document(&node).map_err(|problems| problems.to_string())
    }

    #[test]
    fn context_file_paths_are_relative_and_do_not_nest() {
        let files = parse(r#"{ "task.md": "t", "skills/tests.md": "s", "skills/ü x.md": "" }"#).unwrap();
        assert_eq!((files.get("task.md"), files.get("skills")), (Some("t"), None));
        for path in ["", "/a", "a/", "a//b", "..", "a/../b", ".git/config", "a\\nb", "./a"] {
            let refused = parse(&format!(r#"{{ "{path}": "" }}"#)).unwrap_err();
            assert!(refused.contains("a relative path such as"), "{path}: {refused}");
        }
        let refused = parse(r#"{ "a": "", "a/b/c": "" }"#).unwrap_err();
        assert!(refused.contains("without another file as its parent"), "{refused}");
        assert!(parse(r#"{ "a": 1 }"#).is_err());
    }
}
