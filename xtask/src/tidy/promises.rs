//! Checks `PROMISES.md`: each promise names existing tests, or is marked as pending.

use super::{File, Finding, Repository};

const PATH: &str = "PROMISES.md";
const ROW: &str = "`| P1 | promise | [test_name](path/to/file.rs), … |` or `pending (issue …)` at the end";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let Some(file) = repository.file(PATH) else {
        return vec![Finding::missing_document(PATH)];
    };
    let mut findings = Vec::new();
    let mut expected = 1;
    for (line, text) in file.lines().filter(|(_, text)| text.starts_with("| P")) {
        let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        let [number, _, evidence] = cells.as_slice() else {
            findings.push(file.finding(line, format!("{} cells", cells.len()), ROW));
            continue;
        };
        if *number != format!("P{expected}") {
            findings.push(file.finding(line, *number, format!("P{expected}, the next number")));
        }
        expected += 1;
        findings.extend(why_not_held(repository, file, line, evidence));
    }
    findings
}

fn why_not_held(repository: &Repository, file: &File, line: usize, evidence: &str) -> Vec<Finding> {
    if evidence.starts_with("pending (issue") && evidence.ends_with(')') {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for link in evidence.split(", ") {
        let parts = link.strip_prefix('[').and_then(|rest| rest.strip_suffix(')')?.split_once("]("));
        let Some((test, path)) = parts else {
            findings.push(file.finding(line, format!("{link:?}"), ROW));
            continue;
        };
        let test = test.trim_matches('`');
        match repository.file(path) {
            None => findings.push(file.finding(line, format!("the file {path}"), "a file that exists")),
            Some(tests) if !tests.text.contains(&format!("fn {test}(")) => {
                findings.push(file.finding(line, format!("the test {test}"), format!("a test of {path}")));
            }
            Some(_) => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_without_its_test_is_found() {
        let promises = "| # | promise | held by |\n| P1 | a | [`x`](t.rs) |\n| P2 | b | pending (issue Y) |\n| P3 | c | [gone](t.rs) |\n| P4 | d | [x](gone.rs) |\n| P6 | e | [x](t.rs), [x](t.rs) |\n| P6 | f | soon |\n| P7 | g |\n";
        let findings = check(&Repository::of(&[(PATH, promises), ("t.rs", "#[test]\nfn x() {}\n")]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4, 5, 6, 7, 8]);
        assert_eq!(check(&Repository::of(&[])).len(), 1);
    }
}
