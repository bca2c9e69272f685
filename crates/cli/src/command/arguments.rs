//! The arguments of a call, shown to a person: all of them.

use crate::output::{Untrusted, UntrustedLines};
use belljar_policy::untrusted;
use serde_json::Value;
use std::fmt::Write as _;

/// The rows that show arguments: their JSON on one line, its length and digest, then each text of several lines as a block.
pub(super) fn rows(arguments: &Value, (bytes, sha256, is_preview): (u64, &str, bool)) -> String {
    let mut text = String::new();
    let json = match arguments {
        // The beginning of a JSON text.
        Value::String(beginning) if is_preview => beginning.clone(),
        whole => whole.to_string(),
    };
    // Writing to a String can't fail.
    let _ = writeln!(text, "  {:<12} {}", "arguments", untrusted::json(&json).replace('\n', "\\n"));
    let length = if bytes == 0 { String::new() } else { format!("{bytes} bytes, ") };
    let _ = writeln!(text, "  {:<12} {length}sha256:{}", "digest", Untrusted(sha256));
    if is_preview {
        let _ = writeln!(text, "  {:<12} these are not all of the arguments", "preview");
    } else {
        blocks(arguments, "", &mut text);
    }
    text
}

/// Each text of several lines, below its place.
fn blocks(value: &Value, place: &str, into: &mut String) {
    match value {
        Value::String(text) if text.trim_end_matches('\n').contains('\n') => {
            let lines: Vec<_> = text.split('\n').collect();
            let _ = writeln!(into, "  {} ({} lines)", Untrusted(place), lines.len());
            for line in lines {
                let _ = writeln!(into, "    | {}", UntrustedLines(line));
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| blocks(item, &format!("{place}/{at}"), into));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| blocks(member, &format!("{place}/{name}"), into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn call_arguments_are_shown_in_full_and_multiline_texts_again_as_lines() {
        let blanks = " ".repeat(300);
        let given = json!({ "argv": [format!("echo{blanks}; evil")], "code": "import os\n\u{202e}x = 1\r" });
        let shown = rows(&given, (400, "abc", false));
        let expected = format!(
            "  arguments    {{\"argv\":[\"echo{blanks}; evil\"],\"code\":\"import os\\n\\u202ex = 1\\r\"}}\n  digest       400 bytes, sha256:abc\n  \
             /code (2 lines)\n    | import os\n    | \\u{{202e}}x = 1\\u{{d}}\n"
        );
        assert_eq!(shown, expected);
        let preview = rows(&json!("{\"a\":\"x… (9 of 20 bytes)"), (20, "abc", true));
        assert!(preview.contains("  preview      these are not all"), "{preview}");
    }
}
