//! Redacts output of git or of a server before it is repeated: no secrets, no control characters, limited length.

/// Maximum length of redacted output.
const LONGEST: usize = 512;

/// Prefixes of tokens of common forges.
const TOKENS: [&str; 12] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glcbt-",
    "ATBB",
    "xoxb-",
    "sk-",
];

/// Names that precede a secret.
const NAMES: [&str; 9] =
    ["password", "passwd", "token", "secret", "bearer", "basic", "api_key", "apikey", "private-token"];

/// Returns the text without users, passwords and tokens.
pub fn redact(text: &str) -> String {
    let plain: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let mut hides_next = false;
    let words: Vec<String> = plain
        .split(' ')
        .map(|word| {
            let hidden = hides_next && !word.is_empty();
            if !word.is_empty() {
                hides_next = is_name(word);
            }
            if hidden && !is_name(word) { "***".to_owned() } else { redact_word(word) }
        })
        .collect();
    let joined = words.join(" ");
    joined[..joined.floor_char_boundary(LONGEST)].trim().to_owned()
}

/// Returns true if a secret follows: `Authorization: Basic …`, `token: …`.
fn is_name(word: &str) -> bool {
    let folded = word.to_ascii_lowercase();
    let bare = folded.trim_matches(|char: char| !char.is_ascii_alphanumeric());
    NAMES.contains(&bare) && (folded.ends_with([':', '=']) || matches!(bare, "bearer" | "basic"))
        || bare == "authorization"
}

fn redact_word(word: &str) -> String {
    if let Some(start) = TOKENS.iter().filter_map(|token| word.find(token)).min() {
        return format!("{}***", &word[..start]);
    }
    let folded = word.to_ascii_lowercase();
    for name in NAMES {
        for mark in ["=", ":", "%3d"].map(|mark| format!("{name}{mark}")) {
            // If nothing follows in this word, the next word is the secret.
            if let Some(end) = folded.find(&mark).map(|at| at + mark.len()).filter(|end| *end < word.len()) {
                return format!("{}***", &word[..end]);
            }
        }
    }
    without_users(word)
}

/// Removes the user and the password from `scheme://user:password@host`.
fn without_users(word: &str) -> String {
    let (mut rest, mut out) = (word, String::new());
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(['/', '?', '#', '\'', '"']).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => {
                out.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted_from_git_output() {
        for (said, repeated) in [
            (
                "fatal: https://user:pw@example.com/a: not found",
                "fatal: https://***@example.com/a: not found",
            ),
            ("fatal: 'https://p%40w@h/x' https://a@b/", "fatal: 'https://***@h/x' https://***@b/"),
            ("Authorization: Basic dXNlcjpwdw==", "Authorization: Basic ***"),
            ("authorization: bearer abc.def", "authorization: bearer ***"),
            ("PRIVATE-TOKEN: abc", "PRIVATE-TOKEN: ***"),
            ("error at /x?access_token=abc&y=1", "error at /x?access_token=***"),
            ("your token ghp_0123456789 is wrong", "your token *** is wrong"),
            ("x-glpat-abc", "x-***"),
            ("password=abc def", "password=*** def"),
            ("a\x1b[31mb\r\nc", "a [31mb  c"),
            ("fatal: couldn't find remote ref x", "fatal: couldn't find remote ref x"),
        ] {
            assert_eq!(redact(said), repeated);
            assert_eq!(redact(repeated), repeated, "what is redacted stays as it is");
        }
        assert_eq!(redact(&"é".repeat(1000)).len(), 512);
    }
}
