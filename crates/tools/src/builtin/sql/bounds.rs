//! Limits of query results: number of rows, and their size.

use serde_json::{Map, Value, json};

/// Limits of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) rows: usize,
}

/// Rows of a result, up to its limits.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Vec<String>,
    rows: Vec<Map<String, Value>>,
    bytes: usize,
    bounds: Bounds,
    left_out: Option<&'static str>,
}

const USUAL_ROWS: usize = 100;
const MOST_ROWS: usize = 1_000;

/// Maximum size of all rows, as JSON, in bytes.
const MOST_BYTES: usize = 512 << 10;

/// Maximum size of a row, as JSON, in bytes.
pub(super) const LARGEST_ROW: usize = 64 << 10;

const MANY: &str = "there are more rows: select fewer or other ones with WHERE, LIMIT and OFFSET";
const MUCH: &str = "the result is too large: select fewer columns or rows";
const LARGE: &str = "rows of more than 64 KiB are left out: select a part of their values, for example \
    with substr";

// === impl Bounds ===

impl Bounds {
    pub(super) fn of(max_rows: Option<usize>) -> Self {
        Self { rows: max_rows.unwrap_or(USUAL_ROWS).clamp(1, MOST_ROWS) }
    }
}

// === impl Rows ===

impl Rows {
    pub(super) fn new(columns: Vec<String>, bounds: Bounds) -> Self {
        Self { columns, rows: Vec::new(), bytes: 0, bounds, left_out: None }
    }

    /// Adds a row of that size; `None` stands for one that is too large. Returns true if there is room for another one.
    pub(super) fn take(&mut self, row: Option<Map<String, Value>>, bytes: usize) -> bool {
        let row = row.filter(|_| bytes <= LARGEST_ROW);
        if self.rows.len() >= self.bounds.rows {
            self.left_out = Some(MANY);
            return false;
        }
        let Some(row) = row else {
            self.left_out = Some(LARGE);
            return true;
        };
        if self.bytes + bytes > MOST_BYTES {
            self.left_out = Some(MUCH);
            return false;
        }
        self.bytes += bytes;
        self.rows.push(row);
        true
    }

    pub(super) fn told(self) -> Value {
        let mut told = json!({
            "columns": self.columns,
            "row_count": self.rows.len(),
            "truncated": self.left_out.is_some(),
            "rows": self.rows,
            "untrusted": true,
        });
        if let Some(notice) = self.left_out {
            told["notice"] = Value::from(notice);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_result_reports_the_limit_that_truncated_it() {
        let row = || Some(Map::from_iter([("a".to_owned(), json!(1))]));
        let rows = || Rows::new(vec!["a".to_owned()], Bounds::of(Some(2)));
        let mut whole = rows();
        assert!(whole.take(row(), 7) && whole.take(row(), 7));
        assert_eq!(whole.told()["truncated"], false);
        let mut many = rows();
        assert!(many.take(row(), 7) && many.take(row(), 7) && !many.take(row(), 7));
        assert_eq!((&many.left_out, many.rows.len()), (&Some(MANY), 2));
        let mut large = rows();
        assert!(large.take(row(), LARGEST_ROW + 1) && large.take(None, 0) && large.take(row(), 7));
        assert_eq!((&large.left_out, large.rows.len()), (&Some(LARGE), 1));
        let mut much = Rows::new(Vec::new(), Bounds::of(Some(1_000)));
        while much.take(row(), LARGEST_ROW) {}
        assert_eq!((&much.left_out, much.rows.len()), (&Some(MUCH), 8));
    }
}
