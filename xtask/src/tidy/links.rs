//! Checks that relative links in documents lead to existing files, headings and anchors.

use super::{File, Finding, Repository, contracts};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.with_extension("md") {
        for (line, target) in links(file) {
            if let Some(right) = why_dead(repository, file, target) {
                findings.push(file.finding(line, format!("the link {target}"), right));
            }
        }
    }
    findings
}

fn why_dead(repository: &Repository, file: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
    if !repository.exists(&path) {
        return Some(format!("a file of this repository: there is no {path}"));
    }
    let document = repository.file(&path).filter(|_| path.ends_with(".md"))?;
    let heading = heading.filter(|heading| {
        !headings(document).any(|known| known == **heading)
            && !anchors(document).any(|known| known == *heading)
    })?;
    Some(format!("a heading of {path}: there is no #{heading}"))
}

/// The targets of `[text](target)` outside of code, with their lines.
fn links(file: &File) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in file.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let prose = line.split('`').step_by(2).filter(|_| !in_code);
        // A code span may be the text of a link, so the part that follows it begins with `](`.
        for part in prose {
            for (at, _) in part.match_indices("](") {
                let target = &part[at + 2..];
                found.extend(target.split_once(')').map(|(target, _)| (number, target)));
            }
        }
    }
    found
}

fn headings(file: &File) -> impl Iterator<Item = String> {
    file.text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// The targets that a document sets beside its headings: `<a id="…"></a>`.
fn anchors(file: &File) -> impl Iterator<Item = &str> {
    file.text.lines().flat_map(contracts::anchors).map(|(id, _)| id)
}

fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_link_is_found_and_valid_link_is_not() {
        let text = "# Title here\n[a](b.md) [c](../d.md)\n[`e`](gone.md)\n[f](b.md#no)\n[g](#title-here)\n[h](https://x.y)\n`[i](no.md)`\n```\n[j](no.md)\n```\n[k](b.md#b-c)\n[l](sub/)\n[m](b.md#c1.2)\n[n](b.md#c1.3)\n";
        let files = [
            ("docs/a.md", text),
            ("docs/b.md", "## B, c\n<a id=\"c1.2\"></a>\n"),
            ("d.md", ""),
            ("docs/sub/x.rs", ""),
        ];
        let findings = check(&Repository::of(&files));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3, 4, 14]);
    }
}
