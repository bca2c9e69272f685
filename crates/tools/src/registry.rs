//! Registry of tools: those of the host, which are fixed, and those of other servers, which are replaced as a whole.

use crate::Tool;
use crate::schema::{ArgumentSchema, CheckedSchema, InvalidSchemaError};
use belljar_contract::tool::ToolName;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Tools by name.
#[derive(Default)]
pub struct Registry {
    own: BTreeMap<ToolName, Arc<Entry>>,
    installed: RwLock<BTreeMap<String, Vec<Arc<Entry>>>>,
}

/// A tool with its compiled schema.
pub struct Entry {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Schema for its arguments.
    pub schema: ArgumentSchema,
}

/// A tool can't be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The name is taken.
    #[error("there are two tools with the name {name}")]
    Duplicate {
        /// Name of the tool.
        name: ToolName,
    },
    /// The schema is invalid, so the tool can't be called.
    #[error("the schema of the tool {name} is invalid")]
    Schema {
        /// Name of the tool.
        name: ToolName,
        /// The cause.
        #[source]
        source: InvalidSchemaError,
    },
    /// The schemas of the server exceed a limit.
    #[error(
        "the tool {name} is not offered: the schemas of its server have more than {most} {what} in total"
    )]
    TooMuch {
        /// Name of the tool.
        name: ToolName,
        /// The limit.
        most: usize,
        /// The limited quantity.
        what: &'static str,
    },
}

/// Compiled tools of one server, ready for registration. Preparing them takes time, but doesn't block other callers.
#[derive(Debug, Default)]
pub struct PreparedTools {
    entries: Vec<Arc<Entry>>,
    refused: Vec<RegisterError>,
}

/// Limits for the schemas of one server: bytes of text, and bytes of compiled patterns.
const MOST_SCHEMA_BYTES: usize = 1 << 20;
const MOST_PATTERN_BYTES: usize = 32 << 20;

/// Remaining part of these limits.
struct SchemaQuota {
    bytes: usize,
    patterns: usize,
}

// === impl Registry ===

impl Registry {
    /// Creates a registry with the tools of the host.
    ///
    /// # Errors
    /// [`RegisterError`] for a duplicate name or an invalid schema.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegisterError> {
        let mut own = BTreeMap::new();
        for tool in tools {
            let entry = Entry::new(tool)?;
            let name = entry.name().clone();
            if own.insert(name.clone(), Arc::new(entry)).is_some() {
                return Err(RegisterError::Duplicate { name });
            }
        }
        Ok(Self { own, installed: RwLock::default() })
    }

    /// Replaces all tools of a server; an empty list removes them. Tools that can't be registered are returned as errors.
    pub fn install(
        &self,
        server: &str,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Vec<RegisterError> {
        self.put(server, PreparedTools::of(tools))
    }

    /// [`Registry::install`] with compiled schemas.
    pub fn put(&self, server: &str, prepared: PreparedTools) -> Vec<RegisterError> {
        let PreparedTools { entries: prepared, mut refused } = prepared;
        let mut all = self.installed.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(server);
        let mut taken: BTreeSet<ToolName> = self.own.keys().cloned().collect();
        taken.extend(all.values().flatten().map(|entry| entry.name().clone()));
        let mut entries = Vec::new();
        for entry in prepared {
            let name = entry.name().clone();
            if taken.insert(name.clone()) {
                entries.push(entry);
            } else {
                refused.push(RegisterError::Duplicate { name });
            }
        }
        if !entries.is_empty() {
            all.insert(server.to_owned(), entries);
        }
        refused
    }

    /// Finds a tool by name.
    pub fn find(&self, name: &ToolName) -> Option<Arc<Entry>> {
        let of_others = || {
            let installed = self.installed.read().unwrap_or_else(PoisonError::into_inner);
            installed.values().flatten().find(|entry| entry.name() == name).cloned()
        };
        self.own.get(name).cloned().or_else(of_others)
    }

    /// All tools, by name.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let installed = self.installed.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = self.own.values().chain(installed.values().flatten()).cloned().collect();
        all.sort_by(|one, other| one.name().cmp(other.name()));
        all
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(self.name()).finish()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().iter().map(|entry| entry.name().clone())).finish()
    }
}

// === impl PreparedTools ===

impl PreparedTools {
    /// Checks and compiles the schemas of one server's tools. Tools beyond the server's limits are not compiled.
    pub fn of(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut room = SchemaQuota { bytes: MOST_SCHEMA_BYTES, patterns: MOST_PATTERN_BYTES };
        let mut prepared = Self::default();
        for tool in tools {
            match Entry::within(tool, &mut room) {
                Ok(entry) => prepared.entries.push(Arc::new(entry)),
                Err(error) => prepared.refused.push(error),
            }
        }
        prepared
    }
}

// === impl Entry ===

impl Entry {
    fn new(tool: Arc<dyn Tool>) -> Result<Self, RegisterError> {
        let definition = tool.definition();
        let schema = ArgumentSchema::new(&definition.input)
            .map_err(|source| RegisterError::Schema { name: definition.name.clone(), source })?;
        Ok(Self { tool, schema })
    }

    /// Creates an entry, and subtracts its size from the remaining room.
    fn within(tool: Arc<dyn Tool>, room: &mut SchemaQuota) -> Result<Self, RegisterError> {
        let definition = tool.definition();
        let name = || definition.name.clone();
        let judged = CheckedSchema::new(&definition.input)
            .map_err(|source| RegisterError::Schema { name: name(), source })?;
        let bytes = definition.input.to_string().len();
        let (Some(bytes), Some(patterns)) =
            (room.bytes.checked_sub(bytes), room.patterns.checked_sub(judged.pattern_bytes()))
        else {
            let (most, what) = match bytes > room.bytes {
                true => (MOST_SCHEMA_BYTES, "bytes of text"),
                false => (MOST_PATTERN_BYTES, "bytes of compiled patterns"),
            };
            return Err(RegisterError::TooMuch { name: name(), most, what });
        };
        *room = SchemaQuota { bytes, patterns };
        let schema = judged.compile().map_err(|source| RegisterError::Schema { name: name(), source })?;
        Ok(Self { tool, schema })
    }

    /// Name of the tool.
    pub fn name(&self) -> &ToolName {
        &self.tool.definition().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use crate::answer::{Answer, Success};
    use crate::caller::Caller;
    use crate::definition::Definition;
    use belljar_contract::category::Category;
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};

    struct Idle(Definition);

    impl Tool for Idle {
        fn definition(&self) -> &Definition {
            &self.0
        }

        fn call<'a>(&'a self, _: &'a Caller, _: Arguments) -> BoxFuture<'a, Answer> {
            async { Ok(Success::of(json!({}))) }.boxed()
        }
    }

    fn tools(count: usize, schema: impl Fn(usize) -> Value) -> Vec<Arc<dyn Tool>> {
        let tool = |index| {
            let definition = Definition::named(&format!("t{index}"), Category::Mcp, "idle", schema(index));
            Arc::new(Idle(definition.unwrap())) as Arc<dyn Tool>
        };
        (0..count).map(tool).collect()
    }

    #[test]
    fn schemas_of_one_server_are_bounded_together() {
        let registry = Registry::new([]).unwrap();
        let long = |index: usize| json!({ "type": "object", "description": format!("{index}{}", "x".repeat(60_000)) });
        let large = |index: usize| json!({ "properties": { "a": { "pattern": format!("^.{{1,{}}}$", 200 + index) } } });
        for schema in [&long as &dyn Fn(usize) -> Value, &large] {
            let refused = registry.install("s", tools(100, schema));
            assert!(refused.len() > 30 && refused.len() < 100, "{}", refused.len());
            assert!(
                refused.iter().all(|error| matches!(error, RegisterError::TooMuch { .. })),
                "{refused:?}"
            );
            assert_eq!(registry.all().len(), 100 - refused.len());
        }
        // Control: the same number of small schemas.
        let small = |index: usize| json!({ "properties": { "a": { "pattern": format!("^[a-z]{{1,{}}}$", 1 + index) } } });
        assert!(registry.install("s", tools(100, small)).is_empty());
        assert_eq!(registry.all().len(), 100);
    }
}
