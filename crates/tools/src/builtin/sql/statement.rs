//! Classifies statements by their first word. The database decides, too: this gives clear errors, and defence in depth.

use crate::answer::Failure;

/// Kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads.
    Reads,
    /// Changes rows.
    Changes,
    /// Changes rows or the schema.
    Defines,
}

const READ: [&str; 3] = ["SELECT", "WITH", "VALUES"];
const CHANGE: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"];
const DEFINE: [&str; 8] = ["CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "REINDEX"];

/// Returns the statement without its terminator.
///
/// # Errors
/// [`Failure`] when it is of another kind.
pub(super) fn one(text: &str, kind: Kind) -> Result<&str, Failure> {
    if text.contains('\0') {
        return Err(Failure::argument("the statement contains a NUL character"));
    }
    let statement = text.trim().trim_end_matches(|letter: char| letter == ';' || letter.is_whitespace());
    let word = first_word(statement).to_ascii_uppercase();
    let is_in = |words: &[&str]| words.contains(&word.as_str());
    let (is_one, expected) = match kind {
        Kind::Reads => (is_in(&READ), "one statement that begins with SELECT, WITH or VALUES"),
        Kind::Changes => (
            is_in(&CHANGE) || word == "WITH",
            "one statement that begins with INSERT, UPDATE, DELETE, MERGE, REPLACE or WITH",
        ),
        Kind::Defines => (
            is_in(&CHANGE) || is_in(&DEFINE) || word == "WITH",
            "statements that change or define something (CREATE, ALTER, DROP, INSERT, …), and no transactions",
        ),
    };
    if is_one { Ok(statement) } else { Err(Failure::argument(format!("expected {expected}"))) }
}

/// Checks that column names are unique, as values are returned by column name.
///
/// # Errors
/// [`Failure`] with the duplicate name.
pub(super) fn named_once(columns: &[String]) -> Result<(), Failure> {
    let twice =
        columns.iter().enumerate().find(|(at, name)| columns.iter().take(*at).any(|other| other == *name));
    match twice {
        Some((_, name)) => {
            Err(Failure::argument(format!("two columns are named {name:?}: rename one of them with AS")))
        }
        None => Ok(()),
    }
}

/// Returns the first word after white space and comments; empty if there is none.
fn first_word(text: &str) -> &str {
    let rest = behind_comments(text);
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    &rest[..end]
}

fn behind_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let behind = if rest.starts_with("--") {
            rest.find('\n').map(|end| &rest[end..])
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| &rest[end + 2..])
        } else {
            return rest;
        };
        rest = behind.unwrap_or_default().trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_statement_kind_follows_from_its_first_keyword() {
        let is = |text: &'static str, kind| one(text, kind).ok();
        assert_eq!(is(" select 1 ; ;\n", Kind::Reads), Some("select 1"));
        assert!(is("-- a\n/* b */ WITH x AS (SELECT 1) SELECT 1", Kind::Reads).is_some());
        assert!(is("insert into a values (1)", Kind::Changes).is_some());
        assert!(is("create table a (b)", Kind::Defines).is_some());
        for text in [
            "",
            ";COMMIT",
            "/* SELECT",
            "-- SELECT 1",
            "COMMIT",
            "/**/COMMIT",
            "SELECTED",
            "PRAGMA user_version = 1",
            "ATTACH 'a' AS b",
            "COPY a TO '/x'",
            "DO $$ BEGIN END $$",
            "SET x = 1",
            "SELECT '\0'",
        ] {
            for kind in [Kind::Reads, Kind::Changes, Kind::Defines] {
                assert_eq!(is(text, kind), None, "{text:?}");
            }
        }
        assert_eq!(is("INSERT INTO a VALUES (1)", Kind::Reads), None);
        assert_eq!(is("DROP TABLE a", Kind::Changes), None);
    }
}
