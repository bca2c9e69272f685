//! Table of names that gain trust: who trusts each, and why. Names are in lower case, as they are compared.

mod building;
mod caches;
mod compiled;
mod documents;
mod further;
mod git;
mod host;
mod infrastructure;
mod installed;
mod interpreters;
mod linters;
mod package;
mod packaging;
mod projects;
mod servers;
mod shapes;
mod spellings;
mod tools;
mod web;
mod workplace;

use super::TrustKind;

/// Row of the table.
pub(super) struct Row {
    pub(super) at: PathCondition,
    pub(super) kind: TrustKind,
    pub(super) why: &'static str,
}

/// Condition on a path.
pub(super) enum PathCondition {
    /// A file of one of these names, anywhere.
    Named(&'static [&'static str]),
    /// A file whose name has this prefix, anywhere.
    Begins(&'static str),
    /// A file whose name has one of these suffixes, anywhere.
    Ends(&'static [&'static str]),
    /// A file whose name has this prefix and this suffix, anywhere.
    Wraps(&'static str, &'static str),
    /// Everything in a directory of one of these names, anywhere, and an entry in place of the directory.
    In(&'static [&'static str]),
    /// Everything in a directory of one of these names, anywhere, by its own path. A link in there that leads to a path doesn't
    /// count: the links of a package workspace lead to its sources.
    Under(&'static [&'static str]),
    /// Everything in the second directory below the first, and an entry in place of the second; a link in place of the first.
    Below(&'static str, &'static str),
    /// A file directly in a directory of that name, anywhere, with one of these suffixes; and a link in place of the directory.
    Inside(&'static str, &'static [&'static str]),
    /// A path that the function accepts. Its second argument is true if the path is or was a symbolic link.
    Shaped(fn(&[&str], bool) -> bool),
}

use PathCondition::{Begins, Below, Ends, In, Inside, Named, Shaped, Under, Wraps};

/// All rows. Among those of one kind, the first that matches gives the reason.
pub(super) const ROWS: [&[Row]; 19] = [
    host::ROWS,
    git::ROWS,
    servers::ROWS,
    infrastructure::ROWS,
    workplace::ROWS,
    interpreters::ROWS,
    package::ROWS,
    building::ROWS,
    projects::ROWS,
    web::ROWS,
    compiled::ROWS,
    documents::ROWS,
    linters::ROWS,
    packaging::ROWS,
    caches::ROWS,
    tools::ROWS,
    further::ROWS,
    installed::ROWS,
    spellings::ROWS,
];

const fn row(at: PathCondition, kind: TrustKind, why: &'static str) -> Row {
    Row { at, kind, why }
}

// === impl PathCondition ===

impl PathCondition {
    /// Returns true if a path matches. `is_link`: it is or was a symbolic link. `is_alias`: a link leads to the path.
    pub(super) fn holds(&self, parts: &[&str], (is_link, is_alias): (bool, bool)) -> bool {
        let name = parts.last().copied().unwrap_or_default();
        match self {
            Named(names) => names.contains(&name),
            Begins(begin) => name.starts_with(begin),
            Ends(ends) => ends.iter().any(|end| name.ends_with(end)),
            Wraps(begin, end) => name.starts_with(begin) && name.ends_with(end),
            Inside(directory, ends) => {
                let above = parts.len().checked_sub(2).and_then(|at| parts.get(at));
                let is_in_it = above == Some(directory) && ends.iter().any(|end| name.ends_with(end));
                is_in_it || (is_link && name == *directory)
            }
            Shaped(is_so) => is_so(parts, is_link),
            In(names) => parts.iter().any(|part| names.contains(part)),
            Under(names) => !is_alias && parts.iter().any(|part| names.contains(part)),
            // A link in place of the directory brings all of its content.
            Below(one, other) => {
                parts.windows(2).any(|pair| pair == [*one, *other]) || (is_link && name == *one)
            }
        }
    }
}
