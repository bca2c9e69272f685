//! The local paths that a value of a document names, as a path or as a URI of a file, a socket or a database.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// URIs of which all that stands behind the scheme is a path.
const OF_PATHS: [&str; 4] = ["file", "unix", "syslog", "sqlite"];

/// URIs of HTTP by a socket, whose path stands escaped in place of the host.
const OF_HTTP: [&str; 2] = ["http+unix", "https+unix"];

/// URIs of servers that may be reached by a socket in a directory.
const OF_POSTGRES: [&str; 2] = ["postgres", "postgresql"];

/// The absolute paths that a value names.
pub(super) fn paths(text: &str) -> Vec<PathBuf> {
    if text.starts_with('/') {
        return vec![PathBuf::from(text)];
    }
    let Some((scheme, rest)) = text.split_once(':') else { return Vec::new() };
    let scheme = scheme.to_ascii_lowercase();
    let is = |schemes: &[&str]| schemes.contains(&scheme.as_str());
    if is(&OF_PATHS) {
        of_path(rest)
    } else if is(&OF_HTTP) {
        of_http(rest)
    } else if is(&OF_POSTGRES) {
        of_postgres(rest)
    } else {
        Vec::new()
    }
}

/// `/PATH` as it stands, `///PATH` and `//HOST/PATH`. Readers differ in whether they unescape and whether a query can follow, so each
/// reading counts.
fn of_path(rest: &str) -> Vec<PathBuf> {
    let below = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default(),
        None => rest,
    };
    let without_query = before(below, '?');
    let mut paths = vec![PathBuf::from(below), PathBuf::from(without_query), unescaped(without_query)];
    paths.dedup();
    absolute(paths)
}

/// `//%2Frun%2Fengine.sock/v1` or `///run/engine.sock`.
fn of_http(rest: &str) -> Vec<PathBuf> {
    let rest = rest.trim_start_matches('/');
    match rest.to_ascii_lowercase().starts_with("%2f") {
        true => absolute(vec![unescaped(before(rest, '/'))]),
        false => vec![PathBuf::from(format!("/{rest}"))],
    }
}

/// `//%2Frun%2Fpostgresql/db` or `///db?host=/run/postgresql`.
fn of_postgres(rest: &str) -> Vec<PathBuf> {
    let (server, query) = rest.split_once('?').unwrap_or((rest, ""));
    let server = server.strip_prefix("//").unwrap_or(server);
    let host = before(server, '/').rsplit('@').next().unwrap_or_default();
    let hosts = query.split('&').filter_map(|part| part.strip_prefix("host=")).chain([host]);
    absolute(hosts.flat_map(|host| host.split(',')).map(unescaped).collect())
}

fn before(text: &str, end: char) -> &str {
    text.split(end).next().unwrap_or_default()
}

fn absolute(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.retain(|path| path.is_absolute());
    paths
}

fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<String> {
        paths(text).into_iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn every_local_path_syntax_is_recognised() {
        for text in [
            "/w/a",
            "file:/w/a",
            "file:///w/a",
            "FILE://localhost/w/a",
            "unix:/w/a",
            "unix:///w/a",
            "syslog:/w/a",
            "sqlite:/w/a",
            "http+unix://%2Fw%2fa/v1",
            "http+unix:///w/a",
            "postgres://u@%2Fw%2Fa/db",
            "postgresql:///db?user=u&host=/w/a",
            "postgresql:///db?host=%2Fw%2Fa&user=u",
        ] {
            assert_eq!(named(text), ["/w/a"], "{text}");
        }
        assert_eq!(named("sqlite:///w/a?mode=ro"), ["/w/a?mode=ro", "/w/a"]);
        assert_eq!(named("unix:/w/a%20b"), ["/w/a%20b", "/w/a b"]);
        assert_eq!(named("postgres://a.example,%2Fw%2Fa/db"), ["/w/a"]);
    }

    #[test]
    fn names_of_hosts_and_other_texts_are_no_paths() {
        for text in
            ["w/a", "s3://w/a", "https://a.example/w/a", "postgres://a.example/w/a", "file:w/a", "a: /w"]
        {
            assert_eq!(named(text), [""; 0], "{text}");
        }
    }
}
