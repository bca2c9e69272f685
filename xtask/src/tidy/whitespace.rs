//! Checks for invisible white space in files that rustfmt doesn't format.

use super::{File, Finding, Repository};

const EXTENSIONS: [&str; 7] = ["md", "toml", "json", "yml", "yaml", "sh", "txt"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| is_prose(file)) {
        for (line, text) in file.lines() {
            if text.ends_with([' ', '\t', '\r']) {
                findings.push(file.finding(line, "white space at the end", "none"));
            }
            if text.trim_start_matches(' ').starts_with('\t') {
                findings.push(file.finding(line, "a tab", "spaces"));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            findings.push(file.finding(file.lines().count(), "no line break at the end", "one"));
        }
    }
    findings
}

/// Returns true for documents, configuration and scripts; not for samples of tests, where every byte may matter.
fn is_prose(file: &File) -> bool {
    let is_sample = file.path.starts_with("fuzz/corpus/") || file.path.contains("/tests/");
    let extension = file.name().rsplit_once('.').map(|(_, extension)| extension);
    !is_sample && (extension.is_some_and(|e| EXTENSIONS.contains(&e)) || file.text.starts_with("#!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_whitespace_is_found() {
        let files =
            [("a.md", "a \nb\n\tc\nd"), ("b", "#!/bin/sh\n\ttrue\n"), ("c.rs", "a \n"), ("d.txt", "")];
        let findings = check(&Repository::of(&files));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 3, 4, 2]);
    }
}
