//! Cost of hostile diffs in a release build: at most 2 seconds and 64 MiB more than the input.
//!
//! Each diff is planned in a process of its own, which this binary starts from itself, so that the peak of its memory
//! is the diff's.

use std::fmt::Write as _;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use belljar_runner::patch::plan::{FileTreeEntry, FileTreeEntryKind};
use belljar_runner::patch::{FileMode, FileTree, RelativeName, parse, plan};

const MOST_EXTRA_KIB: u64 = 64 << 10;
/// Generous limit for a busy machine: without limits in the code these inputs take hours.
const MOST_TIME: Duration = Duration::from_secs(30);

const MIB: usize = 1 << 20;

/// Names the diff that a child is to plan.
const VARIABLE: &str = "BELLJAR_HOSTILE_DIFF";

/// A diff, and the one file there is.
type Input = (Vec<u8>, Vec<u8>);

type MakeInput = fn() -> Input;

const INPUTS: &[(&str, MakeInput)] = &[
    ("a gibibyte", || (vec![0; 1 << 30], Vec::new())),
    ("empty lines", || (vec![b'\n'; 64 * MIB], Vec::new())),
    ("one line", || (vec![b'x'; 64 * MIB], Vec::new())),
    ("one git line of blanks", || {
        ([b"diff --git a/".to_vec(), vec![b' '; 63 * MIB], b"\nxxxxxx\n".to_vec()].concat(), Vec::new())
    }),
    ("git lines of blanks", || {
        (format!("diff --git a/{}\n", "/ ".repeat(8000)).repeat(4000).into_bytes(), Vec::new())
    }),
    ("long quoted name", || {
        (
            format!("--- \"a/{}\"\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "x".repeat(60 * MIB)).into_bytes(),
            Vec::new(),
        )
    }),
    ("long plain name", || {
        (format!("--- a/{}\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "x/".repeat(30 * MIB)).into_bytes(), Vec::new())
    }),
    ("a million hunks", || (hunks(1_000_000, |at| format!("@@ -{at} +{at} @@\n-a\n+b\n")), b"a\n".to_vec())),
    ("hunks far from their places", || {
        let file = b"a\n"
            .repeat(4 * MIB)
            .into_iter()
            .chain((0..100_000).flat_map(|at| format!("a\n{at}\na\n").into_bytes()));
        (hunks(90_000, |at| format!("@@ -9,3 +9,3 @@\n a\n-{at}\n+b\n a\n")), file.collect())
    }),
    ("long hunks far from their places", || {
        let above = " a\n".repeat(200);
        let file = b"a\n"
            .repeat(4 * MIB)
            .into_iter()
            .chain((0..50_000).flat_map(|at| format!("{}{at}\na\n", "a\n".repeat(200)).into_bytes()));
        (hunks(50_000, |at| format!("@@ -9,202 +9,202 @@\n{above}-{at}\n+b\n a\n")), file.collect())
    }),
    ("long lines far from their places", || {
        let line = "y".repeat(8 << 10);
        let file = (0..4_000).flat_map(|at| format!("a\n{line}{at}\n").into_bytes());
        (
            hunks(3_900, |at| format!("@@ -9,2 +9,2 @@\n-{line}{at}\n+c\n a\n", at = 4_000 - at)),
            file.collect(),
        )
    }),
    ("hunks in reverse", || {
        let hunk = |at: usize| format!("@@ -{at},3 +{at},3 @@\n a\n-{at}\n+b\n a\n", at = 3 * (450_000 - at));
        let mut file = String::from("a\n");
        (0..450_001).for_each(|at| write!(file, "a\n{}\na\n", 3 * at).unwrap());
        (hunks(449_000, hunk), file.into_bytes())
    }),
    ("sections about one large file", || {
        let section = |at: usize| format!("--- a/x\n+++ b/x\n@@ -{at},2 +{at},2 @@\n-a\n+b\n a\n");
        ((1..100_000).map(section).collect::<String>().into_bytes(), b"a\n".repeat(8 * MIB))
    }),
    ("sections about one small file", || {
        let section = |at: usize| format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{at}\n+{}\n", at + 1);
        ((1..100_000).map(section).collect::<String>().into_bytes(), b"1\n".to_vec())
    }),
    ("copies of a large file", || {
        let section = |at: usize| {
            format!(
                "diff --git a/x b/y{at}\ncopy from x\ncopy to y{at}\n--- a/x\n+++ b/y{at}\n@@ -2,2 +2,2 @@\n-a\n+b\n a\n"
            )
        };
        ((0..100_000).map(section).collect::<String>().into_bytes(), b"a\n".repeat(2 * MIB))
    }),
    ("very deep names", || {
        let section = |at: usize| {
            format!(
                "diff --git a/x b/x\nnew file mode 100644\nrename to x\n--- /dev/null\n+++ b/{at}/{}x\n",
                "d/".repeat(2000)
            )
        };
        let create = |at: usize| {
            section(at).replace("rename to x\n", "").replace("a/x b/x", &{
                let name = format!("{at}/{}x", "d/".repeat(2000));
                format!("a/{name} b/{name}")
            })
        };
        ((0..5_000).map(create).collect::<String>().into_bytes(), Vec::new())
    }),
    ("very deep names of plain diffs", || {
        let section = |at: usize| {
            let name = format!("{at}/{}x", "d/".repeat(2000));
            format!("--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n+a\n")
        };
        ((0..8_000).map(section).collect::<String>().into_bytes(), Vec::new())
    }),
    ("mode changes of a large result", || {
        let edit = "--- a/x\n+++ b/x\n@@ -2,2 +2,2 @@\n-a\n+b\n a\n".to_owned();
        let mode = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\ndiff --git a/x b/x\nold mode 100755\nnew mode 100644\n";
        ((edit + &mode.repeat(49_000)).into_bytes(), b"a\n".repeat(8 * MIB))
    }),
    ("two hundred thousand sections", || {
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n".repeat(200_000).into_bytes(), b"a\n".to_vec())
    }),
    ("one hunk that is everything", || {
        let lines = 20 * MIB;
        (
            format!("--- a/x\n+++ b/x\n@@ -1,{lines} +1,{lines} @@\n{}-b\n+c\n", " a\n".repeat(lines - 1))
                .into_bytes(),
            b"a\n".repeat(lines),
        )
    }),
    ("only markers", || {
        (
            format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n{}", "\\ No newline at end of file\n".repeat(2 * MIB))
                .into_bytes(),
            Vec::new(),
        )
    }),
];

struct OneFile(Vec<u8>);

impl FileTree for OneFile {
    fn read(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntry>> {
        Ok((path.as_str() == "x")
            .then(|| FileTreeEntry::File { mode: FileMode::Plain, bytes: self.0.clone() }))
    }

    fn kind(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntryKind>> {
        Ok((path.as_str() == "x").then_some(FileTreeEntryKind::File(FileMode::Plain)))
    }

    fn children(&mut self, _: &RelativeName) -> io::Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }
}

fn hunks(count: usize, hunk: impl Fn(usize) -> String) -> Vec<u8> {
    let mut diff = String::from("--- a/x\n+++ b/x\n");
    (1..=count).for_each(|at| diff.push_str(&hunk(at)));
    diff.into_bytes()
}

#[test]
fn hostile_diffs_cost_little() {
    // Memory is measured for one diff a process: this test, started once more with the diff's name.
    if let Ok(name) = std::env::var(VARIABLE) {
        return one_hostile_diff(&name);
    }
    let mut reports = Vec::new();
    for (name, _) in INPUTS {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hostile_patches::cost::hostile_diffs_cost_little", "--nocapture"])
            .env(VARIABLE, name)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        let report = output.lines().find_map(|line| line.strip_prefix("cost: ")).map(str::to_owned);
        let report =
            report.unwrap_or_else(|| panic!("{name}: {output}\n{}", String::from_utf8_lossy(&child.stderr)));
        reports.push((name, report));
    }
    for (name, report) in &reports {
        println!("{name}: {report}");
    }
    for (name, report) in &reports {
        let mut numbers = report.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (milliseconds, kib) = (numbers.next().unwrap(), numbers.next().unwrap());
        assert!(Duration::from_millis(milliseconds) <= MOST_TIME, "{name}: {report}");
        assert!(kib <= MOST_EXTRA_KIB, "{name}: {report}");
    }
}

fn one_hostile_diff(name: &str) {
    let (_, input) = INPUTS.iter().find(|(known, _)| *known == name).unwrap();
    let (diff, file) = input();
    // The tree's own copies of the file are not counted; the file's size bounds them.
    let file_kib = file.len() as u64 / 1024;
    let mut tree = OneFile(file);
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    let start = Instant::now();
    let outcome = match parse(&diff) {
        Err(error) => error.to_string(),
        Ok(patch) => match plan(&patch, &mut tree) {
            Err(error) => error.to_string(),
            Ok(plan) => format!("{} changes", plan.changes.len()),
        },
    };
    let elapsed = start.elapsed().as_millis();
    let extra = status("VmHWM:").saturating_sub(before + file_kib);
    println!("\ncost: {elapsed} {extra} ms and KiB: {outcome}");
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
