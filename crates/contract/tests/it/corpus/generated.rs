//! Families of documents that follow a rule.

use belljar_contract::json::MAX_DEPTH;

/// Returns the valid documents of all families.
pub(super) fn valid() -> Vec<Vec<u8>> {
    let escapes = br#""\/bfnrt"#.iter().map(|escaped| vec![b'"', b'\\', *escaped, b'"']);
    let printable = (0x20..0x7f_u8).filter(|byte| !b"\"\\".contains(byte)).map(|byte| vec![b'"', byte, b'"']);
    // One member less than the limit leaves room for the levels of a job around it.
    let depths = [1, 2, 10, MAX_DEPTH - 5].map(|depth| nested(depth, b"[", b"", b"]"));
    let objects = [1, 2, 10, MAX_DEPTH - 5].map(|depth| nested(depth, b"{\"a\":", b"1", b"}"));
    let wide = [100, 10_000].map(|width| format!("[{}0]", "0,".repeat(width)).into_bytes());
    escapes.chain(printable).chain(depths).chain(objects).chain(wide).collect()
}

/// Returns the invalid documents of all families.
pub(super) fn invalid() -> Vec<Vec<u8>> {
    let raw_controls = (0..0x20_u8).map(|byte| vec![b'"', byte, b'"']);
    let escapes = (0..=0xff_u8)
        .filter(|byte| !br#""\/bfnrtu"#.contains(byte))
        .map(|byte| vec![b'"', b'\\', byte, b'"']);
    let lone_bytes = (0x80..=0xff_u8).map(|byte| vec![b'"', b'a', byte, b'a', b'"']);
    let punctuation = (0..0x80_u8)
        .filter(|byte| !byte.is_ascii_digit() && !b" \t\r\n".contains(byte))
        .map(|byte| vec![b'[', byte, b',', b'1', b']']);
    raw_controls.chain(escapes).chain(lone_bytes).chain(punctuation).chain(cuts()).chain(depths()).collect()
}

/// A document that ends too early, at every place where it can.
fn cuts() -> impl Iterator<Item = Vec<u8>> {
    const WHOLE: &[u8] = r#"{"a":[1.5e-3,true,null,"\u00e9\ud83d\ude00é😀"],"b":{"c":false}}"#.as_bytes();
    (0..WHOLE.len()).map(|length| WHOLE[..length].to_vec())
}

/// Returns documents that are nested too deep: closed, not closed, closed too often.
fn depths() -> Vec<Vec<u8>> {
    let mut documents = Vec::new();
    for depth in [MAX_DEPTH + 1, 128, 129, 500, 100_000] {
        documents.push(nested(depth, b"[", b"", b"]"));
        documents.push(nested(depth, b"{\"a\":", b"1", b"}"));
        documents.push(nested(depth, b"[{\"a\":", b"[]", b"}]"));
        documents.push(nested(depth, b"[", b"", b""));
        documents.push(nested(depth, b"{\"a\":", b"", b""));
        documents.push(nested(depth, b"", b"", b"]"));
    }
    documents
}

fn nested(depth: usize, open: &[u8], inside: &[u8], close: &[u8]) -> Vec<u8> {
    [open.repeat(depth).as_slice(), inside, &close.repeat(depth)].concat()
}
