//! Writes diffs in the styles that git and other tools use.

use super::content::split_lines;
use super::world::File;
use belljar_testkit::random::Random;

/// Content of a file section.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) old: Option<(String, File)>,
    pub(super) new: Option<(String, File)>,
    /// The old file stays.
    pub(super) is_copy: bool,
}

/// Style of a diff.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    is_git: bool,
    context: usize,
    prefixes: (&'static str, &'static str),
    /// Text after names in plain diffs.
    stamp: &'static str,
    says_absence_by_epoch: bool,
    quoting: Quoting,
    ends_in_signature: bool,
}

#[derive(Debug, Clone, Copy)]
enum Quoting {
    NonAscii,
    OnlyWhereNeeded,
    Always,
}

const STAMPS: [&str; 8] = [
    "",
    "\t",
    "\t2024-02-03 04:05:06.000000000 +0100",
    " 2024-02-03 04:05:06 +0100",
    "\tMon Jul  5 19:41:17 2010",
    "  2024-02-03",
    " 24-02-03 04:05:06 -01:30",
    " 04:05:06",
];
const PREFIXES: [(&str, &str); 6] =
    [("a/", "b/"), ("i/", "w/"), ("", ""), ("a/", "a/"), ("old-1.0/", "new-1.1/"), ("./", "./")];

impl Style {
    pub(super) fn random(random: &mut Random) -> Self {
        let usual = random.chance(70);
        Self {
            is_git: random.chance(65),
            context: [3, 3, 3, 0, 1, 2, 4, 5][random.below(8)],
            prefixes: if usual { PREFIXES[0] } else { PREFIXES[random.below(PREFIXES.len())] },
            stamp: if usual { "" } else { STAMPS[random.below(STAMPS.len())] },
            says_absence_by_epoch: random.chance(20),
            quoting: [Quoting::NonAscii, Quoting::OnlyWhereNeeded, Quoting::Always]
                [random.below(if usual { 2 } else { 3 })],
            ends_in_signature: random.chance(10),
        }
    }

    /// A git diff with some context, as most are.
    pub(super) fn git(random: &mut Random) -> Self {
        let context = [3, 1, 1, 2, 0][random.below(5)];
        Self { is_git: true, context, prefixes: PREFIXES[0], stamp: "", ..Self::random(random) }
    }

    pub(super) fn write(&self, sections: &[Section]) -> Vec<u8> {
        let mut out = Vec::new();
        for section in sections {
            self.section(section, &mut out);
        }
        if self.ends_in_signature {
            out.extend_from_slice(b"-- \n2.47.3\n\n");
        }
        out
    }

    fn section(&self, section: &Section, out: &mut Vec<u8>) {
        let nothing = File::default();
        let before = section.old.as_ref().map_or(&nothing, |(_, file)| file);
        let after = section.new.as_ref().map_or(&nothing, |(_, file)| file);
        let hunks = hunks(&before.bytes, &after.bytes, self.context);
        if self.is_git {
            self.git_header(section, out);
        }
        if hunks.is_empty() {
            return;
        }
        let side = |file: &Option<(String, File)>, prefix: &str| match file {
            Some((name, _)) => self.quoted(&format!("{prefix}{name}")),
            None => "/dev/null".to_owned(),
        };
        let (mut old, mut new) = (side(&section.old, self.prefixes.0), side(&section.new, self.prefixes.1));
        if self.is_git {
            for name in [&mut old, &mut new] {
                if name.contains(' ') && !name.starts_with('"') {
                    name.push('\t');
                }
            }
        } else {
            let epoch = "\t1970-01-01 00:00:00.000000000 +0000";
            for (name, file, other, prefix) in [
                (&mut old, &section.old, &section.new, self.prefixes.0),
                (&mut new, &section.new, &section.old, self.prefixes.1),
            ] {
                if file.is_none() && self.says_absence_by_epoch {
                    *name = side(other, prefix) + epoch;
                } else {
                    name.push_str(self.stamp);
                }
            }
        }
        out.extend_from_slice(format!("--- {old}\n+++ {new}\n").as_bytes());
        out.extend_from_slice(&hunks);
    }

    fn git_header(&self, section: &Section, out: &mut Vec<u8>) {
        let name = |file: &Option<(String, File)>| file.as_ref().map(|(name, _)| name.clone());
        let (old, new) = (name(&section.old), name(&section.new));
        let either =
            |one: &Option<String>, other: &Option<String>| one.clone().or(other.clone()).unwrap_or_default();
        let (a, b) = (either(&old, &new), either(&new, &old));
        let mut lines = vec![format!(
            "diff --git {} {}",
            self.quoted(&format!("{}{a}", self.prefixes.0)),
            self.quoted(&format!("{}{b}", self.prefixes.1))
        )];
        let mode = |file: &File| if file.executable { "100755" } else { "100644" };
        match (&section.old, &section.new) {
            (Some((_, before)), Some((_, after))) if before.executable != after.executable => {
                lines.push(format!("old mode {}", mode(before)));
                lines.push(format!("new mode {}", mode(after)));
            }
            (Some((_, before)), None) => lines.push(format!("deleted file mode {}", mode(before))),
            (None, Some((_, after))) => lines.push(format!("new file mode {}", mode(after))),
            _ => {}
        }
        if let (Some(old), Some(new)) = (&old, &new)
            && (old != new || section.is_copy)
        {
            let verb = if section.is_copy { "copy" } else { "rename" };
            lines.push("similarity index 90%".to_owned());
            lines.push(format!("{verb} from {}", self.quoted(old)));
            lines.push(format!("{verb} to {}", self.quoted(new)));
        }
        lines.push("index 0123456..789abcd".to_owned());
        for line in lines {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
    }

    fn quoted(&self, name: &str) -> String {
        let is_needed = |byte: u8| matches!(byte, b'"' | b'\\') || byte.is_ascii_control();
        let needs_quotes = match self.quoting {
            Quoting::Always => true,
            Quoting::NonAscii => name.bytes().any(|byte| is_needed(byte) || !byte.is_ascii()),
            Quoting::OnlyWhereNeeded => name.bytes().any(is_needed),
        };
        if !needs_quotes {
            return name.to_owned();
        }
        let mut quoted = String::from("\"");
        for byte in name.bytes() {
            match byte {
                b'"' | b'\\' => quoted.extend(['\\', byte as char]),
                b' '..=b'~' => quoted.push(byte as char),
                _ => quoted.push_str(&format!("\\{byte:03o}")),
            }
        }
        quoted + "\""
    }
}

/// A line of a comparison: ` `, `-` or `+`, and the text.
type ComparisonLine = (u8, Vec<u8>);

/// Hunks that turn `before` into `after`.
fn hunks(before: &[u8], after: &[u8], context: usize) -> Vec<u8> {
    let steps = steps(&split_lines(before), &split_lines(after));
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(change) = (at..steps.len()).find(|&step| steps[step].0 != b' ') {
        let start = change.saturating_sub(context).max(at);
        let mut end = change;
        // A hunk goes on while the next change is within twice the context.
        while let Some(next) = (end..steps.len()).find(|&step| steps[step].0 != b' ') {
            if next > end + 2 * context && next != change {
                break;
            }
            end = next + 1;
        }
        let end = (end + context).min(steps.len());
        write_hunk(&steps, start..end, &mut out);
        at = end;
    }
    out
}

fn write_hunk(steps: &[ComparisonLine], range: std::ops::Range<usize>, out: &mut Vec<u8>) {
    let count = |steps: &[ComparisonLine], other: u8| steps.iter().filter(|(side, _)| *side != other).count();
    let side = |mark: char, other: u8| {
        let (above, lines) = (count(&steps[..range.start], other), count(&steps[range.clone()], other));
        let start = if lines == 0 { above } else { above + 1 };
        if lines == 1 { format!("{mark}{start}") } else { format!("{mark}{start},{lines}") }
    };
    out.extend_from_slice(format!("@@ {} {} @@\n", side('-', b'+'), side('+', b'-')).as_bytes());
    for (side, text) in &steps[range] {
        out.push(*side);
        out.extend_from_slice(text);
        if !text.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// Compares by longest common subsequence; for short texts only.
fn steps(before: &[Vec<u8>], after: &[Vec<u8>]) -> Vec<ComparisonLine> {
    let mut common = vec![vec![0; after.len() + 1]; before.len() + 1];
    for old in (0..before.len()).rev() {
        for new in (0..after.len()).rev() {
            common[old][new] = if before[old] == after[new] {
                common[old + 1][new + 1] + 1
            } else {
                common[old + 1][new].max(common[old][new + 1])
            };
        }
    }
    let (mut old, mut new) = (0, 0);
    let mut steps = Vec::new();
    while old < before.len() || new < after.len() {
        if old < before.len() && new < after.len() && before[old] == after[new] {
            steps.push((b' ', before[old].clone()));
            old += 1;
            new += 1;
        } else if new == after.len() || (old < before.len() && common[old + 1][new] >= common[old][new + 1]) {
            steps.push((b'-', before[old].clone()));
            old += 1;
        } else {
            steps.push((b'+', after[new].clone()));
            new += 1;
        }
    }
    steps
}
