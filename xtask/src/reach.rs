//! Reachability by names: an item is reached when a reached item mentions its name.
//!
//! Names are not resolved, so an item that shares its name with a reached one counts as reached, too. An item that
//! isn't reached by this is certainly unreached.

use crate::source::words_of;
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use syn::spanned::Spanned;
use syn::{Attribute, ImplItem, Item, UseTree, Visibility};

/// An item of a crate, or a method.
#[derive(Debug)]
pub(crate) struct NamedItem {
    /// Crate of the item: a room.
    pub(crate) room: String,
    /// Its file, from the root of the repository.
    pub(crate) path: String,
    /// Its line, from one.
    pub(crate) line: usize,
    /// Name; `None` for items without one, for example an implementation of a trait.
    pub(crate) name: Option<String>,
    /// The type that a method belongs to, or that a trait is implemented for: one of these names.
    owners: Vec<String>,
    /// True if it is `pub`, without a restriction.
    pub(crate) is_public: bool,
    /// The names that it mentions.
    words: BTreeSet<String>,
}

/// Items of one file, and the modules that have files of their own. Items that are compiled for tests only are left
/// out.
#[derive(Debug, Default)]
pub(crate) struct FileItems {
    /// The items.
    pub(crate) items: Vec<NamedItem>,
    /// Modules below this file's own: `["a", "b"]` for `mod a { mod b; }`.
    pub(crate) modules: Vec<Vec<String>>,
}

/// Lists a file's items.
pub(crate) fn list(room: &str, path: &str, text: &str) -> Result<FileItems, syn::Error> {
    let mut listed = FileItems::default();
    ItemLister { room, path, listed: &mut listed }.items(&[], &syn::parse_file(text)?.items);
    Ok(listed)
}

/// Returns the items that aren't reached from `fn main` of the rooms with programs. `below` has for each room those
/// whose items its own can mention.
pub(crate) fn unreached<'a>(
    items: &'a [NamedItem],
    programs: &[&str],
    below: &BTreeMap<&str, BTreeSet<&str>>,
) -> Vec<&'a NamedItem> {
    // Each room has a set of all words that reached items mention. Words are numbered, so that the sets stay small.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for word in items.iter().flat_map(|item| &item.words) {
        let next = numbers.len();
        numbers.entry(word).or_insert(next);
    }
    let mut mentioned: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    let mut left: Vec<&NamedItem> = items.iter().collect();
    loop {
        let (reached, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|item| {
            let words = mentioned.get(item.room.as_str());
            let is_mentioned = |name: &String| {
                let number = numbers.get(name.as_str());
                number.is_some_and(|number| words.is_some_and(|words| words[*number]))
            };
            item.is_reached(programs, is_mentioned)
        });
        left = rest;
        if reached.is_empty() {
            return left;
        }
        for item in reached {
            let words: Vec<usize> = item.words.iter().map(|word| numbers[word.as_str()]).collect();
            let rooms = below.get(item.room.as_str()).into_iter().flatten().copied();
            for room in rooms.chain([item.room.as_str()]) {
                let marks = mentioned.entry(room).or_insert_with(|| vec![false; numbers.len()]);
                words.iter().for_each(|word| marks[*word] = true);
            }
        }
    }
}

impl NamedItem {
    fn is_reached(&self, programs: &[&str], is_mentioned: impl Fn(&String) -> bool) -> bool {
        if self.name.as_deref() == Some("main") && programs.contains(&self.room.as_str()) {
            return true;
        }
        self.name.as_ref().is_none_or(&is_mentioned)
            && (self.owners.is_empty() || self.owners.iter().any(&is_mentioned))
    }
}

struct ItemLister<'l> {
    room: &'l str,
    path: &'l str,
    listed: &'l mut FileItems,
}

impl ItemLister<'_> {
    fn items(&mut self, module: &[String], items: &[Item]) {
        for item in items {
            self.item(module, item);
        }
    }

    fn item(&mut self, module: &[String], item: &Item) {
        match item {
            Item::Mod(found) if !is_for_tests(&found.attrs) => {
                let below = [module, &[found.ident.to_string()]].concat();
                match &found.content {
                    Some((_, items)) => self.items(&below, items),
                    None => self.listed.modules.push(below),
                }
            }
            Item::Const(found) => self.named(&found.attrs, &found.ident, Some(&found.vis), found),
            Item::Enum(found) => self.named(&found.attrs, &found.ident, Some(&found.vis), found),
            Item::Fn(found) => self.named(&found.attrs, &found.sig.ident, Some(&found.vis), found),
            Item::Static(found) => self.named(&found.attrs, &found.ident, Some(&found.vis), found),
            Item::Struct(found) => self.named(&found.attrs, &found.ident, Some(&found.vis), found),
            Item::Trait(found) => self.named(&found.attrs, &found.ident, Some(&found.vis), found),
            Item::Type(found) => self.named(&found.attrs, &found.ident, Some(&found.vis), found),
            Item::Union(found) => self.named(&found.attrs, &found.ident, Some(&found.vis), found),
            Item::Macro(found) => match &found.ident {
                Some(name) => self.named(&found.attrs, name, None, found),
                None => self.put(&found.attrs, (None, &[]), None, found),
            },
            Item::Use(found) if !is_for_tests(&found.attrs) => self.renamed(&found.tree),
            Item::Impl(found) if !is_for_tests(&found.attrs) => self.implementation(found),
            _ => {}
        }
    }

    /// Records that a name given by a `use` stands for the original.
    fn renamed(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(below) => self.renamed(&below.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.renamed(tree)),
            UseTree::Rename(rename) => {
                self.put(&[], (Some(rename.rename.to_string()), &[]), None, &rename.ident);
            }
            UseTree::Name(_) | UseTree::Glob(_) => {}
        }
    }

    fn implementation(&mut self, found: &syn::ItemImpl) {
        let mut owners = BTreeSet::new();
        words_of(found.self_ty.to_token_stream(), &mut owners);
        let generic = |name: &String| found.generics.type_params().any(|parameter| parameter.ident == name);
        let owners: Vec<_> = owners.into_iter().filter(|name| !generic(name)).collect();
        if found.trait_.is_some() {
            return self.put(&found.attrs, (None, &owners), None, found);
        }
        for item in &found.items {
            match item {
                ImplItem::Fn(method) => {
                    let name = Some(method.sig.ident.to_string());
                    self.put(&method.attrs, (name, &owners), Some(&method.vis), method);
                }
                ImplItem::Const(constant) => {
                    let name = Some(constant.ident.to_string());
                    self.put(&constant.attrs, (name, &owners), Some(&constant.vis), constant);
                }
                other => self.put(&[], (None, &owners), None, other),
            }
        }
    }

    fn named(
        &mut self,
        attributes: &[Attribute],
        name: &syn::Ident,
        seen: Option<&Visibility>,
        found: &(impl ToTokens + Spanned),
    ) {
        // `const _` is always evaluated, even if it is not mentioned.
        let name = Some(name.to_string()).filter(|name| name != "_");
        self.put(attributes, (name, &[]), seen, found);
    }

    fn put(
        &mut self,
        attributes: &[Attribute],
        (name, owners): (Option<String>, &[String]),
        seen: Option<&Visibility>,
        found: &(impl ToTokens + Spanned),
    ) {
        if is_for_tests(attributes) {
            return;
        }
        let mut words = BTreeSet::new();
        words_of(found.to_token_stream(), &mut words);
        let item = NamedItem {
            room: self.room.to_owned(),
            path: self.path.to_owned(),
            line: found.span().start().line,
            name,
            owners: owners.to_vec(),
            is_public: matches!(seen, Some(Visibility::Public(_))),
            words,
        };
        self.listed.items.push(item);
    }
}

/// Returns true if something is compiled for tests only.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| needs_tests(&condition))
    })
}

fn needs_tests(condition: &str) -> bool {
    condition == "test" || condition.starts_with("all (test") || condition.starts_with("all(test")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = r#"
        use lower::used as other;
        fn main() { other(); Kind::new(); println!("{CAPTURED}"); }
    "#;
    const LOWER: &str = r#"
        pub fn used() { helps() }
        pub fn helps() {}
        pub fn alone() { only_alone() }
        pub fn only_alone() {}
        pub struct Kind;
        impl Kind { pub fn new() {} pub fn never() {} }
        pub struct Unused;
        impl Unused { pub fn new() {} }
        impl From<Kind> for Unused { fn from(_: Kind) -> Self { by_impl() } }
        pub fn by_impl() {}
        impl Drop for Kind { fn drop(&mut self) { by_drop() } }
        pub fn by_drop() {}
        pub const CAPTURED: u8 = 1;
        #[doc = "alone never"]
        pub use lower::alone;
        #[cfg(test)]
        mod tests { fn a() { super::alone(); super::Kind::never() } }
    "#;

    #[test]
    fn item_mentioned_only_by_tests_or_unreached_items_is_unreached() {
        let mut items = list("cli", "crates/cli/src/main.rs", PROGRAM).unwrap().items;
        items.extend(list("lower", "crates/lower/src/lib.rs", LOWER).unwrap().items);
        let below = BTreeMap::from([("cli", BTreeSet::from(["lower"])), ("lower", BTreeSet::new())]);
        let found = unreached(&items, &["cli"], &below);
        let names: Vec<_> = found.iter().filter_map(|item| item.name.as_deref()).collect();
        assert_eq!(names, ["alone", "only_alone", "never", "Unused", "new", "by_impl"]);
    }

    #[test]
    fn modules_in_separate_files_are_listed() {
        let listed = list("a", "a.rs", "mod b; mod c { mod d; } #[cfg(test)] mod tests;").unwrap();
        assert_eq!(listed.modules, [vec!["b".to_owned()], vec!["c".into(), "d".into()]]);
    }
}
