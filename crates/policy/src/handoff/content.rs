//! Compiled content: no review shows what such a file does, and its name alone doesn't reveal it.

/// Number of bytes at the beginning of a file that decide whether it is compiled.
pub const TELLING_BYTES: usize = 64;

/// Magic numbers of compiled files.
const BEGINNINGS: [&[u8]; 22] = [
    b"\x7fELF",
    // macOS in both byte orders, for one architecture and for several; the last are also those of Java classes.
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xca\xfe\xba\xbf",
    b"\xca\xfe\xd0\x0d",
    // Object archives.
    b"!<arch>\n",
    b"!<thin>\n",
    b"<bigaf>\n",
    // WebAssembly, LLVM, Android.
    b"\0asm",
    b"BC\xc0\xde",
    b"\xde\xc0\x17\x0b",
    b"dex\n0",
    // Lua, LuaJIT, Emacs, Julia, Ruby, MATLAB.
    b"\x1bLua",
    b"\x1bLJ",
    b";ELC",
    b"\xfbjli",
    b"YARB",
    b"v01.00v00.00",
    b"v00.00v00.00",
];

/// Returns true if a content begins like one that is compiled for a machine or an interpreter. Takes up to [`TELLING_BYTES`] of
/// it.
pub fn is_compiled(begin: &[u8]) -> bool {
    let is_known = BEGINNINGS.iter().any(|beginning| begin.starts_with(beginning));
    // Texts may begin with these letters, too.
    let is_windows = begin.starts_with(b"MZ") && begin.contains(&0);
    // After the version number.
    let is_python = begin.get(2..4) == Some(b"\r\n") && begin.contains(&0);
    let is_erlang = begin.starts_with(b"FOR1") && begin.get(8..12) == Some(b"BEAM");
    is_known || is_windows || is_python || is_erlang
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_and_scripts_are_recognised_by_their_first_bytes() {
        let begin = |text: &[u8]| [text, &[0; 60][..]].concat();
        for code in [
            &b"\x7fELF\x02\x01\x01"[..],
            b"MZ\x90",
            b"\xca\xfe\xba\xbe",
            b"!<arch>\n",
            b"\0asm\x01",
            b"\xa7\x0d\x0d\x0a",
            b"\x2b\x0e\x0d\x0a",
            b"FOR1\0\0\x04\x10BEAM",
            b"\x1bLuaT",
            b"\x1bLJ\x02",
        ] {
            assert!(is_compiled(&begin(code)), "{code:?}");
        }
        for other in [
            &b""[..],
            b"M",
            b"#!/bin/sh\n",
            b"MZ is a set of letters\r\n",
            b"ab\r\ncd",
            b"PK\x03\x04",
            b"\x89PNG\r\n\x1a\n\0",
            b"\xff\xd8\xff\xe0\0",
            b"FOR1\0\0\x04\x10AIFF",
            b"%PDF-1.7\n",
            b"{}",
        ] {
            assert!(!is_compiled(other), "{other:?}");
        }
    }
}
