//! The tools there are: those of the host, which never change, and those of other servers, which come and go as a whole.

use crate::Tool;
use crate::schema::{ArgumentSchema, InvalidSchemaError};
use belljar_contract::tool::ToolName;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Tools by name.
#[derive(Default)]
pub struct Registry {
    own: BTreeMap<ToolName, Arc<Entry>>,
    installed: RwLock<BTreeMap<String, Vec<Arc<Entry>>>>,
}

/// A tool, with its schema ready.
pub struct Entry {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// What its arguments are checked by.
    pub schema: ArgumentSchema,
}

/// A tool can't be among the others.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Its name is taken.
    #[error("there are two tools with the name {name}")]
    Duplicate {
        /// The name.
        name: ToolName,
    },
    /// Nobody could call it.
    #[error("the tool {name} has no schema by which it could be called")]
    Schema {
        /// The tool.
        name: ToolName,
        /// Why.
        #[source]
        source: InvalidSchemaError,
    },
}

// === impl Registry ===

impl Registry {
    /// One with these tools of the host.
    ///
    /// # Errors
    /// [`RegisterError`] when two have one name, or one has no schema.
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

    /// Has these be all the tools of that server; none takes it off. What can't be among the others is left out and given back.
    pub fn install(
        &self,
        server: &str,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Vec<RegisterError> {
        let mut refused = Vec::new();
        let mut all = self.installed.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(server);
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        for tool in tools {
            let name = tool.definition().name.clone();
            let is_taken = self.own.contains_key(&name)
                || all.values().flatten().chain(&entries).any(|entry| *entry.name() == name);
            match Entry::new(tool) {
                _ if is_taken => refused.push(RegisterError::Duplicate { name }),
                Ok(entry) => entries.push(Arc::new(entry)),
                Err(error) => refused.push(error),
            }
        }
        if !entries.is_empty() {
            all.insert(server.to_owned(), entries);
        }
        refused
    }

    /// The tool of that name.
    pub fn find(&self, name: &ToolName) -> Option<Arc<Entry>> {
        let of_others = || {
            let installed = self.installed.read().unwrap_or_else(PoisonError::into_inner);
            installed.values().flatten().find(|entry| entry.name() == name).cloned()
        };
        self.own.get(name).cloned().or_else(of_others)
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let installed = self.installed.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = self.own.values().chain(installed.values().flatten()).cloned().collect();
        all.sort_by(|one, other| one.name().cmp(other.name()));
        all
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().iter().map(|entry| entry.name().clone())).finish()
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

    /// Its name.
    pub fn name(&self) -> &ToolName {
        &self.tool.definition().name
    }
}
