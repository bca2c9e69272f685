//! Looks through what is said, piece by piece: a document of a hostile hand is never held as one, which would take many
//! times the memory of its text.

use super::{REACHES_OUT, STORED};
use crate::inference::members::Name;
use crate::inference::refusal::Refusal;
use crate::searcher::Searcher;
use aho_corasick::AhoCorasick;
use belljar_contract::inference::Excerpt;
use memchr::memmem::Finder;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::LazyLock;

/// Nearly every text has none of these, and needn't be taken apart. Some providers go by names whatever their case; of long
/// names a part is enough.
static SIGNS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let signs = ["_url\"", "\"url\"", "_id\"", "_ids\"", "m_ref", "e_dat"];
    Searcher::new(&signs.iter().flat_map(|sign| in_every_case(sign)).collect::<Vec<_>>())
});

/// The same, each as a whole, with what could hide one of them. Slower, and needed where a part was found.
static WHOLE_SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let signs = ["_url\"", "\"url\"", "_id\"", "_ids\"", "item_reference", "file_data", ESCAPE];
    AhoCorasick::builder().ascii_case_insensitive(true).build(signs).ok()
});

const ESCAPE: &str = "\\u";
static ESCAPES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(ESCAPE));

fn in_every_case(text: &str) -> Vec<String> {
    text.chars().fold(vec![String::new()], |all, next| {
        let cases = [next.to_ascii_lowercase(), next.to_ascii_uppercase()];
        let cases = if cases[0] == cases[1] { &cases[..1] } else { &cases[..] };
        all.iter().flat_map(|begun| cases.iter().map(move |case| format!("{begun}{case}"))).collect()
    })
}

/// Looks through one member of a request.
pub(super) fn check(name: &str, text: &str) -> Result<(), Refusal> {
    let has_none = |signs: &Searcher| signs.find(text.as_bytes()).is_none();
    if SIGNS.as_ref().is_some_and(has_none) && ESCAPES.find(text.as_bytes()).is_none() {
        return Ok(());
    }
    if WHOLE_SIGNS.as_ref().is_some_and(|signs| !signs.is_match(text)) {
        return Ok(());
    }
    walk(name, text, false)
}

/// Looks through what is to become numbers: some providers fetch a text that is nothing but an address.
pub(super) fn check_embedded(name: &str, text: &str) -> Result<(), Refusal> {
    walk(name, text, true)
}

fn walk(name: &str, text: &str, texts_are_fetched: bool) -> Result<(), Refusal> {
    let mut walk = Walk { path: vec![Step::Member(Cow::Borrowed(name))], found: None, texts_are_fetched };
    let mut reader = serde_json::Deserializer::from_str(text);
    let walked = (&mut walk).deserialize(&mut reader).and_then(|_| reader.end());
    match (walk.found, walked) {
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(Refusal::not_json(&error)),
        (None, Ok(())) => Ok(()),
    }
}

/// A walk through a document.
struct Walk<'t> {
    path: Vec<Step<'t>>,
    found: Option<Refusal>,
    texts_are_fetched: bool,
}

/// One step down.
enum Step<'t> {
    Member(Cow<'t, str>),
    Element(usize),
}

/// What must be known of a value by whoever has it as a member.
#[derive(Clone, Copy, Default)]
struct Looks {
    is_null: bool,
    /// Text that is fetched: anything but what holds its content itself.
    is_address: bool,
    has_scheme: bool,
    says_url: bool,
    says_item_reference: bool,
    /// An object whose `url` is an address.
    has_address: bool,
}

/// What the members of one object say together.
#[derive(Default)]
struct Together {
    says_url: bool,
    has_address: bool,
}

const FOUND: &str = "refused";

// === impl Walk ===

impl<'t> Walk<'t> {
    fn refuse<E: Error>(&mut self, why: &'static str) -> E {
        let mut member = String::new();
        for (at, step) in self.path.iter().enumerate() {
            // Writing to a text can't fail.
            let _ = match step {
                Step::Member(name) if at == 0 => write!(member, "{name}"),
                Step::Member(name) => write!(member, ".{name}"),
                Step::Element(at) => write!(member, "[{at}]"),
            };
        }
        self.found = Some(Refusal::Forbidden { member: Excerpt::of(&member), why });
        E::custom(FOUND)
    }

    /// A member, whose name was read.
    fn member<A: MapAccess<'t>>(
        &mut self,
        map: &mut A,
        name: Cow<'t, str>,
        together: &mut Together,
    ) -> Result<(), A::Error> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        // What a tool was called with is nothing but words: nobody goes there.
        if is("input") || is("arguments") {
            return map.next_value::<IgnoredAny>().map(drop);
        }
        let is_url = is("url");
        let is_type = is("type");
        let (names_address, names_stored) = (ends_with(&name, "_url"), is_stored(&name));
        let is_file_data = is("file_data");
        self.path.push(Step::Member(name));
        let looks = map.next_value_seed(&mut *self)?;
        if (names_address && (looks.is_address || looks.has_address)) || (is_file_data && looks.has_scheme) {
            return Err(self.refuse(REACHES_OUT));
        }
        if (names_stored && !looks.is_null) || (is_type && looks.says_item_reference) {
            return Err(self.refuse(STORED));
        }
        together.has_address |= is_url && looks.is_address;
        together.says_url |= is_type && looks.says_url;
        self.path.pop();
        Ok(())
    }
}

impl<'t> DeserializeSeed<'t> for &mut Walk<'t> {
    type Value = Looks;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Looks, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for &mut Walk<'t> {
    type Value = Looks;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Looks, E> {
        Ok(Looks { is_null: true, ..Looks::default() })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Looks, E> {
        Ok(Looks::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Looks, E> {
        Ok(Looks::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Looks, E> {
        Ok(Looks::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Looks, E> {
        Ok(Looks::default())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Looks, E> {
        if self.texts_are_fetched && text.contains("://") && !text.contains(char::is_whitespace) {
            return Err(self.refuse(REACHES_OUT));
        }
        Ok(Looks {
            is_address: !text.starts_with("data:"),
            has_scheme: text.contains("://"),
            says_url: text == "url",
            says_item_reference: text == "item_reference",
            ..Looks::default()
        })
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut elements: A) -> Result<Looks, A::Error> {
        for at in 0.. {
            self.path.push(Step::Element(at));
            let looked_at = elements.next_element_seed(&mut *self)?;
            self.path.pop();
            if looked_at.is_none() {
                break;
            }
        }
        Ok(Looks::default())
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Looks, A::Error> {
        let mut together = Together::default();
        while let Some(Name(name)) = map.next_key()? {
            self.member(&mut map, name, &mut together)?;
        }
        // Anthropic's sources: {"type": "url", "url": ...}, in either order.
        if together.says_url && together.has_address {
            self.path.push(Step::Member(Cow::Borrowed("url")));
            return Err(self.refuse(REACHES_OUT));
        }
        Ok(Looks { has_address: together.has_address, ..Looks::default() })
    }
}

fn ends_with(name: &str, end: &str) -> bool {
    let at = name.len().checked_sub(end.len());
    at.and_then(|at| name.get(at..)).is_some_and(|own| own.eq_ignore_ascii_case(end))
}

fn is_stored(name: &str) -> bool {
    ["file_id", "vector_store_ids", "container_id"].iter().any(|stored| name.eq_ignore_ascii_case(stored))
}
