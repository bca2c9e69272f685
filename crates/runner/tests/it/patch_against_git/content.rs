//! Texts whose lines repeat, so that hunks fit in several places.

use belljar_testkit::random::Random;

const WORDS: [&[u8]; 12] =
    [b"a", b"b", b"c", b"", b"a", b"}", b"foo", b"  foo", b"foo  ", b"\xff\xfe", b"-a", b"@@ -1 +1 @@"];

/// Lines with their newlines; the last may have none.
pub(super) fn split_lines(text: &[u8]) -> Vec<Vec<u8>> {
    text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

pub(super) fn join_lines(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.concat()
}

fn line(random: &mut Random, variety: usize) -> Vec<u8> {
    let mut line = random.pick(&WORDS[..variety]).to_vec();
    if random.chance(3) {
        line.push(b'\r');
    }
    if random.chance(15) {
        line.extend_from_slice(random.below(5).to_string().as_bytes());
    }
    line.push(b'\n');
    line
}

pub(super) fn text(random: &mut Random) -> Vec<u8> {
    let most = [1, 3, 8, 30][random.below(4)];
    let variety = [1, 3, 6, WORDS.len()][random.below(4)];
    let mut lines: Vec<Vec<u8>> = (0..random.below(most + 1)).map(|_| line(random, variety)).collect();
    if random.chance(10) {
        lines.iter_mut().for_each(|line| line.splice(line.len() - 1.., *b"\r\n").for_each(drop));
    }
    end_openly(random, lines)
}

/// Many lines, of which few differ.
pub(super) fn long_text(random: &mut Random) -> Vec<u8> {
    let variety = 1 + random.below(4);
    let lines =
        (0..5 + random.below(50)).map(|_| [random.pick(&WORDS[..variety]), &b"\n"[..]].concat()).collect();
    end_openly(random, lines)
}

/// The text with some lines added, removed and changed.
pub(super) fn edited(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut lines = split_lines(text);
    if let Some(last) = lines.last_mut()
        && !last.ends_with(b"\n")
        && random.chance(70)
    {
        last.push(b'\n');
    }
    for _ in 0..1 + random.below(4) {
        let at = random.below(lines.len() + 1);
        let variety = [2, 6, WORDS.len()][random.below(3)];
        match random.below(4) {
            0 | 1 => lines.insert(at, line(random, variety)),
            2 if at < lines.len() => drop(lines.remove(at)),
            3 if at < lines.len() => lines[at] = line(random, variety),
            _ => {}
        }
    }
    end_openly(random, lines)
}

fn end_openly(random: &mut Random, mut lines: Vec<Vec<u8>>) -> Vec<u8> {
    if let Some(last) = lines.last_mut()
        && last.ends_with(b"\n")
        && random.chance(15)
    {
        last.pop();
    }
    join_lines(&lines)
}
