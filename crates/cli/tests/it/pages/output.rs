//! Comparison of printed output with actual output, apart from values that differ between runs.
//!
//! Not compared: blanks between words, ids, hashes, dates, times, durations and sizes. `…` in the printed output stands for any
//! text in its line, and a line of `…` alone for any lines.

/// Units of values that vary.
const UNITS: [&str; 11] =
    ["ms", "s", "seconds", "minutes", "bytes", "KiB", "MiB", "GiB", "second", "minute", "byte"];

/// Returns both outputs if they differ.
pub(super) fn difference(expected: &[String], actual: &str) -> Option<String> {
    let wanted: Vec<String> = lines_of(expected.iter().map(String::as_str));
    let found: Vec<String> = lines_of(actual.lines());
    let is_equal = lines_match(&wanted, &found);
    (!is_equal).then(|| format!("--- printed\n{}\n--- actual\n{actual}", expected.join("\n")))
}

fn lines_of<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut masked: Vec<String> = lines.map(mask).collect();
    while masked.last().is_some_and(String::is_empty) {
        masked.pop();
    }
    masked
}

fn lines_match(wanted: &[String], found: &[String]) -> bool {
    match wanted.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=found.len()).any(|skipped| lines_match(rest, &found[skipped..]))
        }
        Some((line, rest)) => found
            .split_first()
            .is_some_and(|(first, others)| is_like(line, first) && lines_match(rest, others)),
    }
}

/// Returns true if the text matches the pattern, in which `…` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}

/// Replaces values that vary by their kind.
fn mask(line: &str) -> String {
    let mut words: Vec<String> = line.split_whitespace().map(mask_word).collect();
    for at in 1..words.len() {
        let unit = words[at].trim_matches(|c: char| !c.is_alphanumeric());
        if UNITS.contains(&unit) && is_number(words[at - 1].trim_start_matches('(')) {
            words[at - 1] = "N".to_owned();
            words[at] = "UNIT".to_owned();
        }
    }
    words.join(" ")
}

fn mask_word(word: &str) -> String {
    let mut masked = String::new();
    let mut rest = word;
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        masked.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != '-' && c != ':').unwrap_or(rest.len());
        let token = rest[..end].trim_end_matches(['-', ':']);
        masked.push_str(&mask_token(token));
        rest = &rest[token.len()..];
    }
    masked.push_str(rest);
    match masked.strip_suffix('s') {
        // A duration without a blank before its unit.
        Some(number) if is_number(number) => "DURATION".to_owned(),
        _ => masked,
    }
}

/// Replaces what varies in a token of hexadecimal digits, hyphens and colons.
fn mask_token(token: &str) -> String {
    let groups: Vec<usize> = token.split(['-', ':']).map(str::len).collect();
    let is_decimal = token.chars().all(|c| c.is_ascii_digit() || c == '-' || c == ':');
    match groups[..] {
        [8, 4, 4, 4, 12] => "ID".to_owned(),
        [4, 2, 2] if is_decimal => "DATE".to_owned(),
        [2, 2, 2] if is_decimal => "TIME".to_owned(),
        _ => {
            let parts = token.split(':').map(|part| if part.len() >= 32 { "HASH" } else { part });
            parts.collect::<Vec<_>>().join(":")
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[test]
fn values_that_vary_are_not_compared_and_all_others_are() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let is_same = |printed: &str, actual: &str| difference(&lines(printed), actual).is_none();
    assert!(is_same(
        "kept as 01a20073-e9f5-7598-b496-5102b8186da2:",
        "kept  as 019ac2f0-5b1e-7c4a-9b1e-5f6a7b8c9d0e:\n"
    ));
    assert!(is_same("2026-01-01 10:00:00  took 4 ms, 12s", "2027-02-03 11:12:13 took 17.5 ms, 3s"));
    let digest = |digit: &str| format!("digest sha256:{}", digit.repeat(64));
    assert!(is_same(&digest("a"), &digest("b")));
    assert!(is_same("a …\n…\nend", "a b\nc\nd\nend\n"));
    assert!(is_same("exit code 3", "exit code 3\n\n"));
    assert!(!is_same("exit code 3", "exit code 4"));
    assert!(!is_same("1 file changed", "2 files changed"));
    assert!(!is_same("a", "a\nb"));
    assert!(!is_same("a\nb", "a"));
    assert!(!is_same("… end", "the end of it"));
}
