//! Files and images in a request: a few bytes of one may be many tokens.
//!
//! They are counted in the decoded JSON: an escaped letter, digit or colon hides none. What can't be read is refused, never
//! counted as none.

use super::super::members::Name;
use super::{Elements, not_json};
use crate::inference::refusal::Refusal;
use aho_corasick::AhoCorasick;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::sync::LazyLock;

/// More tokens than a provider charges for one image or one small document: the most that is known is 48,169, for an image in
/// full detail at a small model.
const OF_EACH: u64 = 50_000;

/// A request with none of these has no attachment, and needn't be decoded. The last is how any letter may be written.
const SIGNS: [&str; 5] = ["data:", "base64", "file_data", "image", "\\u"];

static FINDER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(SIGNS).ok());

/// Tokens that are added to the bytes of a request.
pub(super) fn allowance(body: &[u8]) -> Result<u64, Refusal> {
    if FINDER.as_ref().is_some_and(|finder| !finder.is_match(body)) {
        return Ok(0);
    }
    let mut count = 0;
    let mut reader = serde_json::Deserializer::from_slice(body);
    let walked = Walk { place: Place::Request, count: &mut count }.deserialize(&mut reader);
    walked.and_then(|()| reader.end()).map_err(|error| not_json(&error.to_string()))?;
    Ok(count.saturating_mul(OF_EACH))
}

/// Where in a request a value stands, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Request,
    /// The value of `messages`.
    Messages,
    /// An element of `messages`.
    Message,
    Elsewhere,
}

/// A walk through a value, which counts the attachments in it.
struct Walk<'c> {
    place: Place,
    count: &'c mut u64,
}

// === impl Place ===

impl Place {
    /// Whether an object there may have images as a list of texts (Ollama's requests and messages).
    fn has_images(self) -> bool {
        matches!(self, Self::Request | Self::Message)
    }

    fn of_member(self, name: &str) -> Self {
        if self == Self::Request && is(name, "messages") { Self::Messages } else { Self::Elsewhere }
    }
}

/// Whether a name is another one in any case. Go's decoder takes the long s and the Kelvin sign for `s` and `k` as well.
fn is(name: &str, other: &str) -> bool {
    let folded = name.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    });
    folded.eq(other.chars())
}

/// Whether a text begins with `data:`, as those who read URLs see it.
fn is_data_url(text: &str) -> bool {
    const SCHEME: &str = "data:";
    let text = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter.is_control());
    text.get(..SCHEME.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(SCHEME))
}

// === impl Walk ===

impl Walk<'_> {
    fn add(&mut self, count: u64) {
        *self.count = self.count.saturating_add(count);
    }

    fn inner(&mut self, place: Place) -> Walk<'_> {
        Walk { place, count: self.count }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        // `{"type": "base64"}` and `{"encoding": "base64"}` stand beside the content.
        if is_data_url(text) || is(text, "base64") {
            self.add(1);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let place = if self.place == Place::Messages { Place::Message } else { Place::Elsewhere };
        while elements.next_element_seed(self.inner(place))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut has_images = false;
        while let Some(Name(name)) = members.next_key()? {
            if self.place.has_images() && is(&name, "images") {
                if std::mem::replace(&mut has_images, true) {
                    return Err(A::Error::custom("the member `images` is there twice"));
                }
                let images: Option<Elements> = members.next_value()?;
                self.add(images.map_or(0, |images| images.count));
                continue;
            }
            if is(&name, "file_data") || is(&name, "base64") {
                self.add(1);
            }
            let place = self.place.of_member(&name);
            members.next_value_seed(self.inner(place))?;
        }
        Ok(())
    }
}
