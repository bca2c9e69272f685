//! Values by categories.

use super::document::{Node, Value};
use super::members::{instead_of, place};
use super::mistake::{MistakeLog, quoted};
use crate::category::{ALIASES, Category};
use std::collections::BTreeMap;

/// A value for each of some categories, an alias and its category taken for one.
pub fn by_category<T>(
    node: &Node,
    log: &mut MistakeLog,
    mut read: impl FnMut(&Node, &mut MistakeLog) -> Option<T>,
) -> Option<BTreeMap<Category, T>> {
    let Value::Mapping(members) = &node.value else {
        log.note(node.position, place(node), node.describe(), "a mapping from categories");
        return None;
    };
    let mut values = BTreeMap::new();
    let mut first: BTreeMap<Category, &str> = BTreeMap::new();
    for (key, node) in members {
        let value = read(node, log);
        let Some(category) = Category::named(&key.name) else {
            let names = Category::ALL.map(Category::as_str);
            let known: Vec<&str> = names.into_iter().chain(ALIASES.map(|(alias, _)| alias)).collect();
            log.note(key.position, &node.path, "an unknown category", instead_of(&key.name, &known));
            continue;
        };
        if let Some(name) = first.insert(category, &key.name) {
            let found = match name == key.name {
                true => format!("{} a second time", quoted(name)),
                false => format!("`{}` beside `{name}`, which is the same category", key.name),
            };
            log.note(key.position, &node.path, found, "each category once");
        }
        values.extend(value.map(|value| (category, value)));
    }
    Some(values)
}
