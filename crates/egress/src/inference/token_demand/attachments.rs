//! Files and images in a request: a few bytes may be many tokens.
//!
//! An image has a known maximum of tokens. A document, a recording or a video has none: a compressed one of a few bytes may
//! have any number of pages or hours. The largest context of a model limits all of those in one request together.
//!
//! They are counted in the decoded JSON, so an escaped letter, digit or colon can't hide one. Unreadable content is refused,
//! never counted as none.

use super::super::members::MemberName;
use super::{Elements, not_json};
use crate::inference::refusal::Refusal;
use aho_corasick::AhoCorasick;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::sync::LazyLock;

/// Upper bound of the tokens that a provider charges for one image. The known maximum is 48,169, in full detail at a small
/// model.
const OF_IMAGE: u64 = 50_000;

/// Signs of attachments. A request without any needn't be decoded. The last one can stand for any letter.
const SIGNS: [&str; 6] = ["data:", "base64", "file_data", "image", "input_audio", "\\u"];

/// Members whose value is the content of a file.
const FILES: [&str; 3] = ["base64", "file_data", "input_audio"];
/// Members that state the kind of the content beside them.
const KINDS: [&str; 5] = ["format", "media_type", "mediatype", "mime_type", "mimetype"];
const IMAGE: &str = "image/";

static FINDER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(SIGNS).ok());

/// Returns the tokens to add to the bytes of a request: for each image, and `file_tokens` if there are other files.
pub(super) fn allowance(body: &[u8], file_tokens: u64) -> Result<u64, Refusal> {
    if FINDER.as_ref().is_some_and(|finder| !finder.is_match(body)) {
        return Ok(0);
    }
    let mut count = AttachmentCount::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let walked =
        AttachmentWalk { place: RequestPosition::Request, count: &mut count }.deserialize(&mut reader);
    walked.and_then(|_| reader.end()).map_err(|error| not_json(&error.to_string()))?;
    let of_files = if count.has_files { file_tokens } else { 0 };
    Ok(count.images.saturating_mul(OF_IMAGE).saturating_add(of_files))
}

/// Attachments of a request.
#[derive(Default)]
struct AttachmentCount {
    images: u64,
    has_files: bool,
}

/// Properties of a value that the object around it needs to know.
#[derive(Clone, Copy, Default)]
struct AttachmentTraits {
    /// `base64`: there is content beside it.
    is_base64: bool,
    /// Content itself, which is counted.
    is_data_url: bool,
    /// Kind of content; true for an image.
    kind: Option<bool>,
}

/// Position of a value in a request, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestPosition {
    Request,
    /// Value of `messages`.
    Messages,
    /// Element of `messages`.
    Message,
    Elsewhere,
}

/// Walk through a value that counts its attachments.
struct AttachmentWalk<'c> {
    place: RequestPosition,
    count: &'c mut AttachmentCount,
}

// === impl RequestPosition ===

impl RequestPosition {
    /// Returns true if an object there may have images as a list of texts (Ollama's requests and messages).
    fn has_images(self) -> bool {
        matches!(self, Self::Request | Self::Message)
    }

    fn of_member(self, name: &str) -> Self {
        if self == Self::Request && is(name, "messages") { Self::Messages } else { Self::Elsewhere }
    }
}

/// Compares names without case. Go's decoder also takes the long s and the Kelvin sign for `s` and `k`.
fn is(name: &str, other: &str) -> bool {
    let folded = name.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    });
    folded.eq(other.chars())
}

/// Returns what follows `data:` in a text that begins with it, as URL parsers see it.
fn data_url(text: &str) -> Option<&str> {
    const SCHEME: &str = "data:";
    let text = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter.is_control());
    let (scheme, rest) = text.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(rest)
}

/// Statements of an object about its content.
#[derive(Default)]
struct ObjectStatements {
    is_base64: bool,
    has_data_url: bool,
    says_image: bool,
    says_other: bool,
}

fn is_image(kind: &str) -> bool {
    kind.get(..IMAGE.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(IMAGE))
}

// === impl AttachmentCount ===

impl AttachmentCount {
    fn add_images(&mut self, count: u64) {
        self.images = self.images.saturating_add(count);
    }

    fn add(&mut self, is_image: bool) {
        match is_image {
            true => self.add_images(1),
            false => self.has_files = true,
        }
    }
}

// === impl ObjectStatements ===

impl ObjectStatements {
    /// Adds a member, and the kind of content that it states.
    fn add(&mut self, looks: AttachmentTraits, kind: Option<bool>) {
        // `{"type": "base64"}` and `{"encoding": "base64"}` stand beside the content.
        self.is_base64 |= looks.is_base64;
        self.has_data_url |= looks.is_data_url;
        self.says_image |= kind == Some(true);
        self.says_other |= kind == Some(false);
    }

    /// Counts the content. Content that is declared as an image and as something else doesn't count as an image.
    fn count(self, count: &mut AttachmentCount) {
        if self.is_base64 {
            count.add(self.says_image && !self.says_other);
        } else if self.has_data_url && self.says_other {
            count.add(false);
        }
    }
}

// === impl AttachmentWalk ===

impl AttachmentWalk<'_> {
    fn inner(&mut self, place: RequestPosition) -> AttachmentWalk<'_> {
        AttachmentWalk { place, count: self.count }
    }
}

impl<'de> DeserializeSeed<'de> for AttachmentWalk<'_> {
    type Value = AttachmentTraits;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<AttachmentTraits, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AttachmentWalk<'_> {
    type Value = AttachmentTraits;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<AttachmentTraits, E> {
        Ok(AttachmentTraits::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<AttachmentTraits, E> {
        Ok(AttachmentTraits::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<AttachmentTraits, E> {
        Ok(AttachmentTraits::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<AttachmentTraits, E> {
        Ok(AttachmentTraits::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<AttachmentTraits, E> {
        Ok(AttachmentTraits::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<AttachmentTraits, E> {
        let data_url = data_url(text);
        if let Some(rest) = data_url {
            self.count.add(is_image(rest));
        }
        let kind = text.contains('/').then(|| is_image(text));
        Ok(AttachmentTraits { is_base64: is(text, "base64"), is_data_url: data_url.is_some(), kind })
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<AttachmentTraits, A::Error> {
        let place = if self.place == RequestPosition::Messages {
            RequestPosition::Message
        } else {
            RequestPosition::Elsewhere
        };
        let mut all = AttachmentTraits::default();
        while let Some(looks) = elements.next_element_seed(self.inner(place))? {
            all.is_base64 |= looks.is_base64;
            all.is_data_url |= looks.is_data_url;
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<AttachmentTraits, A::Error> {
        let (mut has_images, mut together) = (false, ObjectStatements::default());
        while let Some(MemberName(name)) = members.next_key()? {
            if self.place.has_images() && is(&name, "images") {
                if std::mem::replace(&mut has_images, true) {
                    return Err(A::Error::custom("duplicate member `images`"));
                }
                let images: Option<Elements> = members.next_value()?;
                self.count.add_images(images.map_or(0, |images| images.count));
                continue;
            }
            if FILES.iter().any(|file| is(&name, file)) {
                self.count.add(false);
            }
            let place = self.place.of_member(&name);
            let looks = members.next_value_seed(self.inner(place))?;
            let kind = looks.kind.filter(|_| KINDS.iter().any(|kind| is(&name, kind)));
            together.add(looks, kind);
        }
        together.count(self.count);
        Ok(AttachmentTraits::default())
    }
}
