//! Reports the longest files and functions for review; clippy rejects functions over 80 lines.

use super::{File, Repository};
use std::fmt::Write;

const SHOWN: usize = 5;

pub(super) fn report(repository: &Repository) -> String {
    let sources = || repository.rust_files().filter(|file| file.path.contains("src/"));
    let files = sources().map(|file| (file.lines().count(), file.path.clone())).collect();
    let functions = sources().flat_map(functions).collect();
    format!("longest files: {}\nlongest functions: {}\n", longest(files), longest(functions))
}

fn longest(mut sized: Vec<(usize, String)>) -> String {
    sized.sort_by(|a, b| b.cmp(a));
    let mut shown = String::new();
    for (index, (lines, name)) in sized.iter().take(SHOWN).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a String can't fail.
        let _ = write!(shown, "{separator}{name} {lines}");
    }
    shown
}

/// Returns all functions with their lengths. In formatted code, a function ends with a brace in the column where it
/// began.
fn functions(file: &File) -> Vec<(usize, String)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let signature = line.trim_start();
        let Some(at) = signature.find("fn ").filter(|at| is_qualifiers(&signature[..*at])) else { continue };
        let name: String =
            signature[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // A method that a trait only declares has no body, and an empty one ends where it begins.
        let head = lines[start..].iter().find(|line| line.ends_with(['{', ';', '}']));
        if head.is_some_and(|line| line.ends_with([';', '}'])) {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - signature.len()]);
        if let Some(length) = lines[start..].iter().position(|line| **line == end) {
            found.push((length + 1, format!("{}:{name}", file.path)));
        }
    }
    found
}

fn is_qualifiers(text: &str) -> bool {
    text.split_whitespace().all(|word| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"") || word.starts_with("pub(")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_files_are_listed_first() {
        let text = "trait T {\n    fn t();\n    fn u() {}\n}\n\npub(crate) fn a() {\n    b\n}\n\nimpl C {\n    const fn d() {\n        e\n\n        f\n    }\n}\n";
        let report = report(&Repository::of(&[("src/a.rs", text), ("src/b.rs", "\n")]));
        assert_eq!(
            report,
            "longest files: src/a.rs 16, src/b.rs 1\nlongest functions: src/a.rs:d 5, src/a.rs:a 3\n"
        );
    }
}
