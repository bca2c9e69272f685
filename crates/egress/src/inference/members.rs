//! Members of a JSON object, in order, each value as its original bytes: unchanged members are forwarded as they came.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Members of a JSON object.
#[derive(Debug)]
pub(crate) struct Members<'b> {
    all: Vec<(Cow<'b, str>, Cow<'b, str>)>,
    is_changed: bool,
}

/// Maximum number of members of a request.
const MOST: usize = 256;
/// Maximum length of a member's name in bytes.
const LONGEST_NAME: usize = 128;

// === impl Members ===

impl<'b> Members<'b> {
    /// Parses an object. Duplicate names are refused: the provider might use the other value.
    pub(crate) fn parse(bytes: &'b [u8]) -> Result<Self, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let members = Self::deserialize(&mut reader)?;
        reader.end().map(|()| members)
    }

    /// Returns the JSON of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all.iter().find(|(own, _)| own == name).map(|(_, value)| &**value)
    }

    /// Returns a member, if it is of that type.
    pub(crate) fn read<'s, T: Deserialize<'s>>(&'s self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?).ok()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(name, _)| &**name)
    }

    /// Sets a member to this JSON.
    pub(crate) fn set(&mut self, name: &'static str, value: String) {
        match self.all.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) if *own == value => return,
            Some((_, own)) => *own = Cow::Owned(value),
            None => self.all.push((Cow::Borrowed(name), Cow::Owned(value))),
        }
        self.is_changed = true;
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let before = self.all.len();
        self.all.retain(|(own, _)| own != name);
        self.is_changed |= self.all.len() != before;
    }

    /// Returns the changed object; `None` if nothing has changed.
    pub(crate) fn changed(&self) -> Option<Vec<u8>> {
        if !self.is_changed {
            return None;
        }
        let length: usize = self.all.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
        let mut text = Vec::with_capacity(length + 2);
        text.push(b'{');
        for (at, (name, value)) in self.all.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            // Writing text to memory can't fail.
            let _ = serde_json::to_writer(&mut text, &**name);
            text.push(b':');
            text.extend_from_slice(value.as_bytes());
        }
        text.push(b'}');
        Some(text)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut all: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::new();
        while let Some(MemberName(name)) = map.next_key()? {
            if name.len() > LONGEST_NAME {
                return Err(A::Error::custom(format_args!(
                    "a member's name is longer than {LONGEST_NAME} bytes"
                )));
            }
            if all.iter().any(|(own, _)| *own == name) {
                return Err(A::Error::custom(format_args!("duplicate member {name:?}")));
            }
            if all.len() == MOST {
                return Err(A::Error::custom(format_args!("there are more than {MOST} members")));
            }
            let value: &'de RawValue = map.next_value()?;
            all.push((name, Cow::Borrowed(value.get())));
        }
        Ok(Members { all, is_changed: false })
    }
}

/// Name of a member, borrowed if it has no escapes.
pub(super) struct MemberName<'de>(pub(super) Cow<'de, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = MemberName<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a member's name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<MemberName<'de>, E> {
                Ok(MemberName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<MemberName<'de>, E> {
                Ok(MemberName(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_members_are_forwarded_byte_for_byte() {
        let text = br#" { "model" : "a", "x": [1.0, 1e2,  "\u00e4"], "y" :{"z":null} } "#;
        let mut members = Members::parse(text).unwrap();
        assert_eq!((members.changed(), members.get("y")), (None, Some(r#"{"z":null}"#)));
        members.set("model", "\"a\"".to_owned());
        assert_eq!(members.changed(), None, "set to what it is");
        members.set("model", "\"b\"".to_owned());
        members.set("user", "\"u\"".to_owned());
        members.remove("y");
        let changed = members.changed().unwrap();
        assert_eq!(
            String::from_utf8(changed).unwrap(),
            r#"{"model":"b","x":[1.0, 1e2,  "\u00e4"],"user":"u"}"#
        );
    }

    #[test]
    fn body_with_duplicate_members_or_no_object_is_refused() {
        for bad in [
            r#"{"model":"a","model":"b"}"#,
            r#"{"model":"a","mod\u0065l":"b"}"#,
            r#"{"model":"a"}{}"#,
            r#"[{"model":"a"}]"#,
            r#"{"model":"a",}"#,
            r#"{'model':'a'}"#,
            "{\"model\":\"a\u{0}\"}",
            r#"{"model":"a"} x"#,
            "",
            "null",
        ] {
            assert!(Members::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Members::parse(b"{\"model\":\"\xff\"}").is_err(), "not UTF-8");
        let many: Vec<String> = (0..=MOST).map(|at| format!("\"{at}\":0")).collect();
        assert!(Members::parse(format!("{{{}}}", many.join(",")).as_bytes()).is_err());
    }
}
