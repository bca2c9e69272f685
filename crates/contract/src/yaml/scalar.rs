//! Texts, numbers and booleans, in forms that YAML 1.1 and 1.2 interpret equally.
//!
//! `no`, `010`, `1_000` or `1:30` have different meanings in the two, so they are rejected without quotes, wherever
//! they stand. Quoted values are always texts.

use super::document::{Node, Value};
use super::members::place;
use super::mistake::{MistakeLog, quoted};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Texts that some YAML parsers read as a boolean, null or another special value, and others as a text.
const AMBIGUOUS: [&str; 12] = ["y", "yes", "n", "no", "on", "off", "true", "false", "null", "~", "=", "<<"];

/// A text of which some check thinks well, or what it should be.
pub fn text<T>(
    node: &Node,
    log: &mut MistakeLog,
    expected: &str,
    check: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let text = match &node.value {
        Value::Text(text) => text,
        Value::Plain(text) if !text.is_empty() && !is_ambiguous(text) => text,
        Value::Plain(text) if !text.is_empty() => {
            let found = format!("{}, which is ambiguous without quotes", node.describe());
            log.note(node.position, place(node), found, format!("{expected}, in quotes"));
            return None;
        }
        _ => {
            log.note(node.position, place(node), node.describe(), expected);
            return None;
        }
    };
    checked(node, log, expected, text, check)
}

/// A text that is a number with a unit, or a number alone, which needs no quotes.
pub fn text_or_number<T>(
    node: &Node,
    log: &mut MistakeLog,
    expected: &str,
    check: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    match &node.value {
        Value::Plain(text) if !text.is_empty() => checked(node, log, expected, text, check),
        _ => text(node, log, expected, check),
    }
}

fn checked<T>(
    node: &Node,
    log: &mut MistakeLog,
    expected: &str,
    text: &str,
    check: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let value = check(text);
    if value.is_none() {
        log.note(node.position, place(node), quoted(text), expected);
    }
    value
}

/// `true` or `false`.
pub fn boolean(node: &Node, log: &mut MistakeLog) -> Option<bool> {
    match &node.value {
        Value::Plain(text) if text == "true" => Some(true),
        Value::Plain(text) if text == "false" => Some(false),
        _ => {
            log.note(node.position, place(node), node.describe(), "`true` or `false`");
            None
        }
    }
}

/// A whole number.
pub fn whole(node: &Node, log: &mut MistakeLog, range: RangeInclusive<u64>) -> Option<u64> {
    let number = match &node.value {
        Value::Plain(text) => whole_number(text),
        _ => None,
    };
    let number = number.filter(|number| range.contains(number));
    if number.is_none() {
        let expected = match *range.end() {
            u64::MAX => format!("a whole number from {} on, such as 64", range.start()),
            end => format!("a whole number from {} to {end}", range.start()),
        };
        log.note(node.position, place(node), node.describe(), expected);
    }
    number
}

/// A number of seconds, of which a fraction is fine.
pub fn seconds(node: &Node, log: &mut MistakeLog, range: RangeInclusive<Duration>) -> Option<Duration> {
    let millis = match &node.value {
        Value::Plain(text) => thousandths(text),
        _ => None,
    };
    let duration = millis.map(Duration::from_millis).filter(|duration| range.contains(duration));
    if duration.is_none() {
        let [least, most] = [range.start(), range.end()].map(Duration::as_secs_f64);
        let expected = format!("a number of seconds from {least} to {most}, with up to three places");
        log.note(node.position, place(node), node.describe(), expected);
    }
    duration
}

/// A number of which a fraction is fine, from 0 to some whole one; in thousandths.
pub fn decimal(node: &Node, log: &mut MistakeLog, most: u64) -> Option<u64> {
    let number = match &node.value {
        Value::Plain(text) => thousandths(text).filter(|number| *number <= most.saturating_mul(1_000)),
        _ => None,
    };
    if number.is_none() {
        let expected = format!("a number from 0 to {most}, with up to three places");
        log.note(node.position, place(node), node.describe(), expected);
    }
    number
}

/// Reads a decimal number in an unambiguous notation, as thousandths.
pub fn thousandths(text: &str) -> Option<u64> {
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    let is_plain = !places.is_empty() && places.len() <= 3 && places.bytes().all(|b| b.is_ascii_digit());
    let thousandths: u64 = format!("{places:0<3}").parse().ok().filter(|_| is_plain)?;
    whole_number(whole)?.checked_mul(1_000)?.checked_add(thousandths)
}

/// Reads a whole number in an unambiguous notation.
pub fn whole_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// Returns true if some YAML parser would read the text as something else than a text.
fn is_ambiguous(text: &str) -> bool {
    AMBIGUOUS.contains(&text.to_ascii_lowercase().as_str()) || is_like_a_number(text)
}

/// Numbers of every notation, hours and minutes, dates.
fn is_like_a_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-', '.']);
    let notation = |c: char| c.is_ascii_hexdigit() || matches!(c, '_' | '.' | ':' | 'x' | 'o' | '+' | '-');
    let is_word = matches!(digits.to_ascii_lowercase().as_str(), "inf" | "nan") && text.contains('.');
    is_word
        || digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(notation)
            && !is_address(text)
}

/// Four numbers with dots, maybe with a port: no YAML takes that for a number.
fn is_address(text: &str) -> bool {
    let host = text.split_once(':').map_or(text, |(host, _)| host);
    host.matches('.').count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_accepted_in_one_notation_only() {
        assert_eq!(whole_number("0"), Some(0));
        assert_eq!(whole_number("64"), Some(64));
        for other in
            ["", "010", "0o10", "0x10", "1_000", "1e3", "+5", "-5", "1.0", "1:30", "99999999999999999999"]
        {
            assert_eq!(whole_number(other), None, "{other}");
        }
        assert_eq!(thousandths("1.5"), Some(1_500));
        assert_eq!(thousandths("0.025"), Some(25));
        for other in ["", ".", "1.", ".5", "1.0000", "1.5.0", "01.5", "inf", "1e3", "18446744073709551615"] {
            assert_eq!(thousandths(other), None, "{other}");
        }
    }

    #[test]
    fn scalar_that_some_yaml_parsers_do_not_read_as_text_is_ambiguous() {
        for text in [
            "no",
            "No",
            "ON",
            "y",
            "~",
            "null",
            "010",
            "0x1F",
            "1_000",
            "1:30",
            "190:20:30",
            "2026-01-01",
            "1e3",
            ".inf",
            "-.5",
        ] {
            assert!(is_ambiguous(text), "{text}");
        }
        for text in
            ["none", "bridge", "docker", "512m", "10.0.0.1", "10.0.0.1:5432", "db:5432", "a-b", "256Mi"]
        {
            assert!(!is_ambiguous(text), "{text}");
        }
    }
}
