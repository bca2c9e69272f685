//! Access to the members of a mapping by name. Members that were not asked for are unknown, which is a mistake.
//!
//! A reader always returns a value: a default if it has noted a mistake. The default is never used, because any mistake
//! rejects the whole file.

use super::document::{Key, Node, Value, below};
use super::mistake::{MistakeLog, quoted};
use std::collections::BTreeMap;

/// The members of one mapping.
pub struct Members<'n, 'l> {
    node: &'n Node,
    members: &'n [(Key, Node)],
    known: Vec<&'static str>,
    /// Log of mistakes.
    pub log: &'l mut MistakeLog,
}

// === impl Members ===

impl<'n, 'l> Members<'n, 'l> {
    /// Opens a mapping, and notes the names that are in it twice.
    pub fn open(node: &'n Node, log: &'l mut MistakeLog) -> Option<Self> {
        let Value::Mapping(members) = &node.value else {
            log.note(node.position, place(node), node.describe(), "a mapping");
            return None;
        };
        let mut first = BTreeMap::new();
        for (key, _) in members {
            if let Some(line) = first.insert(key.name.as_str(), key.position.line) {
                let path = below(&node.path, &key.name);
                let found = format!("the member again, after line {line}");
                log.note(key.position, &path, found, "each member once");
            }
        }
        Some(Self { node, members, known: Vec::new(), log })
    }

    /// A member that must be there.
    pub fn required<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node, &mut MistakeLog) -> T,
    ) -> T {
        if let Some(node) = self.take(name) {
            return read(node, self.log);
        }
        let path = below(&self.node.path, name);
        self.log.note(self.node.position, &path, "nothing", "this required member");
        T::default()
    }

    /// A member with members of its own, that may be absent.
    pub fn section<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node, &mut MistakeLog) -> T,
    ) -> T {
        self.take(name).map(|node| read(node, self.log)).unwrap_or_default()
    }

    /// A member that stands for `default` when absent.
    pub fn or<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&Node, &mut MistakeLog) -> Option<T>,
    ) -> T {
        self.take(name).and_then(|node| read(node, self.log)).unwrap_or(default)
    }

    /// A member that may be absent.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node, &mut MistakeLog) -> Option<T>,
    ) -> Option<T> {
        self.take(name).and_then(|node| read(node, self.log))
    }

    /// Returns the node of a member, if it is there.
    pub fn node(&self, name: &str) -> Option<&'n Node> {
        self.members.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Ends the reading; members that were not asked for are noted as unknown.
    pub fn finish(self) {
        for (key, _) in self.members {
            if !self.known.contains(&key.name.as_str()) {
                let expected = match key.name.as_str() {
                    "<<" => "the members themselves, written out: mappings are not merged here".to_owned(),
                    name => instead_of(name, &self.known),
                };
                let path = below(&self.node.path, &key.name);
                self.log.note(key.position, &path, "an unknown member", expected);
            }
        }
    }

    fn take(&mut self, name: &'static str) -> Option<&'n Node> {
        self.known.push(name);
        self.node(name)
    }
}

/// Returns the path of a node for error messages.
pub fn place(node: &Node) -> &str {
    if node.path.is_empty() { "the file" } else { &node.path }
}

/// Reads every item of a list.
pub fn list<T>(
    node: &Node,
    log: &mut MistakeLog,
    mut read: impl FnMut(&Node, &mut MistakeLog) -> Option<T>,
) -> Option<Vec<T>> {
    let Value::Sequence(items) = &node.value else {
        log.note(node.position, place(node), node.describe(), "a list, such as `[]`");
        return None;
    };
    Some(items.iter().filter_map(|item| read(item, log)).collect())
}

/// Reads a value that must be `value`; `expected` is the text for the mistake, with the reason.
pub fn only<T: PartialEq>(
    node: &Node,
    log: &mut MistakeLog,
    (value, expected): (&T, &str),
    read: impl FnOnce(&Node, &mut MistakeLog) -> Option<T>,
) {
    let mut unreported = MistakeLog::default();
    if read(node, &mut unreported).is_none_or(|found| found != *value) {
        log.note(node.position, place(node), node.describe(), expected);
    }
}

/// Returns what to write instead of an unknown name.
pub fn instead_of(name: &str, known: &[&str]) -> String {
    let mut known = known.to_vec();
    known.sort_unstable();
    known.dedup();
    let listed = known.join(", ");
    match nearest(name, &known) {
        Some(near) => format!("`{near}`, perhaps; known here: {listed}"),
        None => format!("one of: {listed}"),
    }
}

/// The known name that is fewest slips away, if these are few for its length.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    const LONGEST: usize = 60;
    if name.len() > LONGEST {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' ', '.'], "");
    let name = plain(name);
    let ranked = known.iter().map(|known| (slips(&plain(known), &name), *known));
    let (slips, near) = ranked.min()?;
    (slips <= name.len() / 4 + 1 && slips < near.len() / 2).then_some(near)
}

/// Returns the edit distance between two names: the number of letters to insert, delete or replace.
fn slips(known: &str, written: &str) -> usize {
    let written: Vec<char> = written.chars().collect();
    let mut row: Vec<usize> = (0..=written.len()).collect();
    for (line, letter) in known.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for column in 0..written.len() {
            let changed = diagonal + usize::from(written[column] != letter);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[written.len()]
}

/// The one of `known` that a node names.
pub fn one_of<T: Copy>(node: &Node, log: &mut MistakeLog, known: &[(&'static str, T)]) -> Option<T> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let (Value::Plain(text) | Value::Text(text)) = &node.value else {
        log.note(node.position, place(node), node.describe(), instead_of("", &names));
        return None;
    };
    let found = known.iter().find(|(name, _)| name == text);
    if found.is_none() {
        let found = if text.is_empty() { node.describe() } else { quoted(text) };
        log.note(node.position, place(node), found, instead_of(text, &names));
    }
    found.map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_member_name_is_suggested_and_distant_one_is_not() {
        let known = ["memory_limit", "cpu_limit", "pids_limit", "image"];
        assert_eq!(nearest("memroy_limit", &known), Some("memory_limit"));
        assert_eq!(nearest("cpuLimit", &known), Some("cpu_limit"));
        assert_eq!(nearest("pid_limit", &known), Some("pids_limit"));
        assert_eq!(nearest("privileged", &known), None);
        assert_eq!(nearest("", &known), None);
    }
}
