//! Quantities: sizes and shares of processors, in the notations of Docker and of Kubernetes; and durations.

use super::document::Node;
use super::mistake::MistakeLog;
use super::scalar::{text_or_number, thousandths, whole_number};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Reads a size (`512m`) in bytes, with a minimum.
pub fn size(node: &Node, log: &mut MistakeLog, least: u64) -> Option<u64> {
    let expected =
        format!("a size from {least} bytes on, such as 64m: a whole number and k, m, g or nothing");
    text_or_number(node, log, &expected, |text| bytes(text).filter(|bytes| *bytes >= least))
}

/// Processors (`1.5`), in thousandths of one.
pub fn processors(node: &Node, log: &mut MistakeLog) -> Option<u32> {
    const MOST: u64 = 16_000;
    text_or_number(node, log, "a number of processors above 0 up to 16, such as 1.5", |text| {
        let millis = thousandths(text).filter(|millis| (1..=MOST).contains(millis))?;
        u32::try_from(millis).ok()
    })
}

/// Reads a duration (`4h`): a whole number and its unit.
pub fn duration(node: &Node, log: &mut MistakeLog, range: RangeInclusive<Duration>) -> Option<Duration> {
    let [least, most] = [range.start(), range.end()].map(|one| whole_units(*one));
    let expected = format!("a duration from {least} to {most}, such as 4h: a whole number and s, m, h or d");
    text_or_number(node, log, &expected, |text| in_units(text).filter(|duration| range.contains(duration)))
}

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

fn in_units(text: &str) -> Option<Duration> {
    let (unit, seconds) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
    let number = whole_number(text.strip_suffix(unit)?)?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

fn whole_units(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let fits = UNITS.into_iter().find(|(_, of_unit)| seconds >= *of_unit && seconds.is_multiple_of(*of_unit));
    fits.map_or_else(|| "0s".to_owned(), |(unit, of_unit)| format!("{}{unit}", seconds / of_unit))
}

fn bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 10),
        b'm' => (&text[..text.len() - 1], 20),
        b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    // One that would be the largest size there is has no place beside others.
    let most = u64::from(u32::MAX) << 10;
    whole_number(number)?.checked_mul(1 << shift).filter(|bytes| (1..=most).contains(bytes))
}

/// Processors in the notation of Kubernetes (`250m`, `1`), in thousandths of one.
pub fn kubernetes_cpu(node: &Node, log: &mut MistakeLog) -> Option<u64> {
    text_or_number(node, log, "a quantity of processors such as 250m or 1.5", |text| {
        let millis = match text.strip_suffix('m') {
            Some(millis) => whole_number(millis)?,
            None => thousandths(text)?,
        };
        (1..=1_000_000).contains(&millis).then_some(millis)
    })
}

/// A size in the notation of Kubernetes (`256Mi`), in bytes.
pub fn kubernetes_memory(node: &Node, log: &mut MistakeLog) -> Option<u64> {
    const UNITS: [(&str, u64); 7] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    text_or_number(node, log, "a quantity of memory such as 256Mi", |text| {
        let unit = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
        let (number, unit) = unit.unwrap_or((text, 1));
        whole_number(number)?.checked_mul(unit).filter(|bytes| *bytes > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_a_whole_number_with_unit() {
        for (text, seconds) in [("4h", 14_400), ("90s", 90), ("15m", 900), ("2d", 172_800)] {
            assert_eq!(in_units(text), Some(Duration::from_secs(seconds)), "{text}");
            assert_eq!(whole_units(Duration::from_secs(seconds)), text);
        }
        for other in ["", "4", "h", "-4h", "04h", "1.5h", "4 h", "4H", "99999999999999999999d"] {
            assert_eq!(in_units(other), None, "{other}");
        }
    }

    #[test]
    fn size_is_a_positive_number_with_optional_unit() {
        assert_eq!(bytes("512m"), Some(512 << 20));
        assert_eq!(bytes("4g"), Some(4 << 30));
        assert_eq!(bytes("100"), Some(100));
        for other in
            ["", "m", "0", "0m", "010m", "1.5g", "-1m", "512M", "512mb", "1 m", "99999999999999g", "5t"]
        {
            assert_eq!(bytes(other), None, "{other}");
        }
    }
}
