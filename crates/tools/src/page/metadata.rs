//! Metadata in the head of a page, which is not displayed.

use super::html::Html;
use super::tree::{Element, PAGE, Step, Tree};
use super::{cut, one_line, without_invisible};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// Metadata of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Metadata {
    /// Title.
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Language, for example `en`.
    pub language: Option<String>,
    /// Canonical URL declared by the page.
    pub canonical: Option<String>,
    /// `author`, `keywords`, `robots` and `generator`, if present.
    pub named: BTreeMap<String, String>,
    /// `OpenGraph` properties (`og:…`, `article:…` and the like), the first of each.
    pub open_graph: BTreeMap<String, String>,
    /// `twitter:…` properties, the first of each.
    pub twitter: BTreeMap<String, String>,
    /// Types of the JSON-LD objects.
    pub json_ld_types: Vec<String>,
    /// True if there is more metadata.
    #[serde(rename = "truncated")]
    pub is_truncated: bool,
}

/// Maximum number of values of a kind.
const MOST_VALUES: usize = 64;

/// Maximum length of a name and a value in characters, and of an address in bytes.
const LONGEST_NAME: usize = 64;
const LONGEST_VALUE: usize = 1_000;
const LONGEST_URL: usize = 2_000;

const NAMED: [&str; 4] = ["author", "generator", "keywords", "robots"];
const OPEN_GRAPH: [&str; 7] = ["og:", "article:", "book:", "music:", "product:", "profile:", "video:"];
const TWITTER: [&str; 1] = ["twitter:"];

/// MIME type of JSON-LD scripts.
const JSON_LD: &str = "application/ld+json";

/// Collects the metadata of a page.
pub(super) fn of(page: &Html, tree: &Tree, base: Option<&Url>) -> Metadata {
    let mut found = Metadata { title: page.title(), is_truncated: tree.is_cut(), ..Metadata::default() };
    let mut data: Option<String> = None;
    tree.walk(PAGE, &mut |step| {
        match step {
            Step::Text(text) => {
                if let Some(data) = &mut data {
                    data.push_str(text);
                }
            }
            Step::Enter(_, element) => match element.name() {
                "html" => put(&mut found.language, element.attribute("lang")),
                "meta" => found.meta(element),
                "link" if is_canonical(element) && found.canonical.is_none() => {
                    found.canonical = element.attribute("href").and_then(|href| address(href, base));
                }
                "script" => data = is_data(element).then(String::new),
                _ => {}
            },
            Step::Leave(_, element) => {
                let read = data.take_if(|_| element.name() == "script");
                // Invalid JSON is ignored.
                if let Some(read) = read.and_then(|data| serde_json::from_str(&data).ok()) {
                    found.types(&read);
                }
            }
        }
        true
    });
    found
}

fn is_canonical(element: &Element) -> bool {
    let rel = element.attribute("rel").unwrap_or_default();
    rel.split_ascii_whitespace().any(|one| one.eq_ignore_ascii_case("canonical"))
}

fn is_data(element: &Element) -> bool {
    element.attribute("type").is_some_and(|own| own.trim().eq_ignore_ascii_case(JSON_LD))
}

fn address(href: &str, base: Option<&Url>) -> Option<String> {
    let url = match base {
        Some(base) => base.join(href.trim()),
        None => Url::parse(href.trim()),
    };
    url.ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.as_str().len() <= LONGEST_URL)
        .map(Into::into)
}

fn said(text: &str) -> Option<String> {
    let said = cut(without_invisible(&one_line(text)), LONGEST_VALUE).0;
    Some(said).filter(|said| !said.is_empty())
}

/// Sets a value unless it is already set.
fn put(place: &mut Option<String>, text: Option<&str>) {
    if place.is_none() {
        *place = text.and_then(said);
    }
}

// === impl Metadata ===

impl Metadata {
    fn meta(&mut self, element: &Element) {
        let name = element.attribute("property").or_else(|| element.attribute("name")).unwrap_or_default();
        let name = without_invisible(name.trim()).to_ascii_lowercase();
        let content = element.attribute("content");
        let begins = |with: &[&str]| with.iter().any(|begin| name.starts_with(begin));
        let values = match name.as_str() {
            "description" => return put(&mut self.description, content),
            named if NAMED.contains(&named) => &mut self.named,
            _ if begins(&OPEN_GRAPH) => &mut self.open_graph,
            _ if begins(&TWITTER) => &mut self.twitter,
            _ => return,
        };
        let Some(value) = content.and_then(said).filter(|_| !values.contains_key(&name)) else { return };
        if values.len() >= MOST_VALUES || name.chars().count() > LONGEST_NAME {
            self.is_truncated = true;
            return;
        }
        values.insert(name, value);
    }

    /// Collects the types of JSON-LD data recursively. The parser limits the depth.
    fn types(&mut self, data: &Value) {
        match data {
            Value::Array(all) => all.iter().for_each(|one| self.types(one)),
            Value::Object(members) => {
                match members.get("@type") {
                    Some(Value::String(one)) => self.add_type(one),
                    Some(Value::Array(all)) => {
                        all.iter().filter_map(Value::as_str).for_each(|one| self.add_type(one));
                    }
                    _ => {}
                }
                members.values().for_each(|member| self.types(member));
            }
            _ => {}
        }
    }

    fn add_type(&mut self, name: &str) {
        let name = cut(without_invisible(&one_line(name)), LONGEST_NAME).0;
        if name.is_empty() || self.json_ld_types.contains(&name) {
            return;
        }
        match self.json_ld_types.len() < MOST_VALUES {
            true => self.json_ld_types.push(name),
            false => self.is_truncated = true,
        }
    }
}
