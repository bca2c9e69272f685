//! Time stamps behind the names in plain diffs.

/// Length of the time stamp at the end of `text` (a header line without its newline), separator included; 0 if
/// there is none. Known: `YYYY-MM-DD[ hh:mm:ss[.fraction]][ ±zz[:]zz]`, years also with two digits.
///
/// Git needs this for diffs whose tab became spaces: only then does a space not belong to the name.
pub(super) fn len(text: &[u8]) -> usize {
    let head = without_suffix(text, " sdddd").or_else(|| without_suffix(text, " sdd:dd")).unwrap_or(text);
    let head = without_time(head).unwrap_or(head);
    let Some(head) = without_suffix(head, "dd-dd-dd") else { return 0 };
    let head = without_suffix(head, "dd").unwrap_or(head);
    let name_len = match head.last() {
        Some(b'\t') => head.len() - 1,
        Some(b' ') => head.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
        _ => return 0,
    };
    text.len() - name_len
}

/// Returns true if the header line ends in the time stamp of the epoch, which some tools write for a file that doesn't
/// exist. The zone may be any.
pub(super) fn is_epoch(text: &[u8]) -> bool {
    let Some(line) = text.strip_suffix(b"\n") else { return false };
    let Some(tab) = memchr::memrchr(b'\t', line) else { return false };
    let stamp = &line[tab + 1..];
    let (minutes_before, rest) = if let Some(rest) = stamp.strip_prefix(b"1970-01-01 ") {
        (0, rest)
    } else if let Some(rest) = stamp.strip_prefix(b"1969-12-31 ") {
        (24 * 60, rest)
    } else {
        return false;
    };
    minutes_of_day_in_utc(rest) == Some(minutes_before)
}

/// `hh:mm:00[.0…] ±zz[:]zz` as minutes, the zone taken off.
fn minutes_of_day_in_utc(text: &[u8]) -> Option<i32> {
    let space = memchr::memchr(b' ', text)?;
    let (clock, zone) = (&text[..space], &text[space + 1..]);
    let whole = match clock.iter().rposition(|&byte| byte != b'0') {
        Some(dot) if clock[dot] == b'.' && dot + 1 < clock.len() => &clock[..dot],
        _ => clock,
    };
    if without_suffix(whole, "dd:dd:dd") != Some(b"") || &whole[6..] != b"00" {
        return None;
    }
    let is_zone = without_suffix(zone, "sdddd") == Some(b"") || without_suffix(zone, "sdd:dd") == Some(b"");
    let (hours, minutes) = (two_digits(&whole[..2]), two_digits(&whole[3..5]));
    if !is_zone {
        return None;
    }
    let (zone_hours, zone_minutes) = (two_digits(&zone[1..3]), two_digits(&zone[zone.len() - 2..]));
    if hours > 29 || minutes > 59 || zone_hours > 29 || zone_minutes > 59 {
        return None;
    }
    let ahead = zone_hours * 60 + zone_minutes;
    Some(hours * 60 + minutes - if zone[0] == b'-' { -ahead } else { ahead })
}

fn two_digits(text: &[u8]) -> i32 {
    text.iter().fold(0, |value, digit| value * 10 + i32::from(digit - b'0'))
}

/// Cuts off ` hh:mm:ss`, with or without a fraction.
fn without_time(text: &[u8]) -> Option<&[u8]> {
    const TIME: &str = " dd:dd:dd";
    without_suffix(text, TIME).or_else(|| {
        let point = text.iter().rposition(|byte| !byte.is_ascii_digit())?;
        let has_fraction = text[point] == b'.' && point + 1 < text.len();
        if has_fraction { without_suffix(&text[..point], TIME) } else { None }
    })
}

/// Cuts off what `pattern` matches: `d` is a digit, `s` a sign, anything else itself.
fn without_suffix<'a>(text: &'a [u8], pattern: &str) -> Option<&'a [u8]> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(pattern.len())?)?;
    let fits = tail.iter().zip(pattern.bytes()).all(|(&byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        b's' => matches!(byte, b'+' | b'-'),
        literal => byte == literal,
    });
    fits.then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stamp_is_cut_off_with_its_separator() {
        let stamps = [
            "\t2010-07-05 19:41:17.620000023 -0500",
            " 2010-07-05 19:41:17.620000023 -0500",
            "   2010-07-05 19:41:17 -05:00",
            " 2010-07-05",
            " 2010-07-05 19:41:17",
            " 10-07-05 19:41:17 +0000",
            "\t2010-07-05 +0000",
        ];
        for stamp in stamps {
            assert_eq!(len(format!("a/x{stamp}").as_bytes()), stamp.len(), "{stamp:?}");
        }
    }

    #[test]
    fn text_resembling_a_time_stamp_is_part_of_the_name() {
        for name in [
            "x 19:41:17",
            "x 2010-07-05 19:41",
            "x Mon Jul  5 19:41:17 2010",
            "x2010-07-05",
            "x 2010-7-5",
            "x",
        ] {
            assert_eq!(len(name.as_bytes()), 0, "{name:?}");
        }
    }

    #[test]
    fn epoch_time_stamp_is_recognized_in_every_time_zone() {
        for stamp in [
            "1970-01-01 00:00:00 +0000",
            "1970-01-01 00:00:00.000000000 +0000",
            "1969-12-31 19:00:00 -0500",
            "1970-01-01 05:30:00 +05:30",
            "1969-12-31 24:00:00 +0000",
        ] {
            assert!(is_epoch(format!("a/x\t{stamp}\n").as_bytes()), "{stamp:?}");
        }
        for stamp in [
            "1970-01-01 00:00:01 +0000",
            "1970-01-01 00:00:00 +0100",
            "1970-01-01 00:00:00",
            "1970-01-01 00:00:00. +0000",
            "1970-01-01 00:00:00 +0000\r",
            "1971-01-01 00:00:00 +0000",
            "1970-01-01 30:00:00 +3000",
        ] {
            assert!(!is_epoch(format!("a/x\t{stamp}\n").as_bytes()), "{stamp:?}");
        }
    }
}
