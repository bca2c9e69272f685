//! Tests of the forms in which a secret is found: whole, in pieces, cut and escaped.

use super::*;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

const KEY: &str = "sk-proj-4f/Q+9aB7_z-Kd82";

fn forms() -> SecretForms {
    SecretForms::of(Some(&Secret::parse(KEY).unwrap()))
}

/// Returns what passes before the secret is found, if the bytes come in pieces of that size.
fn passed(bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let forms = forms();
    let (mut watch, mut seen, mut out) = (forms.watch(), Vec::new(), 0);
    for piece in bytes.chunks(piece.max(1)) {
        seen.extend_from_slice(piece);
        let Some(held) = watch.see(piece) else { return (seen[..out].to_vec(), true) };
        out = out.max(seen.len().saturating_sub(held));
    }
    (seen, false)
}

#[test]
fn leak_scan_finds_secret_in_hex_and_base64_for_any_read_sizes() {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![KEY.to_owned(), hex.to_uppercase(), hex];
    for before in ["", "a", "ab", "Bearer ", "user:"] {
        for after in ["", "x", "xy"] {
            let text = format!("{before}{KEY}{after}");
            all.extend([STANDARD.encode(&text), URL_SAFE.encode(&text), STANDARD_NO_PAD.encode(&text)]);
        }
    }
    for text in all {
        let bytes = format!("{{\"error\":\"you sent {text} and that is wrong\"}}").into_bytes();
        for piece in [1, 2, 3, 5, 8, 13, 21, 34, 55, 89] {
            let (out, is_found) = passed(&bytes, piece);
            assert!(is_found, "{text} in pieces of {piece}");
            let before = memchr::memmem::find(&bytes, &text.as_bytes()[..4]).unwrap();
            // A few characters before a core in base64 also occur in texts without the secret.
            assert!(out.len() <= before + 12, "{} of {text} passed", out.len() - before);
        }
    }
}

#[test]
fn leak_scan_finds_secret_with_url_json_and_html_escapes() {
    let odd = "ab~cd:ef^gh|ij%kl\"m\\n/o&p<q>r'1+234";
    let forms = SecretForms::of(Some(&Secret::parse(odd).unwrap()));
    for written in [
        "ab~cd%3Aef%5Egh%7Cij%25kl%22m%5Cn%2Fo%26p%3Cq%3Er%271%2B234",
        "ab~cd%3aef%5egh%7cij%25kl%22m%5cn%2fo%26p%3cq%3er%271%2b234",
        "ab~cd:ef^gh|ij%kl\\\"m\\\\n/o&p<q>r'1+234",
        "ab~cd:ef^gh|ij%kl\\\"m\\\\n\\/o&p<q>r'1+234",
        "ab~cd:ef^gh|ij%kl\"m\\n/o&amp;p&lt;q&gt;r'1+234",
        "ab~cd:ef^gh|ij%kl&quot;m\\n/o&amp;p&lt;q&gt;r&#39;1+234",
        "ab~cd:ef^gh|ij%kl&#34;m\\n/o&amp;p&lt;q&gt;r&#39;1&#43;234",
    ] {
        assert!(forms.are_told_by(format!("it is {written}, no?").as_bytes()), "{written}");
    }
    assert!(!forms.are_told_by(b"it is ab~cd, no?"));
}

#[test]
fn leak_scan_finds_secret_with_mixed_and_nested_escapes() {
    let secret = "Zm9v+YmFy/cXV4=Kx8_z-1";
    let forms = SecretForms::of(Some(&Secret::parse(secret).unwrap()));
    let each = |write: fn(u8) -> String| secret.bytes().map(write).collect::<String>();
    let mut all = vec![
        each(|byte| format!("\\u00{byte:02X}")),
        each(|byte| format!("\\u00{byte:02x}")),
        each(|byte| format!("\\\\u00{byte:02x}")),
        each(|byte| format!("\\x{byte:02X}")),
        each(|byte| format!("\\u{{{byte:x}}}")),
        each(|byte| format!("%{byte:02X}")),
        each(|byte| format!("%25{byte:02x}")),
        each(|byte| format!("%u00{byte:02x}")),
        each(|byte| format!("&#x{byte:X};")),
        each(|byte| format!("&#X000{byte:x};")),
        each(|byte| format!("&#{byte:07};")),
        each(|byte| format!("&amp;#{byte};")),
        STANDARD.encode(secret).replace('=', "&#x3D;"),
    ];
    for (from, to) in [("+", "&#x2B;"), ("+", "&plus;"), ("+", "&#43"), ("/", "&#x2F;"), ("/", "&sol;")] {
        all.push(secret.replace(from, to));
        all.push(secret.replace(from, to).replace('=', "%3d").replace('_', "\\u005F"));
    }
    for written in all {
        let answer = format!("{{\"error\":\"it is {written} and no other\"}}");
        for piece in [1, 2, 3, 7, 1_000] {
            let mut watch = forms.watch();
            let (mut seen, mut out) = (0, 0);
            let is_found = answer.as_bytes().chunks(piece).any(|piece| {
                let held = watch.see(piece);
                seen += piece.len();
                out = out.max(seen.saturating_sub(held.unwrap_or(usize::MAX)));
                held.is_none()
            });
            assert!(is_found, "{written} in pieces of {piece}");
            assert!(out <= 16 + 8 * 9, "{out} bytes of {answer} have passed");
        }
        assert!(forms.are_in_lines(format!("x: {written}\ny: z\n").as_bytes()), "{written}");
        // The reported position is where the secret stands.
        let found = forms.all_in(answer.as_bytes());
        let of_whole = answer.find(&written).unwrap();
        let within = |range: &Range<usize>| {
            range.start >= of_whole
                && range.end <= of_whole + written.len()
                && range.len() * 2 > written.len()
        };
        assert!(found.iter().any(within), "{written}: {found:?}");
    }
    // Controls: another secret, invalid escapes, and a text that is full of escapes.
    for harmless in [
        "Zm9v&#x2C;YmFy&#x2F;cXV4=Kx8_z-1".to_owned(),
        "Zm9v&#x;+YmFx".to_owned(),
        "&#x2B;%2B\\u002b&plus;&amp;%zz\\q&#;&".repeat(99),
    ] {
        for piece in [1, 5, 1_000] {
            let mut watch = forms.watch();
            assert!(harmless.as_bytes().chunks(piece).all(|piece| watch.see(piece).is_some()), "{harmless}");
            assert!(!watch.ends_within());
        }
        assert!(forms.all_in(harmless.as_bytes()).is_empty(), "{harmless}");
    }
}

#[test]
fn leak_scan_finds_secret_that_itself_contains_escapes() {
    let secret = "ab%2Bcd&#43;ef\\u0041gh";
    let forms = SecretForms::of(Some(&Secret::parse(secret).unwrap()));
    for written in [
        secret.to_owned(),
        secret.replace('%', "%25"),
        secret.replace('&', "&amp;"),
        secret.replace('\\', "\\\\"),
        secret.replace('%', "&#x25;").replace('\\', "&bsol;"),
    ] {
        assert!(forms.are_told_by(format!("it is {written}, no?").as_bytes()), "{written}");
    }
}

#[test]
fn leak_scan_does_not_match_similar_texts() {
    let harmless = format!("{} {} sk-proj- {}", &KEY[..KEY.len() / 2 - 1], &KEY[1..], KEY.to_lowercase());
    assert!(!passed(harmless.as_bytes(), 3).1);
    assert_eq!(SecretForms::of(None).watch().see(KEY.as_bytes()), Some(0));
}

#[test]
fn leak_scan_detects_a_prefix_of_the_secret_at_the_end_of_an_answer() {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    for written in [KEY.to_owned(), hex, STANDARD_NO_PAD.encode(KEY)] {
        for (length, is_told) in
            [(0, false), (1, false), (5, false), (6, true), (7, true), (written.len() - 1, true)]
        {
            let answer = format!("you sent {}", &written[..length]);
            for piece in [1, 4, 1_000] {
                let forms = forms();
                let mut watch = forms.watch();
                let passes = answer.as_bytes().chunks(piece).all(|piece| watch.see(piece).is_some());
                assert_eq!(!passes || watch.ends_within(), is_told, "{answer}");
            }
            assert_eq!(forms().are_told_by(answer.as_bytes()), is_told, "{answer}");
            assert_eq!(
                forms().are_in_lines(format!("{answer}\nserver: x\n").as_bytes()),
                is_told,
                "{answer}"
            );
            // If something follows, a beginning counts from half of the form.
            let followed = format!("{answer}\"}}");
            let is_half = length >= written.len().div_ceil(2);
            assert_eq!(forms().are_told_by(followed.as_bytes()), is_half, "{followed}");
        }
    }
    // For a short secret, fewer characters occur by chance.
    let short = SecretForms::of(Some(&Secret::parse("12345678").unwrap()));
    assert!(short.are_told_by(b"it is 123") && !short.are_told_by(b"it is 12"));
}

#[test]
fn leak_scan_finds_half_of_the_secret_and_ignores_shorter_prefixes() {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    for written in [KEY.to_owned(), hex, STANDARD_NO_PAD.encode(KEY)] {
        for (length, is_told) in [(8, false), (written.len() / 2 - 1, false), (written.len() / 2, true)] {
            let answer = format!("{{\"you sent\":\"{}...\"}}", &written[..length]).into_bytes();
            for piece in [1, 3, 1_000] {
                assert_eq!(passed(&answer, piece).1, is_told, "{length} of {written} by {piece}");
            }
        }
    }
    // A short secret is found only if it is complete.
    let short = SecretForms::of(Some(&Secret::parse("12345678").unwrap()));
    assert!(short.are_told_by(b"it is 12345678.") && !short.are_told_by(b"it is 1234567."));
}

#[test]
fn leak_scan_joins_a_secret_split_over_stream_events() {
    let pieces = |cuts: &[usize], write: fn(&str) -> String| -> (Vec<u8>, bool) {
        let mut begin = 0;
        let mut events = String::from("data: {\"content\":\"it is \"}\n\n");
        for end in cuts.iter().copied().chain([KEY.len()]) {
            events.push_str(&write(&KEY[begin..end]));
            begin = end;
        }
        passed(events.as_bytes(), 40)
    };
    let plain = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let spaced =
        |text: &str| format!("data: {{\"type\": \"x\", \"text\" : \"{}\"}}\n\n", text.replace('/', "\\/"));
    let coded = |text: &str| {
        let text: String = text.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect();
        format!("data: {{\"delta\":\"{text}\"}}\n\n")
    };
    for write in [plain, spaced, coded] {
        for cuts in [&[9][..], &[1], &[4, 8, 12, 16, 20], &[23]] {
            let (out, is_found) = pieces(cuts, write);
            assert!(is_found, "{cuts:?}");
            let out = String::from_utf8(out).unwrap();
            assert!(!out.contains(&KEY[..8]) && out.matches("data").count() < 4, "{out}");
        }
    }
    // Control: a member of another name between the pieces is another text, and so is a missing piece.
    assert!(!passed(plain(&KEY[..9]).repeat(9).as_bytes(), 7).1);
}

#[test]
fn leak_scan_releases_held_events_that_only_begin_like_the_secret() {
    let forms = forms();
    let mut watch = forms.watch();
    let event = |text: &str| format!("data: {{\"content\":\"{text}\"}}\n\n");
    assert_eq!(watch.see(event("see sk-proj").as_bytes()), Some(usize::MAX));
    assert_eq!(watch.see(event(" and more").as_bytes()), Some(0));
}

proptest! {
    #[test]
    fn leak_scan_forwards_harmless_bytes_unchanged(bytes: Vec<u8>, piece in 1_usize..20) {
        prop_assert_eq!(passed(&bytes, piece), (bytes, false));
    }
}

/// Splits a text into lines of that length.
fn in_lines(text: &str, length: usize, end: &str) -> String {
    text.as_bytes().chunks(length).map(String::from_utf8_lossy).collect::<Vec<_>>().join(end)
}

#[test]
fn leak_scan_finds_base64_with_any_separators_at_any_offset() {
    for offset in 0..57 {
        let around = format!("{}{KEY} and more behind it", "p".repeat(offset));
        for encoded in [STANDARD.encode(&around), URL_SAFE.encode(&around)] {
            for (end, length) in [
                ("\r\n", 76),
                ("\n", 64),
                ("\n", 10),
                ("\\r\\n", 76),
                ("\\\\n", 7),
                ("%0D%0A", 76),
                ("&#10;", 20),
                ("&NewLine;", 20),
                (" \t", 4),
                ("\",\n  \"", 16),
                ("\u{200b}", 9),
            ] {
                let answer = format!("{{\"error\":[\"{}\"]}}", in_lines(&encoded, length, end));
                assert!(forms().are_told_by(answer.as_bytes()), "{answer}");
                // Byte by byte only at some of the offsets, because it takes long.
                for piece in if offset % 19 == 0 { &[1, 50][..] } else { &[50] } {
                    assert!(passed(answer.as_bytes(), *piece).1, "{answer} by {piece}");
                }
            }
        }
    }
}

#[test]
fn leak_scan_finds_separated_hex_digits_and_utf16() {
    let pairs =
        |write: fn(u8) -> String, between: &str| KEY.bytes().map(write).collect::<Vec<_>>().join(between);
    let wide = |bytes: fn(u16) -> [u8; 2]| KEY.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let mut all: Vec<Vec<u8>> = [" ", ":", "-", ", ", "\n", "\\n", "%3A", " \u{b7} "]
        .iter()
        .flat_map(|between| {
            [pairs(|byte| format!("{byte:02x}"), between), pairs(|byte| format!("{byte:02X}"), between)]
        })
        .chain([pairs(|byte| format!("0x{byte:02x}"), ", "), pairs(|byte| format!("0X{byte:02X}"), " ")])
        .chain([in_lines(KEY, 5, "\n"), in_lines(KEY, 3, "\\n"), in_lines(KEY, 1, " ")])
        .map(String::into_bytes)
        .collect();
    all.extend([wide(u16::to_le_bytes), wide(u16::to_be_bytes)]);
    all.push(KEY.chars().map(|one| format!("{one}\\u0000")).collect::<String>().into_bytes());
    for written in all {
        let answer = [b"you sent ", written.as_slice(), b" to us"].concat();
        for piece in [1, 7, 1_000] {
            let (out, is_found) = passed(&answer, piece);
            let text = String::from_utf8_lossy(&answer);
            assert!(is_found, "{text} by {piece}");
            assert!(out.len() < 9 + written.len() / 2, "{} of {text} have passed by {piece}", out.len());
        }
    }
    // The reported position is where the secret stands.
    let text = format!("it is {} no", in_lines(&STANDARD_NO_PAD.encode(KEY), 9, "\n"));
    let found = forms().all_in(text.as_bytes());
    assert_eq!(found, Vec::from([Range { start: 6, end: text.len() - 3 }]));
}

#[test]
fn leak_scan_forwards_text_full_of_separators_and_digits() {
    let noise: String =
        (0..40_000_u32).map(|at| format!("{:02x}", at.wrapping_mul(2_654_435_761) >> 24)).collect();
    let encoded = STANDARD.encode(noise.as_bytes());
    for harmless in
        [in_lines(&noise, 2, ":"), in_lines(&encoded, 76, "\r\n"), "0x00, ".repeat(9_999), "0".repeat(9_999)]
    {
        for piece in [7, 1_000] {
            let (out, is_found) = passed(harmless.as_bytes(), piece);
            assert!(!is_found && out == harmless.as_bytes());
        }
    }
}
