//! Query parameters: each at most once, all of them known, each of the expected type.

use super::answer::Refusal;
use belljar_contract::worker::problem::ProblemKind;

/// Query parameters. Each is read by name; [`Query::finish`] rejects unknown ones.
pub(super) struct Query<'q> {
    pairs: Vec<(&'q str, &'q str)>,
    known: Vec<&'static str>,
}

/// Maximum number of parameters. No endpoint has as many.
const MOST_PAIRS: usize = 32;

// === impl Query ===

impl<'q> Query<'q> {
    /// Parses the text behind the `?`.
    pub(super) fn parse(text: &'q str) -> Result<Self, Refusal> {
        let pairs: Vec<_> = text.split('&').filter(|pair| !pair.is_empty()).collect();
        let pairs: Vec<_> = pairs.iter().map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        if pairs.len() > MOST_PAIRS {
            return Err(wrong("?", &format!("at most {MOST_PAIRS} parameters")));
        }
        let is_repeated = |at: usize| pairs[..at].iter().any(|(name, _)| *name == pairs[at].0);
        if let Some(at) = (0..pairs.len()).find(|at| is_repeated(*at)) {
            return Err(wrong(pairs[at].0, "each parameter once"));
        }
        Ok(Self { pairs, known: Vec::new() })
    }

    /// Reads an optional parameter.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        self.known.push(name);
        let Some((_, value)) = self.pairs.iter().find(|(known, _)| *known == name) else { return Ok(None) };
        let decoded = decoded(value).ok_or_else(|| wrong(name, expected))?;
        read(&decoded).map(Some).ok_or_else(|| wrong(name, expected))
    }

    /// Reads a required parameter.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Refusal> {
        self.optional(name, expected, read)?.ok_or_else(|| wrong(name, &format!("{expected}; it is missing")))
    }

    /// Reads `limit`, the maximum number of entries of a page.
    pub(super) fn limit(&mut self, usual: u32, most: u32) -> Result<u32, Refusal> {
        let read = |text: &str| {
            let number = whole(text).and_then(|number| u32::try_from(number).ok());
            number.filter(|number| (1..=most).contains(number))
        };
        Ok(self.optional("limit", &format!("a number from 1 to {most}"), read)?.unwrap_or(usual))
    }

    /// Checks that there were no unknown parameters.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        match self.pairs.iter().find(|(name, _)| !self.known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(wrong(name, &format!("one of: {}", self.known.join(", ")))),
        }
    }
}

fn wrong(name: &str, expected: &str) -> Refusal {
    Refusal::new(ProblemKind::Validation, format!("the parameter {name}: expected {expected}"))
}

/// Parses decimal digits, without the signs that other number parsers accept.
pub(super) fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Decodes percent-encoding.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'%' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                let digits = std::str::from_utf8(digits)
                    .ok()
                    .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = behind;
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_escapes_are_decoded_and_invalid_ones_rejected() {
        assert_eq!(decoded("2026-01-02T03%3a04%3A05Z").as_deref(), Some("2026-01-02T03:04:05Z"));
        for odd in ["%", "%3", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(odd), None, "{odd}");
        }
    }

    #[test]
    fn unknown_repeated_or_invalid_query_parameters_are_rejected() {
        let read = |text: &str| {
            let mut query = Query::parse(text)?;
            let limit = query.limit(5, 10)?;
            query.finish().map(|()| limit)
        };
        assert_eq!(read("").ok(), Some(5));
        assert_eq!(read("limit=7").ok(), Some(7));
        for odd in ["limit=7&limit=7", "limit=11", "limit=0", "limit=+7", "limit", "more=1"] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
