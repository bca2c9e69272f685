//! Checks references to contracts: each names a clause of `docs/contracts/`, and none a document outside of the repository.

use super::{File, Finding, Repository};
use std::collections::{BTreeMap, BTreeSet};

const DIRECTORY: &str = "docs/contracts/";

/// Clause ids by page, such as `j4.2` by `job.md`.
type Pages<'r> = BTreeMap<&'r str, BTreeSet<&'r str>>;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut pages = Pages::new();
    for file in repository.with_extension("md") {
        if let Some(page) = file.path.strip_prefix(DIRECTORY) {
            pages.insert(page, clauses(file, &mut findings));
        }
    }
    for file in repository.files.iter().filter(|file| is_ours(&file.path)) {
        for (number, line) in file.lines() {
            private_documents(file, (number, line), &mut findings);
            dead_references(file, (number, line), &pages, &mut findings);
        }
    }
    findings
}

/// Returns true for files that people here have written.
fn is_ours(path: &str) -> bool {
    !path.starts_with("fuzz/corpus/") && path != "Cargo.lock"
}

/// Returns the clause ids that a page defines. Each is defined once, and printed in front of its clause.
fn clauses<'r>(file: &'r File, findings: &mut Vec<Finding>) -> BTreeSet<&'r str> {
    let mut ids = BTreeSet::new();
    for (number, line) in file.lines() {
        for (id, text) in anchors(line) {
            if !ids.insert(id) {
                findings.push(file.finding(
                    number,
                    format!("the clause {id} a second time"),
                    "a number of its own",
                ));
            }
            let printed = text.trim_start_matches('*').to_lowercase();
            let rest = printed.strip_prefix(id).map(|rest| rest.trim_start_matches('.'));
            if !rest.is_some_and(|rest| rest.starts_with(['*', ' '])) {
                findings.push(file.finding(
                    number,
                    format!("the anchor {id}"),
                    "the number of its clause behind it",
                ));
            }
        }
    }
    ids
}

/// Returns the anchors `<a id="…"></a>` in a line of a document, each with the text behind it.
pub(super) fn anchors(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once("\"></a>"))
}

/// Finds references of the form that this repository used before it had pages for contracts.
fn private_documents(file: &File, (number, line): (usize, &str), findings: &mut Vec<Finding>) {
    let name = concat!("spec", "/");
    for (at, _) in line.match_indices(name) {
        let is_whole = !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/'));
        let digits: String = line[at + name.len()..].chars().take_while(char::is_ascii_digit).collect();
        if is_whole && !digits.is_empty() {
            findings.push(file.finding(
                number,
                format!("{name}{digits}"),
                "a clause, as `docs/contracts/job.md#j4.2`",
            ));
        }
    }
}

/// Finds references to clauses that their page doesn't have.
fn dead_references(
    file: &File,
    (number, line): (usize, &str),
    pages: &Pages<'_>,
    findings: &mut Vec<Finding>,
) {
    for reference in line.split(DIRECTORY).skip(1) {
        let Some((page, rest)) = reference.split_once(".md#") else { continue };
        if page.contains(|c: char| !c.is_ascii_lowercase() && c != '-') {
            continue;
        }
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-')).unwrap_or(rest.len());
        let clause = rest[..end].trim_end_matches('.');
        let page = format!("{page}.md");
        if !pages.get(page.as_str()).is_some_and(|clauses| clauses.contains(clause)) {
            findings.push(file.finding(
                number,
                format!("{DIRECTORY}{page}#{clause}"),
                "a clause that the page has",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)]) -> Vec<usize> {
        check(&Repository::of(files)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn reference_to_a_document_outside_of_the_repository_is_found() {
        let text = concat!("a sp", "ec/1\n(`sp", "ec/5 §3`)\njob_sp", "ec/2 sp", "ec/x tests/sp", "ec/7\n");
        assert_eq!(lines(&[("a.rs", text)]), [1, 2]);
        assert_eq!(lines(&[("b.md", text)]), [1, 2]);
    }

    #[test]
    fn reference_to_a_missing_clause_or_page_is_found() {
        let page = "## <a id=\"j1\"></a>J1. Title\n- <a id=\"j1.2\"></a>**J1.2** Text.\n";
        let code = "DIR/job.md#j1.2, DIR/job.md#j1.\nDIR/job.md#j1.3\nDIR/gone.md#j1\nDIR/job.md, DIR/\n";
        let code = code.replace("DIR/", DIRECTORY);
        assert_eq!(lines(&[("docs/contracts/job.md", page), ("a.rs", &code)]), [2, 3]);
    }

    #[test]
    fn clause_with_a_repeated_or_unprinted_number_is_found() {
        let page = "- <a id=\"r1\"></a>**R1** Text.\n- <a id=\"r1\"></a>**R1** Text.\n- <a id=\"r2\"></a>**R12** Text.\n- <a id=\"r3\"></a>Text.\n- <a id=\"r4.1\"></a>**R4.1** Text.\n";
        assert_eq!(lines(&[("docs/contracts/a.md", page)]), [2, 3, 4]);
    }
}
