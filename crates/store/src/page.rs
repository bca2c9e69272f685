//! Lists, a page at a time: each page tells the place behind which the next begins, which is a place in the order of the list
//! and stays one, whatever is added or removed meanwhile.

/// Some of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, P = String> {
    /// The entries, in order.
    pub entries: Vec<T>,
    /// Behind which place the next page begins; nothing if this is the last.
    pub next: Option<P>,
}

/// A page has no more entries, whatever is asked for.
pub const MOST: u32 = 500;

/// How many are asked for, and how many are fetched: one more tells whether there are more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    most: usize,
    pub(crate) to_fetch: u32,
}

// === impl Size ===

impl Size {
    pub(crate) fn of(most: u32) -> Self {
        let most = most.clamp(1, MOST);
        Self { most: most as usize, to_fetch: most + 1 }
    }
}

// === impl Page ===

impl<T, P> Page<T, P> {
    /// The page of what was fetched.
    pub(crate) fn cut(mut fetched: Vec<T>, size: Size, place: impl Fn(&T) -> P) -> Self {
        let has_more = fetched.len() > size.most;
        fetched.truncate(size.most);
        let next = fetched.last().filter(|_| has_more).map(place);
        Self { entries: fetched, next }
    }
}
