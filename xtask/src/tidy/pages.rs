//! Checks that every command in README, the tutorials and the guides is run by a test, or says by a known reason why not.
//!
//! The test is `crates/cli/tests/it/pages.rs`. A block of `sh` or `console` is run unless its info string has `not-run=REASON`.

use super::{File, Finding, Repository};

/// The only reasons for which a block is not run.
const REASONS: [&str; 8] = [
    // Compiles Belljar, or needs its source tree beside the program.
    "build",
    // Serves in the foreground until it is stopped.
    "foreground",
    // Names an id that another run gets.
    "ids",
    // Calls a model or an agent of a provider.
    "provider",
    // Changes the machine as root.
    "root",
    // Needs another server.
    "server",
    // Needs a program that is not installed for tests.
    "software",
    // Asks at a terminal.
    "terminal",
];

/// Words of an info string that the test knows, besides `file=NAME`.
const OPTIONS: [&str; 1] = ["background"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository.with_extension("md").filter(|file| is_run(&file.path)).flat_map(findings).collect()
}

fn is_run(path: &str) -> bool {
    path == "README.md" || path.starts_with("docs/tutorials/") || path.starts_with("docs/guides/")
}

fn findings(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut block: Option<&str> = None;
    for (number, line) in file.lines() {
        match (block, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                block = Some(info);
                found.extend(
                    wrong_option(line).map(|right| file.finding(number, format!("the block {info}"), right)),
                );
            }
            (Some(_), Some(_)) => block = None,
            (Some(info), None) if !info.starts_with("console") && line.starts_with("$ ") => {
                found.push(file.finding(
                    number,
                    "a command in a block that no test runs",
                    "a block `console`",
                ));
            }
            _ => {}
        }
    }
    found
}

/// Returns what the info string of a block lacks.
fn wrong_option(line: &str) -> Option<String> {
    let info = line.strip_prefix("```").filter(|info| !info.starts_with('`'));
    let Some(info) = info else { return Some("a block that begins in the first column".into()) };
    let mut words = info.split(' ');
    let language = words.next().unwrap_or_default();
    if ["bash", "shell", "sh-session", ""].contains(&language) {
        return Some("the language `sh`, `console`, `text` or that of a file".into());
    }
    let is_known = |word: &str| match word.split_once('=') {
        Some(("not-run", reason)) => REASONS.contains(&reason),
        Some(("file", name)) => !name.is_empty(),
        _ => OPTIONS.contains(&word),
    };
    words.find(|word| !is_known(word)).map(|word| {
        format!(
            "`file=NAME`, `background` or `not-run=` with one of {} instead of {word}",
            REASONS.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, text: &str) -> Vec<usize> {
        let repository = Repository::of(&[(path, text)]);
        check(&repository).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn blocks_that_no_test_runs_need_a_known_reason() {
        let text = "```sh\na\n```\n```sh not-run=root\nb\n```\n```sh not-run=later\nc\n```\n```\nd\n```\n  ```sh\ne\n  ```\n\
                    ```text\n$ f\n```\n```console\n$ g\n```\n```yaml file=x\nh: 1\n```\n```bash\ni\n```\n```sh backgroud\nj\n```\n";
        assert_eq!(found_in("docs/guides/a.md", text), [7, 10, 13, 17, 25, 28]);
        assert!(found_in("docs/reference/a.md", text).is_empty());
    }
}
