//! The members of an object, asked for by name.

use super::{Decode, DecodeContext};
use crate::json::Node;
use std::collections::HashMap;

/// The members of one object: each is asked for by name, what remains is unknown.
pub(crate) struct Fields<'n, 'p> {
    members: &'n [(String, Node)],
    accepted: Vec<&'static str>,
    at: DecodeContext<'p, 'p>,
    sound: bool,
}

// === impl Fields ===

impl<'n, 'p> Fields<'n, 'p> {
    /// Opens an object; notes repeated member names.
    pub(crate) fn open(node: &'n Node, at: &'p mut DecodeContext<'_, '_>) -> Option<Self> {
        let Node::Object(members) = node else { return at.mistyped(node, "an object") };
        let mut fields = Fields {
            members,
            accepted: Vec::new(),
            at: DecodeContext { path: at.path, log: &mut *at.log },
            sound: true,
        };
        fields.sound = refuse_repeated_names(fields.members, &mut fields.at);
        Some(fields)
    }

    /// Returns true if the object has a member of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(key, _)| key == name)
    }

    /// A member that must be there.
    pub(crate) fn required<T: Decode>(&mut self, name: &'static str) -> Option<T> {
        match self.take(name) {
            Some(node) => self.decode(name, node),
            None => {
                self.sound = false;
                self.at.member(name).refuse("nothing", "this required member");
                None
            }
        }
    }

    /// A member that may be absent; `Some(None)` then.
    pub(crate) fn optional<T: Decode>(&mut self, name: &'static str) -> Option<Option<T>> {
        match self.take(name) {
            Some(node) => self.decode(name, node).map(Some),
            None => Some(None),
        }
    }

    /// A member that stands for `default` when absent.
    pub(crate) fn or<T: Decode>(&mut self, name: &'static str, default: T) -> Option<T> {
        self.optional(name).map(|value| value.unwrap_or(default))
    }

    /// Returns which of two alternative names is present, or `None` for neither. Both at once are an error.
    pub(crate) fn one_name(&mut self, names: [&'static str; 2]) -> Option<&'static str> {
        let [first, second] = names;
        self.accept(names);
        if self.has(first) && self.has(second) {
            self.sound = false;
            self.at
                .member(second)
                .refuse(format!("`{second}` beside `{first}`"), "one of the two: both name the same thing");
        }
        names.into_iter().find(|name| self.has(name))
    }

    /// Takes these names for known, whether or not they are read.
    pub(crate) fn accept(&mut self, names: impl IntoIterator<Item = &'static str>) {
        self.accepted.extend(names);
    }

    /// Notes problems that show only when several members are seen together; `check` tells whether it found none.
    pub(crate) fn check(&mut self, check: impl FnOnce(&mut DecodeContext<'_, '_>) -> bool) {
        self.sound &= check(&mut DecodeContext { path: self.at.path, log: &mut *self.at.log });
    }

    /// Notes a problem with the object as a whole.
    pub(crate) fn refuse(&mut self, found: impl Into<String>, expected: impl Into<String>) {
        self.sound = false;
        self.at.refuse(found, expected);
    }

    /// Ends the reading: whatever was not asked for is unknown. `None` when anything was wrong with the members.
    pub(crate) fn finish(mut self) -> Option<()> {
        for (name, _) in self.members {
            if !self.accepted.contains(&name.as_str()) {
                self.sound = false;
                let accepted = &self.accepted;
                let texts = || ("an unknown member".to_owned(), expected_instead_of(name, accepted));
                self.at.member(name).refuse_with(texts);
            }
        }
        self.sound.then_some(())
    }

    fn take(&mut self, name: &'static str) -> Option<&'n Node> {
        self.accepted.push(name);
        self.members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn decode<T: Decode>(&mut self, name: &str, node: &Node) -> Option<T> {
        let value = T::decode(node, &mut self.at.member(name));
        self.sound &= value.is_some();
        value
    }
}

/// Notes the names that occur more than once; whether there were none.
pub(super) fn refuse_repeated_names(members: &[(String, Node)], at: &mut DecodeContext<'_, '_>) -> bool {
    let mut unique = true;
    for (name, count) in repeated_names(members) {
        unique = false;
        at.member(name).refuse(format!("the member {count} times"), "each member once");
    }
    unique
}

fn expected_instead_of(name: &str, accepted: &[&'static str]) -> String {
    let mut known = accepted.to_vec();
    known.sort_unstable();
    known.dedup();
    let listed = known.join(", ");
    match known.iter().find(|candidate| differ_slightly(candidate, name)) {
        Some(near) => format!("`{near}`, perhaps; known here: {listed}"),
        None => format!("one of: {listed}"),
    }
}

/// The names that occur more than once and how often, in the order of their first occurrence.
fn repeated_names(members: &[(String, Node)]) -> Vec<(&str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::with_capacity(members.len());
    for (name, _) in members {
        *counts.entry(name).or_insert(0) += 1;
    }
    if counts.len() == members.len() {
        return Vec::new();
    }
    // Removed at the first occurrence, so that each is reported once.
    let told_once = members.iter().filter_map(|(name, _)| counts.remove_entry(name.as_str()));
    told_once.filter(|(_, count)| *count > 1).collect()
}

/// Returns true if two names differ only in case, in separators, or in a single letter (inserted, deleted or replaced).
fn differ_slightly(known: &str, written: &str) -> bool {
    const LONGEST: usize = 60;
    if written.len() > LONGEST {
        return false;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let (known, written) = (plain(known), plain(written));
    if known == written {
        return true;
    }
    let same_start = known.bytes().zip(written.bytes()).take_while(|(a, b)| a == b).count();
    let (rest_known, rest_written) = (&known.as_bytes()[same_start..], &written.as_bytes()[same_start..]);
    let skip = |bytes: &[u8]| bytes.get(1..).map(<[u8]>::to_vec).unwrap_or_default();
    known.len() > 3
        && (skip(rest_known) == rest_written
            || rest_known == skip(rest_written)
            || skip(rest_known) == skip(rest_written))
}
