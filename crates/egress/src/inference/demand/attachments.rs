//! Files and images in a request: a few bytes of one may be many tokens.

use super::{Elements, Members};
use aho_corasick::AhoCorasick;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::sync::LazyLock;

/// More tokens than a provider charges for one image or one small document: the most that is known is 48,169, for an image in
/// full detail at a small model.
const OF_EACH: u64 = 50_000;

/// How the content of an attachment begins or is announced, where providers take it in a request. A quote within a text is escaped.
const SIGNS: [&str; 3] = ["\"data:", "\"base64\"", "\"file_data\""];

/// Escapes of letters, which could hide one of these; no client writes any.
const ESCAPED_LETTERS: [&str; 4] = ["\\u004", "\\u005", "\\u006", "\\u007"];

static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder().ascii_case_insensitive(true).build(SIGNS.iter().chain(&ESCAPED_LETTERS)).ok()
});

/// What is added to the bytes of a request.
pub(super) fn allowance(body: &[u8], members: &Members<'_>) -> u64 {
    // One that can't be looked for could be everywhere.
    let found = FINDER.as_ref().map_or(body.len(), |finder| {
        finder.find_iter(body).filter(|sign| !is_in_text(body, sign.start())).count()
    });
    let images = members.read::<Elements>("images").map_or(0, |elements| elements.count);
    let in_messages = of_messages(members);
    (found as u64).saturating_add(images).saturating_add(in_messages).saturating_mul(OF_EACH)
}

/// Whether a quote there is escaped, and so within a text.
fn is_in_text(body: &[u8], at: usize) -> bool {
    body.get(at) == Some(&b'"') && at.checked_sub(1).and_then(|before| body.get(before)) == Some(&b'\\')
}

/// An element of `messages`, of which only its images count.
#[derive(Deserialize)]
struct Message {
    images: Option<Elements>,
}

/// The images of all of them. They are never held as one list.
struct Images(u64);

/// Images of Ollama's messages.
fn of_messages(members: &Members<'_>) -> u64 {
    members.read::<Images>("messages").map_or(0, |images| images.0)
}

impl<'de> Deserialize<'de> for Images {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Images;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Images, A::Error> {
                let mut count: u64 = 0;
                while let Some(message) = array.next_element::<Message>()? {
                    count = count.saturating_add(message.images.map_or(0, |images| images.count));
                }
                Ok(Images(count))
            }
        }
        deserializer.deserialize_seq(Reader)
    }
}
