//! The commands of README, `docs/tutorials` and `docs/guides` work as printed.
//!
//! All commands of a page run in one shell, in a directory that is prepared for the page. The info string of a block decides
//! what happens to it:
//!
//! | block | treatment |
//! | --- | --- |
//! | `sh` | every command must succeed |
//! | `console` | commands follow `$ `; their output must be the printed one, apart from values that vary ([`output`]) |
//! | `sh background` | started in the background, until the end of the page |
//! | `yaml file=NAME` (or another language) | written to that file |
//! | `not-run=REASON` | not run; tidy has the list of reasons |
//!
//! Port 12090, the default of a node, is replaced by a free port.

mod output;

use crate::BELLJAR;
use crate::session::SessionCleanup;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The port in pages.
const PORT: &str = "12090";
/// Begins the line that the script prints before the command with the number that follows.
const MARK: &str = "\u{1}begin ";
/// Begins the line with the exit code of the last command.
const STATUS: &str = "\u{1}status ";
/// Programs that the pages use besides Belljar.
const PROGRAMS: [&str; 4] = ["bash", "curl", "git", "jq"];

/// A command of a page.
#[derive(Debug)]
struct PageCommand {
    line: usize,
    text: String,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// It must succeed.
    Succeeds,
    /// It prints these lines.
    Prints(Vec<String>),
    /// It is started in the background.
    Background,
    /// It is the content of this file.
    File(String),
}

#[test]
fn commands_of_the_readme_work_as_printed() {
    check(&[root().join("README.md")]);
}

#[test]
fn commands_of_the_tutorials_work_as_printed() {
    check(&pages_of("docs/tutorials"));
}

#[test]
fn commands_of_the_guides_work_as_printed() {
    check(&pages_of("docs/guides"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages_of(directory: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(directory)).unwrap();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    assert!(!pages.is_empty(), "{directory} has no pages");
    pages
}

fn check(pages: &[PathBuf]) {
    for program in PROGRAMS {
        if !Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|ran| ran.success())
        {
            return skip("commands of pages", &format!("{program} is not installed"));
        }
    }
    let failures: Vec<String> = pages.iter().flat_map(|page| failures_of(page)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs the commands of a page, and returns what differs from the page.
fn failures_of(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let commands = commands_of(&text.replace(PORT, &port));
    if commands.is_empty() {
        return Vec::new();
    }
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("project/greeting.txt", "first line\nhello world\nlast line\n");
    let script = world.write("page.sh", script_of(&commands, &port));
    let search_path =
        format!("{}:/usr/local/bin:/usr/bin:/bin", Path::new(BELLJAR).parent().unwrap().display());
    let mut shell = world.command_of(Path::new("/bin/bash"), &[script.to_str().unwrap()]);
    shell.current_dir(world.path().join("project")).env("PATH", search_path).env("LC_ALL", "C.UTF-8");
    let ran = shell.output().unwrap();
    let printed =
        String::from_utf8_lossy(&ran.stdout).replace(&world.path().display().to_string(), "/home/you");
    let mut failures = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        if let Some(why) = failure(index, &command.kind, &printed) {
            failures.push(format!("{}:{}: {}\n{why}", page.display(), command.line, command.text));
        }
    }
    failures
}

fn failure(index: usize, kind: &Kind, printed: &str) -> Option<String> {
    if !matches!(kind, Kind::Succeeds | Kind::Prints(_)) {
        return None;
    }
    let Some((_, after)) = printed.split_once(&format!("{MARK}{index}\n")) else {
        return Some("was not reached".to_owned());
    };
    let Some((output, after)) = after.split_once(STATUS) else { return Some("did not end".to_owned()) };
    // The mark is on a line of its own, also behind output without a line break at its end.
    let output = output.strip_suffix('\n').unwrap_or(output);
    match kind {
        Kind::Prints(expected) => output::difference(expected, output),
        _ if after.starts_with("0\n") => None,
        _ => Some(format!("failed: {output}")),
    }
}

/// Returns a script that runs the commands in order and marks where the output of each begins and ends.
fn script_of(commands: &[PageCommand], port: &str) -> String {
    let mut script = "exec 2>&1 </dev/null\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n".to_owned();
    for (index, command) in commands.iter().enumerate() {
        let text = &command.text;
        match &command.kind {
            Kind::File(name) => write!(script, "cat > {name} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n"),
            Kind::Background => write!(
                script,
                "{text} >background.log 2>&1 &\n\
                 for _ in $(seq 300); do (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep 0.1; done\n"
            ),
            _ => write!(
                script,
                "printf '{MARK}{index}\\n'\n{text}\nprintf '\\n{STATUS}%d\\n' $?\n"
            ),
        }
        .unwrap();
    }
    script
}

/// Returns the commands of a page, in order.
fn commands_of(page: &str) -> Vec<PageCommand> {
    let mut commands = Vec::new();
    let mut lines = page.lines().enumerate().map(|(number, line)| (number + 1, line));
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        let mut words = info.split(' ');
        let language = words.next().unwrap_or_default();
        let options: Vec<&str> = words.collect();
        if options.iter().any(|option| option.starts_with("not-run=")) {
            continue;
        }
        let file = options.iter().find_map(|option| option.strip_prefix("file="));
        match (language, file) {
            (_, Some(name)) => commands.push(file_of(name, &block)),
            ("sh", None) => {
                let is_background = options.contains(&"background");
                let kind = || if is_background { Kind::Background } else { Kind::Succeeds };
                commands.extend(whole_commands(&block).into_iter().map(|(line, text)| PageCommand {
                    line,
                    text,
                    kind: kind(),
                }));
            }
            ("console", None) => commands.extend(console(&block)),
            _ => {}
        }
    }
    commands
}

fn file_of(name: &str, block: &[(usize, &str)]) -> PageCommand {
    let text: Vec<&str> = block.iter().map(|(_, line)| *line).collect();
    PageCommand { line: block[0].0, text: text.join("\n"), kind: Kind::File(name.to_owned()) }
}

/// Splits the lines of a script into complete commands.
fn whole_commands(block: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut pending: Option<(usize, String)> = None;
    for (number, line) in block {
        let (first, text) = match pending.take() {
            Some((first, before)) => (first, format!("{before}\n{line}")),
            None if line.trim().is_empty() || line.starts_with('#') => continue,
            None => (*number, (*line).to_owned()),
        };
        match is_complete(&text) {
            true => commands.push((first, text)),
            false => pending = Some((first, text)),
        }
    }
    assert!(pending.is_none(), "an incomplete command: {pending:?}");
    commands
}

/// Returns the commands of a transcript, with their output.
fn console(block: &[(usize, &str)]) -> Vec<PageCommand> {
    let mut commands: Vec<PageCommand> = Vec::new();
    let mut is_open = false;
    for (number, line) in block {
        if let (false, Some(text)) = (is_open, line.strip_prefix("$ ")) {
            is_open = !is_complete(text);
            commands.push(PageCommand {
                line: *number,
                text: text.to_owned(),
                kind: Kind::Prints(Vec::new()),
            });
            continue;
        }
        let command = commands.last_mut().unwrap_or_else(|| panic!("line {number}: output before a command"));
        if is_open {
            command.text.push('\n');
            command.text.push_str(line);
            is_open = !is_complete(&command.text);
        } else if let Kind::Prints(lines) = &mut command.kind {
            lines.push((*line).to_owned());
        }
    }
    commands
}

/// Returns true if the shell needs no further line.
fn is_complete(text: &str) -> bool {
    // The shell warns of an unfinished here-document and succeeds.
    let parsed = Command::new("bash").args(["-n", "-c", text]).output().unwrap();
    parsed.status.success() && parsed.stderr.is_empty() && !text.ends_with('\\')
}

#[test]
fn page_is_split_into_commands_with_their_kinds() {
    let page = "a\n```sh\necho \\\n  a # b\ncat <<E\nx\nE\n```\n```console\n$ echo 'a\nb'\na\nb\n$ true\n```\n\
                ```sh not-run=root\nfalse\n```\n```yaml file=x.yaml\na: 1\n```\n```sh background\nsleep 9\n```\n```text\nx\n```\n";
    let found: Vec<_> = commands_of(page).into_iter().map(|one| (one.line, one.text, one.kind)).collect();
    let prints = |lines: &[&str]| Kind::Prints(lines.iter().map(|line| (*line).to_owned()).collect());
    let expected = [
        (3, "echo \\\n  a # b", Kind::Succeeds),
        (5, "cat <<E\nx\nE", Kind::Succeeds),
        (10, "echo 'a\nb'", prints(&["a", "b"])),
        (14, "true", prints(&[])),
        (20, "a: 1", Kind::File("x.yaml".to_owned())),
        (23, "sleep 9", Kind::Background),
    ];
    assert_eq!(found, expected.map(|(line, text, kind)| (line, text.to_owned(), kind)));
}
