//! Checks that the table of crates in `ARCHITECTURE.md` is the table of rooms.

use super::{Finding, Repository};
use crate::rooms::{CrateRules, ROOMS};

const PATH: &str = "ARCHITECTURE.md";
const LONGEST: usize = 300;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let Some(file) = repository.file(PATH) else {
        return vec![Finding::missing_document(PATH)];
    };
    let mut findings: Vec<Finding> = ROOMS
        .iter()
        .filter(|room| !file.text.contains(&row_ends_with(room)))
        .map(|room| {
            file.finding(
                1,
                format!("no row for `{}` as it is checked", room.name),
                format!("a row: {}", row_ends_with(room)),
            )
        })
        .collect();
    let lines = file.lines().count();
    if lines > LONGEST {
        findings.push(file.finding(LONGEST, format!("{lines} lines"), format!("at most {LONGEST}")));
    }
    findings
}

/// A row begins with the room's name and ends with its imports; the text between is free.
fn row_ends_with(room: &CrateRules) -> String {
    let imports: Vec<String> = room.may_import.iter().map(|name| format!("`{name}`")).collect();
    let imports = if imports.is_empty() { "–".to_owned() } else { imports.join(", ") };
    format!("{imports} | `{}` |", room.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_outdated_row_is_found() {
        assert_eq!(check(&Repository::of(&[])).len(), 1);
        let rows: Vec<String> = ROOMS.iter().map(|room| format!("| x | {}\n", row_ends_with(room))).collect();
        assert_eq!(check(&Repository::of(&[(PATH, &rows.concat())])), []);
        let outdated =
            rows.concat().replacen("`contract` | `policy` |", "`contract`, `sandbox` | `policy` |", 1);
        assert_eq!(check(&Repository::of(&[(PATH, &outdated)])).len(), 1);
    }
}
