//! Makes a failing case smaller.

use super::case::Case;
use super::content::{join_lines, split_lines};

/// Leaves out files of the tree, lines of the diff and lines of the files, as long as `fails` holds.
pub(super) fn shrink(mut case: Case, fails: impl Fn(&Case) -> bool) -> Case {
    loop {
        let size = case.size();
        for path in case.before.files.keys().cloned().collect::<Vec<_>>() {
            let mut smaller = case.clone();
            smaller.before.files.remove(&path);
            keep_if(&mut case, smaller, &fails);
        }
        for directory in case.before.directories.clone() {
            let mut smaller = case.clone();
            smaller.before.directories.remove(&directory);
            keep_if(&mut case, smaller, &fails);
        }
        let lines = without_runs(split_lines(&case.diff), |lines| {
            fails(&Case { diff: join_lines(lines), ..case.clone() })
        });
        case.diff = join_lines(&lines);
        for path in case.before.files.keys().cloned().collect::<Vec<_>>() {
            let lines = without_runs(split_lines(&case.before.files[&path].bytes), |lines| {
                let mut smaller = case.clone();
                smaller.before.files.entry(path.clone()).or_default().bytes = join_lines(lines);
                fails(&smaller)
            });
            case.before.files.entry(path).or_default().bytes = join_lines(&lines);
        }
        if case.size() == size {
            return case;
        }
    }
}

fn keep_if(case: &mut Case, smaller: Case, fails: &impl Fn(&Case) -> bool) {
    if fails(&smaller) {
        *case = smaller;
    }
}

/// Leaves out runs of lines, long ones first.
fn without_runs(mut lines: Vec<Vec<u8>>, fails: impl Fn(&[Vec<u8>]) -> bool) -> Vec<Vec<u8>> {
    let mut run = lines.len() / 2;
    while run > 0 {
        let mut at = 0;
        while at < lines.len() {
            let mut fewer = lines.clone();
            fewer.drain(at..(at + run).min(lines.len()));
            if fails(&fewer) {
                lines = fewer;
            } else {
                at += run;
            }
        }
        run /= 2;
    }
    lines
}
