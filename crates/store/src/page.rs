//! Paged lists: each page names the place after which the next one begins. A place is a position in the list's order,
//! and stays valid when entries are added or removed.

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, P = String> {
    /// The entries, in order.
    pub entries: Vec<T>,
    /// Place after which the next page begins; `None` on the last.
    pub next: Option<P>,
}

/// Maximum number of entries of a page, whatever is requested.
pub const MOST: u32 = 500;

/// Page size. One more row is fetched than requested, which shows whether there are more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSize {
    most: usize,
    pub(crate) to_fetch: u32,
}

// === impl PageSize ===

impl PageSize {
    pub(crate) fn of(most: u32) -> Self {
        let most = most.clamp(1, MOST);
        Self { most: most as usize, to_fetch: most + 1 }
    }
}

/// Returns a whole list, page by page.
///
/// # Errors
/// The error of the first page that can't be read.
pub async fn all<T, P, E, F>(page: impl Fn(Option<P>) -> F) -> Result<Vec<T>, E>
where
    F: Future<Output = Result<Page<T, P>, E>>,
{
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let Page { entries, next } = page(after).await?;
        all.extend(entries);
        if next.is_none() {
            return Ok(all);
        }
        after = next;
    }
}

// === impl Page ===

impl<T, P> Page<T, P> {
    /// Makes a page of the fetched entries.
    pub(crate) fn cut(mut fetched: Vec<T>, size: PageSize, place: impl Fn(&T) -> P) -> Self {
        let has_more = fetched.len() > size.most;
        fetched.truncate(size.most);
        let next = fetched.last().filter(|_| has_more).map(place);
        Self { entries: fetched, next }
    }
}
