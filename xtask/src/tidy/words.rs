//! Checks that names and texts use plain English: actors have roles, comments stand alone, and types are nouns.

use super::{File, Finding, Repository};
use crate::source::{code_only, has_word};

/// A word that names no role, and the reason for each file that has it nevertheless.
struct Actor {
    word: &'static str,
    allowed_in: &'static [(&'static str, &'static str)],
}

/// Words are put together here, so that this file doesn't find itself.
const ACTORS: [Actor; 5] = [
    Actor { word: concat!("who", "ever"), allowed_in: &[] },
    Actor { word: concat!("who", "m"), allowed_in: &[] },
    Actor { word: concat!("whoso", "ever"), allowed_in: &[] },
    Actor { word: concat!("some", "body"), allowed_in: &[] },
    Actor {
        word: concat!("no", "body"),
        allowed_in: &[("crates/sandbox/src/native/view.rs", "the system user of that name, in /etc/passwd")],
    },
];

/// Beginnings of comments that refer to something outside of the comment.
const DEPENDENT: [&str; 6] = ["The same", "Such", "Whose", concat!("Who", "m"), "What", "Who"];

/// Types named by a participle that is a noun of its own.
const PARTICIPLES: [(&str, &str); 2] = [
    ("Untrusted", "text that came from a sandbox; every use prints it escaped"),
    ("Lent", "a file or directory that the host lends to a sandbox"),
];

const IRREGULAR: [&str; 27] = [
    "Begun", "Built", "Came", "Done", "Found", "Given", "Gone", "Had", "Heard", "Held", "Kept", "Known",
    "Laid", "Left", "Lent", "Lost", "Made", "Said", "Seen", "Sent", "Shown", "Spent", "Spoken", "Taken",
    "Told", "Whose", "Written",
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| is_prose(&file.path)) {
        actors(file, &mut findings);
    }
    for file in repository.rust_files() {
        comments(file, &mut findings);
        types(file, &mut findings);
    }
    findings
}

fn is_prose(path: &str) -> bool {
    path.ends_with(".rs") || path.ends_with(".md")
}

fn actors(file: &File, findings: &mut Vec<Finding>) {
    for (number, line) in file.lines() {
        let line = line.to_lowercase();
        for Actor { word, allowed_in } in &ACTORS {
            if has_word(&line, word) && !allowed_in.iter().any(|(path, _)| *path == file.path) {
                findings.push(file.finding(
                    number,
                    *word,
                    "the role of the actor: caller, agent, user, sandbox, …",
                ));
            }
        }
    }
}

fn comments(file: &File, findings: &mut Vec<Finding>) {
    for (number, line) in file.lines() {
        let Some(text) = line.trim_start().strip_prefix("//") else { continue };
        let text = text.trim_start_matches(['/', '!']).trim_start();
        let begins = |start: &&&str| text.strip_prefix(**start).is_some_and(|rest| rest.starts_with(' '));
        if let Some(start) = DEPENDENT.iter().find(begins) {
            findings.push(file.finding(
                number,
                *start,
                "a comment that stands alone: \"Returns …\", \"Maximum …\"",
            ));
        }
    }
}

fn types(file: &File, findings: &mut Vec<Finding>) {
    let code = code_only(&file.text);
    for (number, line) in (1..).zip(code.lines()) {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        while let Some(word) = words.next() {
            if !matches!(word, "struct" | "enum" | "trait") {
                continue;
            }
            let Some(name) = words.next().filter(|name| is_participle(name)) else { continue };
            if !PARTICIPLES.iter().any(|(allowed, _)| *allowed == name) {
                findings.push(file.finding(number, name, "a type named by a noun of the domain"));
            }
        }
    }
}

/// Returns true for one capitalized word that is a participle.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
    is_one_word && (IRREGULAR.contains(&name) || (name.ends_with("ed") && name.len() > 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_without_a_role_dependent_comments_and_participles_are_found() {
        let bad = concat!(
            "/// The same for who",
            "ever asks.\nstruct Told;\nstruct Counted;\n// What",
            " it is.\nlet no",
            "body = 1;\n"
        );
        let good = "/// Somebodyelse.\nstruct RunOutcome;\nenum Need {}\n// Whatever it is.\nstruct Lent;\n";
        let findings = check(&Repository::of(&[("bad.rs", bad), ("good.rs", good)]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 5, 1, 4, 2, 3]);
    }
}
