//! Random mutations of a diff.

use super::case::NAMES;
use super::content::{join_lines, split_lines};
use belljar_testkit::random::Random;

/// Lines with a meaning in some position of a diff.
const SPLICES: [&str; 42] = [
    "diff --git a/x b/x\n",
    "diff --git a/x b/y\n",
    "diff --git x x\n",
    "diff --git \"a/x\" b/x\n",
    "diff --git a/x \"b/x\"\n",
    "--- a/x\n",
    "+++ b/x\n",
    "--- x\n",
    "+++ x\n",
    "--- /dev/null\n",
    "+++ /dev/null\n",
    "--- a/x.orig\n",
    "+++ b/../x\n",
    "old mode 100644\n",
    "new mode 100755\n",
    "old mode 120000\n",
    "new mode 100664\n",
    "new mode 0100755\n",
    "new mode 100755x\n",
    "new file mode 100644\n",
    "deleted file mode 100644\n",
    "rename from x\n",
    "rename to y\n",
    "copy from x\n",
    "copy to z\n",
    "rename from d/x\n",
    "rename old y\n",
    "rename new y\n",
    "similarity index 100%\n",
    "index 1..2 100644\n",
    "index 1..2 100755\n",
    "@@ -0,0 +1 @@\n",
    "@@ -1 +0,0 @@\n",
    "@@ -1 +1 @@\n",
    "@@ -1,3 +1,3 @@ x\n",
    "\\ No newline at end of file\n",
    "\\ x\n",
    "GIT binary patch\n",
    "Binary files a/x and b/x differ\n",
    "garbage\n",
    "\n",
    "-- \n",
];

pub(super) fn mutate(random: &mut Random, diff: &[u8]) -> Vec<u8> {
    let mut lines = split_lines(diff);
    if lines.is_empty() {
        return diff.to_vec();
    }
    let at = random.below(lines.len());
    let other = random.below(lines.len());
    match random.below(16) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => lines.swap(at, other),
        3 => lines[at] = lines[other].clone(),
        4 => lines.insert(at, random.pick(&SPLICES).as_bytes().to_vec()),
        5 => lines[at] = random.pick(&SPLICES).as_bytes().to_vec(),
        6 => lines[at] = with_other_number(random, &lines[at]),
        7 => renumber_some_hunk(random, &mut lines),
        8 => lines[at][0] = *random.pick(&[&b' ', &b'-', &b'+', &b'\\', &b'\n', &b'@']),
        9 => change_byte(random, &mut lines[at]),
        10 => return diff[..random.below(diff.len())].to_vec(),
        11 => move_block(random, &mut lines, b"@@ -"),
        12 => move_block(random, &mut lines, b"diff --git "),
        13 => rename_in(random, &mut lines),
        14 => lines[at] = [lines[at].strip_suffix(b"\n").unwrap_or(&lines[at]), b"\r\n"].concat(),
        _ if random.chance(20) => {
            lines
                .iter_mut()
                .for_each(|line| *line = [line.strip_suffix(b"\n").unwrap_or(line), b"\r\n"].concat());
        }
        _ => drop_some_lines(random, &mut lines),
    }
    join_lines(&lines)
}

/// Damages hunks only, and mostly so that they can still be read.
pub(super) fn mutate_hunks(random: &mut Random, diff: &[u8]) -> Vec<u8> {
    let mut lines = split_lines(diff);
    match random.below(8) {
        0..3 => renumber_some_hunk(random, &mut lines),
        3 | 4 => move_block(random, &mut lines, b"@@ -"),
        5 => swap_neighbours(random, &mut lines),
        6 => change_content(random, &mut lines),
        _ => {
            let at = random.below(lines.len() + 1);
            lines.insert(at, b"\\ No newline at end of file\n".to_vec());
        }
    }
    join_lines(&lines)
}

fn swap_neighbours(random: &mut Random, lines: &mut [Vec<u8>]) {
    if lines.len() > 5 {
        let at = 4 + random.below(lines.len() - 5);
        lines.swap(at, at + 1);
    }
}

/// Replaces the text of a hunk's line, keeping its side.
fn change_content(random: &mut Random, lines: &mut [Vec<u8>]) {
    let at = random.below(lines.len());
    let line = &mut lines[at];
    if matches!(line[0], b' ' | b'-' | b'+') && !line.starts_with(b"---") && !line.starts_with(b"+++") {
        line.truncate(1);
        line.extend_from_slice(random.pick(&[&b"a\n"[..], b"b\n", b"c\n", b"\n", b" \n"]));
    }
}

/// Replaces one number of a line by one nearby, or by an absurd one.
fn with_other_number(random: &mut Random, line: &[u8]) -> Vec<u8> {
    let starts: Vec<usize> = (0..line.len())
        .filter(|&at| line[at].is_ascii_digit() && (at == 0 || !line[at - 1].is_ascii_digit()))
        .collect();
    if starts.is_empty() {
        return line.to_vec();
    }
    let start = starts[random.below(starts.len())];
    let end = (start..line.len()).find(|&at| !line[at].is_ascii_digit()).unwrap_or(line.len());
    let number: u64 = std::str::from_utf8(&line[start..end]).unwrap().parse().unwrap_or(0);
    let changed = match random.below(8) {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        2 => ["99999999999999999999", "4294967297", "2147483648", "-1"][random.below(4)].to_owned(),
        3 | 4 => number.saturating_add(1 + random.below(9) as u64).to_string(),
        _ => number.saturating_sub(1 + random.below(9) as u64).to_string(),
    };
    [&line[..start], changed.as_bytes(), &line[end..]].concat()
}

fn renumber_some_hunk(random: &mut Random, lines: &mut [Vec<u8>]) {
    let hunks: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].starts_with(b"@@ -")).collect();
    if !hunks.is_empty() {
        let at = hunks[random.below(hunks.len())];
        lines[at] = with_other_number(random, &lines[at]);
    }
}

fn change_byte(random: &mut Random, line: &mut Vec<u8>) {
    let at = random.below(line.len());
    match random.below(3) {
        0 => drop(line.remove(at)),
        1 => line.insert(
            at,
            *random.pick(&[&b' ', &b'a', &b'/', &b'"', &b'\t', &b'\r', &b'\0', &b'\n', &b'.', &0xc3]),
        ),
        _ => {
            line[at] =
                *random.pick(&[&b' ', &b'b', &b'/', &b'"', &b'\\', &b'\t', &b'0', &b'\0', &b'~', &0xff]);
        }
    }
}

/// Takes the block that one line with this start opens, up to the next such line, elsewhere.
fn move_block(random: &mut Random, lines: &mut Vec<Vec<u8>>, start: &[u8]) {
    let mut blocks: Vec<Vec<Vec<u8>>> = vec![Vec::new()];
    for line in lines.drain(..) {
        if line.starts_with(start) {
            blocks.push(Vec::new());
        }
        blocks.last_mut().unwrap().push(line);
    }
    if blocks.len() > 2 {
        let (from, to) = (1 + random.below(blocks.len() - 1), 1 + random.below(blocks.len() - 1));
        match random.below(3) {
            0 => blocks.swap(from, to),
            1 => blocks.insert(to, blocks[from].clone()),
            _ => drop(blocks.remove(from)),
        }
    }
    *lines = blocks.concat();
}

/// Puts another name into one header line.
fn rename_in(random: &mut Random, lines: &mut [Vec<u8>]) {
    let keywords = ["--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ", "diff --git "];
    let headers: Vec<usize> = (0..lines.len())
        .filter(|&at| keywords.iter().any(|word| lines[at].starts_with(word.as_bytes())))
        .collect();
    if headers.is_empty() {
        return;
    }
    let at = headers[random.below(headers.len())];
    let keyword = keywords.iter().find(|word| lines[at].starts_with(word.as_bytes())).unwrap();
    let hostile = [
        "a/../../x",
        "/etc/passwd",
        "a/.git/config",
        "a/.GIT/x",
        "a/git~1/x",
        "a//x",
        "a/./x",
        "a/x/",
        "\"a/\\000x\"",
        "\"a/x",
    ];
    let name = match random.below(6) {
        0 => hostile[random.below(hostile.len())].to_owned(),
        1 => random.pick(&NAMES).to_owned(),
        _ => format!("{}{}", ["a/", "b/"][random.below(2)], random.pick(&NAMES)),
    };
    let other = if *keyword == "diff --git " { format!(" b/{}", random.pick(&NAMES)) } else { String::new() };
    lines[at] = format!("{keyword}{name}{other}\n").into_bytes();
}

fn drop_some_lines(random: &mut Random, lines: &mut Vec<Vec<u8>>) {
    let from = random.below(lines.len());
    let to = (from + 1 + random.below(4)).min(lines.len());
    lines.drain(from..to);
}
