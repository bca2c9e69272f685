//! The table: which names gain trust, with whom, and why. Names are in lower case, as they are compared.

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

use super::HandoffKind;

/// One row.
pub(super) struct Row {
    pub(super) at: At,
    pub(super) kind: HandoffKind,
    pub(super) why: &'static str,
}

/// Where.
pub(super) enum At {
    /// A file of one of these names, anywhere.
    Named(&'static [&'static str]),
    /// A file whose name begins so, anywhere.
    Begins(&'static str),
    /// A file whose name ends so, anywhere.
    Ends(&'static [&'static str]),
    /// A file whose name begins with the one and ends with the other, anywhere.
    Wraps(&'static str, &'static str),
    /// Everything in a directory of one of these names, anywhere, and what stands in its place.
    In(&'static [&'static str]),
    /// Everything in a directory of one of these names, anywhere, by its own path: a link in there that leads to it doesn't count, as
    /// those of a workspace of packages lead to its sources.
    Under(&'static [&'static str]),
    /// Everything in that directory of a directory, and what stands in its place; a link in the place of the outer one.
    Below(&'static str, &'static str),
    /// A file directly in a directory of that name, anywhere, whose own name ends so, and a link in the place of the directory.
    Inside(&'static str, &'static [&'static str]),
    /// A path of that shape; whether it is a symbolic link, or was one, is told as well.
    Shaped(fn(&[&str], bool) -> bool),
}

use At::{Begins, Below, Ends, In, Inside, Named, Shaped, Under, Wraps};

/// All of them. Of those of one kind the first that holds gives the reason.
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

const fn row(at: At, kind: HandoffKind, why: &'static str) -> Row {
    Row { at, kind, why }
}

// === impl At ===

impl At {
    /// `is_link` says that it is a symbolic link, or was one; `is_alias` that the path leads there through one.
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
            // A link in the place of the directory brings all of it along.
            Below(one, other) => {
                parts.windows(2).any(|pair| pair == [*one, *other]) || (is_link && name == *one)
            }
        }
    }
}
