//! Walks through the content of a request piece by piece. A hostile document is never held as a tree, which would take many
//! times the memory of its text.

use super::{REACHES_OUT, STORED, tools};
use crate::inference::members::MemberName;
use crate::inference::refusal::Refusal;
use crate::searcher::Searcher;
use aho_corasick::AhoCorasick;
use belljar_contract::inference::Excerpt;
use memchr::memmem::Finder;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::LazyLock;

/// Signs of references. Nearly every text has none of them and needn't be parsed. Some providers ignore the case of names; for
/// long names a part is enough.
static SIGNS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let signs = ["_url\"", "\"url\"", "_id\"", "\"id\"", "_ids\"", "m_ref", "e_da", "t_au"];
    Searcher::new(&signs.iter().flat_map(|sign| in_every_case(sign)).collect::<Vec<_>>())
});

/// Sign of tools within content. It is a separate searcher, because all signs together are more than a vector register holds.
static TOOLS: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(&in_every_case("tools\"")));

/// All signs as complete names, with what could hide one of them. This search is slower; it runs if a partial sign was found.
static WHOLE_SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let signs = [
        "_url\"",
        "\"url\"",
        "_id\"",
        "\"id\"",
        "_ids\"",
        "item_reference",
        "file_data",
        "input_audio",
        "tools\"",
        ESCAPE,
    ];
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

/// Checks one member of a request.
pub(super) fn check(name: &str, text: &str) -> Result<(), Refusal> {
    let has_none = |signs: &Searcher| signs.find(text.as_bytes()).is_none();
    let has_no_sign = [&SIGNS, &TOOLS].iter().all(|signs| signs.as_ref().is_some_and(has_none));
    if has_no_sign && ESCAPES.find(text.as_bytes()).is_none() {
        return Ok(());
    }
    if WHOLE_SIGNS.as_ref().is_some_and(|signs| !signs.is_match(text)) {
        return Ok(());
    }
    walk(name, text, false)
}

/// Checks input that is to be embedded: some providers fetch a text that consists of a URL.
pub(super) fn check_embedded(name: &str, text: &str) -> Result<(), Refusal> {
    walk(name, text, true)
}

fn walk(name: &str, text: &str, texts_are_fetched: bool) -> Result<(), Refusal> {
    let mut walk =
        ContentWalk { path: vec![PathStep::Member(Cow::Borrowed(name))], found: None, texts_are_fetched };
    let mut reader = serde_json::Deserializer::from_str(text);
    let walked = (&mut walk).deserialize(&mut reader).and_then(|_| reader.end());
    match (walk.found, walked) {
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(Refusal::not_json(&error)),
        (None, Ok(())) => Ok(()),
    }
}

/// Walk through a JSON document.
struct ContentWalk<'t> {
    path: Vec<PathStep<'t>>,
    found: Option<Refusal>,
    texts_are_fetched: bool,
}

/// One step down.
enum PathStep<'t> {
    Member(Cow<'t, str>),
    Element(usize),
}

/// Properties of a value that the object around it needs to know.
#[derive(Clone, Copy, Default)]
struct ContentTraits {
    is_null: bool,
    /// URL that is fetched: any but those that hold their content inline.
    is_address: bool,
    has_scheme: bool,
    says_url: bool,
    says_item_reference: bool,
    is_text: bool,
    /// Object whose `url` is a URL.
    has_address: bool,
    /// Object whose `data` is a URL.
    has_address_for_data: bool,
    /// Object with an `id`.
    has_id: bool,
}

/// Combined properties of an object's members.
#[derive(Default)]
struct ObjectTraits {
    says_url: bool,
    has_address: bool,
    has_address_for_data: bool,
    has_id: bool,
    has_type: bool,
    has_role: bool,
    has_content: bool,
}

/// Members in which an item of a conversation has its content. An item with an id and none of them refers to stored content.
const CONTENT: &[&str] = &[
    "action",
    "actions",
    "arguments",
    "code",
    "content",
    "encrypted_content",
    "input",
    "operation",
    "output",
    "outputs",
    "queries",
    "result",
    "results",
    "tools",
];

const FOUND: &str = "refused";

// === impl ContentWalk ===

impl<'t> ContentWalk<'t> {
    fn refuse<E: Error>(&mut self, why: &'static str) -> E {
        self.found = Some(Refusal::Forbidden { member: Excerpt::of(&self.place()), why });
        E::custom(FOUND)
    }

    /// Returns the position in the request.
    fn place(&self) -> String {
        let mut member = String::new();
        for (at, step) in self.path.iter().enumerate() {
            // Writing to a `String` can't fail.
            let _ = match step {
                PathStep::Member(name) if at == 0 => write!(member, "{name}"),
                PathStep::Member(name) => write!(member, ".{name}"),
                PathStep::Element(at) => write!(member, "[{at}]"),
            };
        }
        member
    }

    /// Checks tools within the content.
    fn tools<E: Error>(&mut self, tools: &RawValue) -> Result<(), E> {
        tools::check(&self.place(), tools.get()).map_err(|refusal| {
            self.found = Some(refusal);
            E::custom(FOUND)
        })
    }

    /// Returns true at an item of a conversation of OpenAI's Responses API.
    fn is_item(&self) -> bool {
        matches!(self.path.as_slice(), [PathStep::Member(name), PathStep::Element(_)] if name == "input")
    }

    /// Checks a member whose name was read.
    fn member<A: MapAccess<'t>>(
        &mut self,
        map: &mut A,
        name: Cow<'t, str>,
        together: &mut ObjectTraits,
    ) -> Result<(), A::Error> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let is_content = CONTENT.iter().any(|content| is(content));
        // Arguments of a tool call are plain text; no URL in them is fetched.
        if is("input") || is("arguments") {
            together.has_content = true;
            return map.next_value::<IgnoredAny>().map(drop);
        }
        if is(tools::TOOLS) {
            together.has_content = true;
            self.path.push(PathStep::Member(name));
            self.tools(map.next_value::<&'t RawValue>()?)?;
            self.path.pop();
            return Ok(());
        }
        let [is_url, is_type, is_id, is_role, is_data] = ["url", "type", "id", "role", "data"].map(is);
        let [is_audio, is_input_audio] = ["audio", "input_audio"].map(is);
        let (names_address, names_stored) = (ends_with(&name, "_url"), is_stored(&name));
        let is_file_data = is("file_data");
        self.path.push(PathStep::Member(name));
        let looks = map.next_value_seed(&mut *self)?;
        if (names_address && (looks.is_address || looks.has_address))
            || (is_file_data && looks.has_scheme)
            || (is_input_audio && looks.has_address_for_data)
        {
            return Err(self.refuse(REACHES_OUT));
        }
        // An earlier audio answer is referred to by its id.
        if (names_stored && !looks.is_null)
            || (is_type && looks.says_item_reference)
            || (is_audio && looks.has_id)
        {
            return Err(self.refuse(STORED));
        }
        together.has_address |= is_url && looks.is_address;
        together.has_address_for_data |= is_data && looks.has_scheme;
        together.says_url |= is_type && looks.says_url;
        together.has_id |= is_id && !looks.is_null;
        together.has_type |= is_type && looks.is_text;
        together.has_role |= is_role && looks.is_text;
        together.has_content |= is_content && !looks.is_null;
        self.path.pop();
        Ok(())
    }
}

// === impl ObjectTraits ===

impl ObjectTraits {
    /// Returns true if an item refers to a stored one: by its id, without a type or without content of its own.
    fn is_reference(&self) -> bool {
        self.has_id && !((self.has_type || self.has_role) && self.has_content)
    }
}

impl<'t> DeserializeSeed<'t> for &mut ContentWalk<'t> {
    type Value = ContentTraits;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<ContentTraits, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for &mut ContentWalk<'t> {
    type Value = ContentTraits;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<ContentTraits, E> {
        Ok(ContentTraits { is_null: true, ..ContentTraits::default() })
    }

    fn visit_bool<E>(self, _: bool) -> Result<ContentTraits, E> {
        Ok(ContentTraits::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<ContentTraits, E> {
        Ok(ContentTraits::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<ContentTraits, E> {
        Ok(ContentTraits::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<ContentTraits, E> {
        Ok(ContentTraits::default())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ContentTraits, E> {
        if self.texts_are_fetched && text.contains("://") && !text.contains(char::is_whitespace) {
            return Err(self.refuse(REACHES_OUT));
        }
        Ok(ContentTraits {
            is_address: !text.starts_with("data:"),
            has_scheme: text.contains("://"),
            says_url: text.eq_ignore_ascii_case("url"),
            says_item_reference: text.eq_ignore_ascii_case("item_reference"),
            is_text: true,
            ..ContentTraits::default()
        })
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut elements: A) -> Result<ContentTraits, A::Error> {
        for at in 0.. {
            self.path.push(PathStep::Element(at));
            let looked_at = elements.next_element_seed(&mut *self)?;
            self.path.pop();
            if looked_at.is_none() {
                break;
            }
        }
        Ok(ContentTraits::default())
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<ContentTraits, A::Error> {
        let mut together = ObjectTraits::default();
        while let Some(MemberName(name)) = map.next_key()? {
            self.member(&mut map, name, &mut together)?;
        }
        // Anthropic's sources: {"type": "url", "url": ...}, in either order.
        if together.says_url && together.has_address {
            self.path.push(PathStep::Member(Cow::Borrowed("url")));
            return Err(self.refuse(REACHES_OUT));
        }
        if self.is_item() && together.is_reference() {
            self.path.push(PathStep::Member(Cow::Borrowed("id")));
            return Err(self.refuse(STORED));
        }
        let ObjectTraits { has_address, has_address_for_data, has_id, .. } = together;
        Ok(ContentTraits { has_address, has_address_for_data, has_id, ..ContentTraits::default() })
    }
}

fn ends_with(name: &str, end: &str) -> bool {
    let at = name.len().checked_sub(end.len());
    at.and_then(|at| name.get(at..)).is_some_and(|own| own.eq_ignore_ascii_case(end))
}

fn is_stored(name: &str) -> bool {
    ["file_id", "vector_store_ids", "container_id"].iter().any(|stored| name.eq_ignore_ascii_case(stored))
}
